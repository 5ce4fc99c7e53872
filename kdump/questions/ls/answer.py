"""Answers of `kdump ls`: log directories, topics and partitions; those about segments are in state.segment_answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, NamedTuple

from kdump.answer import (
    BYTES,
    EPOCH_MS,
    INLINE,
    NESTED,
    OFFSET,
    Doc,
    PathText,
    Shown,
    UnknownKeys,
    answer,
    columns,
    of_fact,
)
from kdump.cluster.directory_summary import LogDirectorySummary
from kdump.cluster.partition_summary import PartitionSummary, occupied
from kdump.cluster.segment_answer import (
    NOTES,
    SIZE,
    ListedBatches,
    ListedHeaders,
    batches_answer,
    damage_style,
    headers_answer,
)
from kdump.log.header_totals import HeaderTotals
from kdump.state.unknown_offsets import CheckpointedOffsets, LogEndOffset, LogStartOffset
from kdump.text import path_text


class NotLive(NamedTuple):
    """A partition directory that is not live; `size`: bytes of all its files."""

    name: PathText
    state: str
    size: int


UNFINISHED = "length of .cleaned files, of .swap files that a startup deletes, and of files that installed ones replace"
SWAPS = "number of the segments that are .swap files: an interrupted compaction or split, which a startup completes"


class FileSizes(NamedTuple):
    """File sizes of a partition, or of several."""

    segments: Annotated[int, Doc("number of live segments"), Shown(rank=5)]
    size: Annotated[int, Doc("length of live segments", BYTES), Shown(), SIZE]
    besideSize: Annotated[
        int,
        Doc("length of all other live files: indexes, snapshots, checkpoints", BYTES),
        Shown("others", 8, only="size"),
        SIZE,
    ]
    deletedSize: Annotated[
        int, Doc("length of .deleted files, which a broker deletes after file.delete.delay.ms", BYTES), SIZE
    ]
    unfinishedSize: Annotated[int, Doc(UNFINISHED, BYTES), SIZE]
    swapSegments: Annotated[int, Doc(SWAPS)]
    onDisk: Annotated[
        int,
        Doc("disk space of all files, hard links counted once; less than their length if they are sparse", BYTES),
        Shown(only="size"),
        SIZE,
    ]


@answer("logDirectory")
class ListedDirectory(NamedTuple):
    """A log directory."""

    directory: Annotated[PathText, Doc("path of the log directory, as passed or found below")]
    clusterId: Annotated[str | None, Doc("cluster.id in meta.properties")]
    nodeId: Annotated[str | None, Doc("node.id in meta.properties; broker.id before KRaft")]
    directoryId: Annotated[str | None, Doc("directory.id in meta.properties (KIP-858)")]
    metaPropertiesVersion: Annotated[str | None, Doc("version of meta.properties: 0 with ZooKeeper, 1 in KRaft")]
    cleanShutdown: Annotated[
        bool | None,
        Doc("whether .kafka_cleanshutdown exists; null without any checkpoint (a controller's directory, or a copy)"),
    ]
    brokerEpoch: Annotated[str | None, Doc("broker epoch in .kafka_cleanshutdown (KIP-966)")]
    dated: Annotated[
        int | None, Doc("modification time of .kafka_cleanshutdown, or else of the newest checkpoint", EPOCH_MS)
    ]
    topics: Annotated[int, Doc("number of topics with a live partition here")]
    partitions: Annotated[int, Doc("number of live partitions")]
    sizes: Annotated[FileSizes, INLINE]
    remoteCacheSize: Annotated[int, Doc("length of the files in remote-log-index-cache", BYTES)]
    notLive: Annotated[list[NotLive], Doc("directories -delete, -future and -stray with all their files, each {…}")]
    unknown: Annotated[list[PathText], Doc("directories not named topic-partition, with which a broker does not start")]
    otherFiles: Annotated[list[PathText], Doc("files in the log directory that are not Kafka's")]
    broken: Annotated[list[PathText], Doc("meta.properties and checkpoints that are damaged or unreadable")]
    absent: Annotated[
        list[PathText],
        Doc("partitions that the log directory had, and whose directories are missing (partition-missing)"),
    ]


class OffsetRange(NamedTuple):
    """Offsets, first and last included."""

    first: int
    last: int


def _measures(row: ListedPartition | ListedTopic) -> Iterator[tuple[Any, ...]]:
    own = row.sizes.size + row.sizes.besideSize
    is_deleted = getattr(row, "state", "live") == "delete"
    yield "kdump_topic_bytes", 0 if is_deleted else own, row.topic
    yield "kdump_topic_deleted_bytes", row.sizes.deletedSize + own * is_deleted, row.topic


@columns(name=Shown("partition", after=""), notes=NOTES)
@answer("partitionLog", damage_style, measures=_measures)
class ListedPartition(NamedTuple):
    """A partition directory."""

    partitionDirectory: Annotated[PathText, Doc("path of the partition directory")]
    source: Annotated[PathText, Doc("log directory that contains it, or the path that was passed")]
    topic: Annotated[str, Doc("topic; the directory's name if it is not topic-partition")]
    partition: Annotated[int | None, Doc("partition number")]
    state: Annotated[str, Doc("live, delete, future or stray")]
    sizes: Annotated[FileSizes, INLINE]
    logStartOffset: Annotated[LogStartOffset, Shown("logStart", 4)]
    localLogStartOffset: Annotated[
        int | None, Doc("log start offset on this disk; lower offsets may be in remote storage", OFFSET)
    ]
    unreadableOffsets: Annotated[
        tuple[OffsetRange, ...] | None,
        Doc(
            f"of {NESTED}: ranges of offsets below localLogStartOffset that no segment in remote storage has by "
            "__remote_log_metadata, so that no broker can read them; null if unknown, or if there is nothing below it"
        ),
    ]
    highWatermark: Annotated[int | None, Doc("from replication-offset-checkpoint", OFFSET), Shown(rank=3)]
    checkpointed: Annotated[CheckpointedOffsets, INLINE]
    logEndOffset: Annotated[LogEndOffset, Shown("logEnd", 8)]
    offsets: Annotated[int | None, Doc("logEndOffset minus logStartOffset")]
    headers: Annotated[ListedHeaders, INLINE]
    unknown: UnknownKeys


@columns(name=Shown("topic", after=""), notes=NOTES)
@answer("topicLogs", damage_style, measures=_measures)
class ListedTopic(NamedTuple):
    """All partitions of a topic."""

    source: Annotated[PathText, Doc("log directory that contains it")]
    topic: Annotated[str, Doc("topic")]
    partitions: Annotated[int, Doc("number of its partitions here"), Shown(rank=8)]
    sizes: Annotated[FileSizes, INLINE]
    offsets: Annotated[int | None, Doc("total of all partitions; null if unknown for one of them"), Shown(rank=7)]
    headers: Annotated[ListedBatches, INLINE]


def directory_answer(facts: LogDirectorySummary) -> ListedDirectory:
    identity, live = facts.identity, facts.live
    return ListedDirectory(
        directory=facts.directory.path,
        clusterId=identity.get("cluster.id"),
        nodeId=identity.get("node.id", identity.get("broker.id")),
        directoryId=identity.get("directory.id"),
        metaPropertiesVersion=identity.get("version"),
        cleanShutdown=facts.clean,
        brokerEpoch=facts.shutdown.get("brokerEpoch"),
        dated=facts.dated,
        topics=len({partition.topic for partition in live}),
        partitions=len(live),
        sizes=_sizes(live),
        remoteCacheSize=facts.remote_cache,
        notLive=[
            NotLive(partition.name, partition.partition.state, whole_size(partition))
            for partition in facts.partitions
            if partition.partition.state
        ],
        unknown=[_name(path) for path in facts.directory.unknown],
        otherFiles=[_name(target.path) for target in facts.directory.others],
        broken=list(facts.broken),
        absent=[f"{topic}-{partition}" for topic, partition in facts.absent],
    )


def whole_size(facts: PartitionSummary) -> int:
    """Return the size of all files in bytes."""
    return facts.size + facts.others_size + facts.deleted + facts.unfinished


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _sizes(parts: Iterable[PartitionSummary]) -> FileSizes:
    every = list(parts)
    return FileSizes(
        segments=sum(len(partition.segment_sizes) for partition in every),
        size=sum(partition.size for partition in every),
        besideSize=sum(partition.others_size for partition in every),
        deletedSize=sum(partition.deleted for partition in every),
        unfinishedSize=sum(partition.unfinished for partition in every),
        swapSegments=sum(partition.swaps for partition in every),
        onDisk=occupied(every),
    )


def partition_answer(facts: PartitionSummary) -> ListedPartition:
    return of_fact(
        ListedPartition,
        facts.partition,
        facts,
        partitionDirectory=facts.partition.path,
        topic=path_text(facts.topic),
        state=facts.partition.state or "live",
        sizes=_sizes([facts]),
        logStartOffset=facts.log_start,
        localLogStartOffset=facts.local_start,
        unreadableOffsets=None if facts.unreadable is None else tuple(map(OffsetRange._make, facts.unreadable)),
        highWatermark=facts.high_watermark,
        checkpointed=CheckpointedOffsets.of(facts.checkpoints),
        logEndOffset=facts.log_end,
        headers=headers_answer(facts.headers, facts.damage, facts.errors),
    )


def topic_answer(parts: list[PartitionSummary]) -> ListedTopic:
    """Return the answer about all partitions of one topic."""
    headers = HeaderTotals()
    for partition in parts:
        headers.merge(partition.headers)
    offsets = [partition.offsets for partition in parts]
    damage = next((f"{partition.name}: {partition.damage}" for partition in parts if partition.damage), "")
    return ListedTopic(
        source=parts[0].partition.source,
        topic=path_text(parts[0].topic),
        partitions=len(parts),
        sizes=_sizes(parts),
        offsets=None if None in offsets else sum(count for count in offsets if count is not None),
        headers=batches_answer(headers, damage, [error for partition in parts for error in partition.errors]),
    )
