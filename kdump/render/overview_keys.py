"""The JSON objects of `kdump ls`: every key, with its unit, declared once; and the objects, from what was read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kdump.answer import Key
from kdump.log.header_sums import Headers
from kdump.render.escape import path_text
from kdump.state.logdir import DirectoryFacts
from kdump.state.partition_log import PartitionFacts, SegmentFacts, segment_damage

Object = dict[str, Any]

NUMBER, NULL, TEXT, LIST = "number", "number or null", "string", "array"

DIRECTORY_KEYS = (
    Key("directory", TEXT, "", "the log directory: path as given, or found below"),
    Key("clusterId", "string or null", "", "cluster.id of meta.properties"),
    Key("nodeId", "string or null", "", "node.id of meta.properties; broker.id before KRaft"),
    Key("directoryId", "string or null", "", "directory.id of meta.properties (KIP-858)"),
    Key("metaPropertiesVersion", "string or null", "", "version of meta.properties: 0 with ZooKeeper, 1 in KRaft"),
    Key(
        "cleanShutdown",
        "boolean or null",
        "",
        "whether .kafka_cleanshutdown is there; null without any checkpoint: a controller's directory, or a copy",
    ),
    Key("brokerEpoch", "string or null", "", "what .kafka_cleanshutdown says (KIP-966)"),
    Key("dated", NULL, "epoch ms", "time of the file .kafka_cleanshutdown; without it, of the newest checkpoint"),
    Key("topics", NUMBER, "", "topics with a live partition here"),
    Key("partitions", NUMBER, "", "live partitions"),
    Key("segments", NUMBER, "", "their segments"),
    Key("size", NUMBER, "bytes", "length of the segments of live partitions"),
    Key("besideSize", NUMBER, "bytes", "length of all other live files of partitions: indexes, snapshots, checkpoints"),
    Key("deletedSize", NUMBER, "bytes", "length of .deleted files, which a broker deletes after file.delete.delay.ms"),
    Key("unfinishedSize", NUMBER, "bytes", "length of .swap and .cleaned files"),
    Key("onDisk", NUMBER, "bytes", "what all files of partitions occupy; less than their length if they are sparse"),
    Key("remoteCacheSize", NUMBER, "bytes", "length of the files in remote-log-index-cache"),
    Key("notLive", LIST, "", "of {name, state, size}: directories -delete, -future and -stray; all their files"),
    Key("unknown", LIST, "", "directories not named topic-partition: a broker does not start with them"),
    Key("otherFiles", LIST, "", "files at the root that are none of Kafka's"),
    Key("broken", LIST, "", "meta.properties and checkpoints that are damaged or cannot be read"),
    Key("absent", LIST, "", "live partitions that a checkpoint names and that are not here"),
)

HEADER_KEYS = (
    Key("firstOffset", NULL, "offset", "of the first batch on this disk"),
    Key("lastOffset", NULL, "offset", "of the last batch"),
    Key("batches", NULL, "", "batches, and messages of magic 0 and 1; null if not all headers were read"),
    Key("records", NULL, "", "records by the headers; null if not all were read, or in compressed magic 0 and 1"),
    Key("oldestTimestamp", NULL, "epoch ms", "smallest first timestamp of a batch; a record inside may be older"),
    Key("newestTimestamp", NULL, "epoch ms", "largest maxTimestamp of a batch"),
    Key("formats", LIST, "", "magic of the batches, rising"),
    Key("compressions", LIST, "", "none, gzip, snappy, lz4, zstd, unknown(N)"),
    Key("partial", "boolean", "", "not all headers were read: there may be more formats and compressions"),
    Key("torn", NUMBER, "bytes", "of batches that run past the end"),
    Key("junk", NUMBER, "bytes", "that no batch claims"),
    Key("padding", NUMBER, "bytes", "zeros where a batch should begin"),
    Key("damage", "string or null", "", "the first damage that the headers show; kdump verify says what it is"),
    Key("errors", LIST, "", "what could not be read, and why"),
)
SIZE_KEYS = (
    Key("segments", NUMBER, "", "live segments"),
    Key("size", NUMBER, "bytes", "their length"),
    Key("besideSize", NUMBER, "bytes", "length of all other live files: indexes, snapshots, checkpoints"),
    Key("deletedSize", NUMBER, "bytes", "length of .deleted files"),
    Key("unfinishedSize", NUMBER, "bytes", "length of .swap and .cleaned files"),
    Key("onDisk", NUMBER, "bytes", "what all files occupy"),
)
PARTITION_KEYS = (
    Key("partitionDirectory", TEXT, "", "path of the partition's directory"),
    Key("source", TEXT, "", "the log directory that it is in, or the path that was given"),
    Key("topic", TEXT, "", "the topic; the directory's name where that is none of a partition"),
    Key("partition", NULL, "", "its number"),
    Key("state", TEXT, "", "live, delete, future or stray"),
    *SIZE_KEYS,
    Key("logStartOffset", NULL, "offset", "from log-start-offset-checkpoint; where that has none, the first segment's"),
    Key("localLogStartOffset", NULL, "offset", "where this disk begins; a tier may have what lies below"),
    Key("highWatermark", NULL, "offset", "from replication-offset-checkpoint"),
    Key("recoveryPoint", NULL, "offset", "from recovery-point-offset-checkpoint: what lies below has been flushed"),
    Key("logEndOffset", NULL, "offset", "the offset behind the last batch"),
    Key("offsets", NULL, "", "logEndOffset less logStartOffset"),
    *HEADER_KEYS,
)
TOPIC_KEYS = (
    Key("source", TEXT, "", "the log directory that it is in"),
    Key("topic", TEXT, "", "the topic"),
    Key("partitions", NUMBER, "", "its partitions here"),
    *SIZE_KEYS,
    Key("offsets", NULL, "", "of all partitions together; null if one's are not known"),
    *(key for key in HEADER_KEYS if key.name not in ("firstOffset", "lastOffset")),
)
SEGMENT_KEYS = (
    Key("file", TEXT, "", "the .log"),
    Key("topic", "string or null", "", "from the name of its directory"),
    Key("partition", NULL, "", "from the name of its directory"),
    Key("baseOffset", NUMBER, "offset", "in the file's name"),
    Key("size", NUMBER, "bytes", "its length"),
    Key("beside", LIST, "", "which files of its name are there: index, timeindex, txnindex, snapshot"),
    *HEADER_KEYS,
)

OVERVIEW_TYPES = {
    "logDirectory": DIRECTORY_KEYS,
    "partitionLog": PARTITION_KEYS,
    "topicLogs": TOPIC_KEYS,
    "logSegment": SEGMENT_KEYS,
}


def directory_object(facts: DirectoryFacts) -> Object:
    identity, live = facts.identity, facts.live
    return {
        "type": "logDirectory",
        "directory": path_text(facts.directory.path),
        "clusterId": identity.get("cluster.id"),
        "nodeId": identity.get("node.id", identity.get("broker.id")),
        "directoryId": identity.get("directory.id"),
        "metaPropertiesVersion": identity.get("version"),
        "cleanShutdown": facts.clean,
        "brokerEpoch": facts.shutdown.get("brokerEpoch"),
        "dated": facts.dated,
        "topics": len({each.topic for each in live}),
        "partitions": len(live),
        **_sizes(live),
        "remoteCacheSize": facts.remote_cache,
        "notLive": [
            {"name": path_text(each.name), "state": each.partition.state, "size": whole_size(each)}
            for each in facts.partitions
            if each.partition.state
        ],
        "unknown": [_name(path) for path in facts.directory.unknown],
        "otherFiles": [_name(at.path) for at in facts.directory.others],
        "broken": [path_text(name) for name in facts.broken],
        "absent": [path_text(name) for name in facts.absent],
    }


def whole_size(facts: PartitionFacts) -> int:
    """Length of all files, bytes."""
    return facts.size + facts.beside + facts.deleted + facts.unfinished


def _name(path: str) -> str:
    return path_text(path.rstrip("/").rpartition("/")[2])


def _sizes(parts: Iterable[PartitionFacts]) -> Object:
    every = list(parts)
    sums: dict[str, Callable[[PartitionFacts], int]] = {
        "segments": lambda each: len(each.segments),
        "size": lambda each: each.size,
        "besideSize": lambda each: each.beside,
        "deletedSize": lambda each: each.deleted,
        "unfinishedSize": lambda each: each.unfinished,
        "onDisk": lambda each: each.on_disk,
    }
    return {name: sum(map(size, every)) for name, size in sums.items()}


def _headers(headers: Headers, damage: str, errors: list[str]) -> Object:
    partial = headers.partial or bool(errors)
    return {
        "firstOffset": headers.first,
        "lastOffset": headers.last,
        "batches": None if partial else headers.batches,
        "records": None if partial else headers.records,
        "oldestTimestamp": headers.oldest,
        "newestTimestamp": headers.newest,
        "formats": sorted(headers.formats),
        "compressions": sorted(headers.codecs),
        "partial": partial,
        "torn": headers.torn,
        "junk": headers.junk,
        "padding": headers.padding,
        "damage": damage or None,
        "errors": [path_text(error) for error in errors],
    }


def partition_object(facts: PartitionFacts) -> Object:
    return {
        "type": "partitionLog",
        "partitionDirectory": path_text(facts.partition.path),
        "source": path_text(facts.partition.source),
        "topic": path_text(facts.topic),
        "partition": facts.partition.partition,
        "state": facts.partition.state or "live",
        **_sizes([facts]),
        "logStartOffset": facts.log_start,
        "localLogStartOffset": facts.local_start,
        "highWatermark": facts.high_watermark,
        "recoveryPoint": facts.checkpoints.get("recovery-point-offset"),
        "logEndOffset": facts.log_end,
        "offsets": facts.offsets,
        **_headers(facts.headers, facts.damage, facts.errors),
    }


def topic_object(parts: list[PartitionFacts]) -> Object:
    """Of all partitions of one topic."""
    headers = Headers()
    for each in parts:
        headers.add(each.headers)
    offsets = [each.offsets for each in parts]
    damage = next((f"{each.name}: {each.damage}" for each in parts if each.damage), "")
    said = _headers(headers, damage, [error for each in parts for error in each.errors])
    return {
        "type": "topicLogs",
        "source": path_text(parts[0].partition.source),
        "topic": path_text(parts[0].topic),
        "partitions": len(parts),
        **_sizes(parts),
        "offsets": None if None in offsets else sum(count for count in offsets if count is not None),
        **{key: value for key, value in said.items() if key not in ("firstOffset", "lastOffset")},
    }


def segment_object(facts: SegmentFacts, clean: bool | None) -> Object:
    at = facts.segment.log
    assert at is not None
    damage = segment_damage(facts, clean)
    return {
        "type": "logSegment",
        "file": path_text(at.path),
        "topic": at.topic,
        "partition": at.partition,
        "baseOffset": facts.segment.offset,
        "size": facts.size,
        "beside": list(facts.beside),
        **_headers(facts.headers, damage, [facts.error] if facts.error else []),
    }
