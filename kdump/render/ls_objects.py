"""Builds the JSON objects of `kdump ls`."""

from __future__ import annotations

from collections.abc import Iterable

from kdump.answer import Object, answer_object
from kdump.cluster.directory_summary import LogDirectorySummary
from kdump.cluster.missing_partitions import name_of
from kdump.forensics.ls_answer import (
    FileSizes,
    ListedBatches,
    ListedDirectory,
    ListedHeaders,
    ListedPartition,
    ListedSegment,
    ListedTopic,
    NotLive,
    OffsetRange,
)
from kdump.log.header_totals import HeaderTotals
from kdump.render.escape import path_text
from kdump.state.partition_summary import PartitionSummary, SegmentSummary, segment_damage


def directory_object(facts: LogDirectorySummary) -> Object:
    identity, live = facts.identity, facts.live
    return answer_object(
        ListedDirectory(
            directory=facts.directory.path,
            clusterId=identity.get("cluster.id"),
            nodeId=identity.get("node.id", identity.get("broker.id")),
            directoryId=identity.get("directory.id"),
            metaPropertiesVersion=identity.get("version"),
            cleanShutdown=facts.clean,
            brokerEpoch=facts.shutdown.get("brokerEpoch"),
            dated=facts.dated,
            topics=len({each.topic for each in live}),
            partitions=len(live),
            **_sizes(live)._asdict(),
            remoteCacheSize=facts.remote_cache,
            notLive=[
                NotLive(each.name, each.partition.state, whole_size(each))
                for each in facts.partitions
                if each.partition.state
            ],
            unknown=[_name(path) for path in facts.directory.unknown],
            otherFiles=[_name(target.path) for target in facts.directory.others],
            broken=list(facts.broken),
            absent=[name_of(key) for key in facts.absent],
        )
    )


def whole_size(facts: PartitionSummary) -> int:
    """Return the size of all files in bytes."""
    return facts.size + facts.others_size + facts.deleted + facts.unfinished


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _sizes(parts: Iterable[PartitionSummary]) -> FileSizes:
    every = list(parts)
    return FileSizes(
        segments=sum(len(each.segment_sizes) for each in every),
        size=sum(each.size for each in every),
        besideSize=sum(each.others_size for each in every),
        deletedSize=sum(each.deleted for each in every),
        unfinishedSize=sum(each.unfinished for each in every),
        onDisk=sum(each.on_disk for each in every),
    )


def _headers(headers: HeaderTotals, damage: str, errors: list[str]) -> ListedHeaders:
    return ListedHeaders(headers.first, headers.last, _batches(headers, damage, errors))


def _batches(headers: HeaderTotals, damage: str, errors: list[str]) -> ListedBatches:
    partial = headers.partial or bool(errors)
    return ListedBatches(
        batches=None if partial else headers.batches,
        records=None if partial else headers.records,
        oldestTimestamp=headers.oldest,
        newestTimestamp=headers.newest,
        formats=sorted(headers.formats),
        compressions=sorted(headers.codecs),
        partial=partial,
        torn=headers.torn,
        junk=headers.junk,
        padding=headers.padding,
        damage=damage or None,
        errors=errors,
    )


def partition_object(facts: PartitionSummary) -> Object:
    return answer_object(
        ListedPartition(
            partitionDirectory=facts.partition.path,
            source=facts.partition.source,
            topic=path_text(facts.topic),
            partition=facts.partition.partition,
            state=facts.partition.state or "live",
            sizes=_sizes([facts]),
            logStartOffset=facts.log_start,
            localLogStartOffset=facts.local_start,
            unreadableOffsets=None if facts.unreadable is None else tuple(map(OffsetRange._make, facts.unreadable)),
            highWatermark=facts.high_watermark,
            recoveryPoint=facts.checkpoints.get("recovery-point-offset"),
            logEndOffset=facts.log_end,
            offsets=facts.offsets,
            headers=_headers(facts.headers, facts.damage, facts.errors),
            unknown=facts.unknown,
        )
    )


def topic_object(parts: list[PartitionSummary]) -> Object:
    """Return the object of all partitions of one topic."""
    headers = HeaderTotals()
    for each in parts:
        headers.add(each.headers)
    offsets = [each.offsets for each in parts]
    damage = next((f"{each.name}: {each.damage}" for each in parts if each.damage), "")
    return answer_object(
        ListedTopic(
            source=parts[0].partition.source,
            topic=path_text(parts[0].topic),
            partitions=len(parts),
            sizes=_sizes(parts),
            offsets=None if None in offsets else sum(count for count in offsets if count is not None),
            headers=_batches(headers, damage, [error for each in parts for error in each.errors]),
        )
    )


def segment_object(facts: SegmentSummary, clean: bool | None) -> Object:
    target = facts.segment.log
    assert target is not None
    damage = segment_damage(facts, clean)
    return answer_object(
        ListedSegment(
            file=target.path,
            topic=target.topic,
            partition=target.partition,
            baseOffset=facts.segment.offset,
            size=facts.size,
            beside=list(facts.sibling_kinds),
            headers=_headers(facts.headers, damage, [facts.error] if facts.error else []),
        )
    )
