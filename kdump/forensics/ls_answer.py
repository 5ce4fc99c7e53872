"""Answers of `kdump ls`: log directories, topics, partitions and segments."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kdump.answer import BYTES, EPOCH_MS, INLINE, NESTED, OFFSET, Doc, PathText, UnknownKeys, answer
from kdump.forensics.answers import LogEndOffset, LogStartOffset


class NotLive(NamedTuple):
    """A partition directory that is not live; `size`: bytes of all its files."""

    name: PathText
    state: str
    size: int


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
    segments: Annotated[int, Doc("number of their segments")]
    size: Annotated[int, Doc("length of the segments of live partitions", BYTES)]
    besideSize: Annotated[
        int, Doc("length of all other live files of partitions: indexes, snapshots, checkpoints", BYTES)
    ]
    deletedSize: Annotated[
        int, Doc("length of .deleted files, which a broker deletes after file.delete.delay.ms", BYTES)
    ]
    unfinishedSize: Annotated[int, Doc("length of .swap and .cleaned files", BYTES)]
    onDisk: Annotated[int, Doc("disk space of all partition files; less than their length if they are sparse", BYTES)]
    remoteCacheSize: Annotated[int, Doc("length of the files in remote-log-index-cache", BYTES)]
    notLive: Annotated[list[NotLive], Doc("directories -delete, -future and -stray with all their files, each {…}")]
    unknown: Annotated[list[PathText], Doc("directories not named topic-partition, with which a broker does not start")]
    otherFiles: Annotated[list[PathText], Doc("files in the log directory that are not Kafka's")]
    broken: Annotated[list[PathText], Doc("meta.properties and checkpoints that are damaged or unreadable")]
    absent: Annotated[
        list[PathText],
        Doc("partitions that the log directory had, and whose directories are missing (partition-missing)"),
    ]


class FileSizes(NamedTuple):
    """File sizes of a partition, or of several."""

    segments: Annotated[int, Doc("number of live segments")]
    size: Annotated[int, Doc("length of live segments", BYTES)]
    besideSize: Annotated[int, Doc("length of all other live files: indexes, snapshots, checkpoints", BYTES)]
    deletedSize: Annotated[int, Doc("length of .deleted files", BYTES)]
    unfinishedSize: Annotated[int, Doc("length of .swap and .cleaned files", BYTES)]
    onDisk: Annotated[int, Doc("disk space of all files", BYTES)]


class ListedBatches(NamedTuple):
    """Summary of the batch headers of a segment, or of several."""

    batches: Annotated[
        int | None, Doc("number of batches, or of messages of magic 0 and 1; null if not all headers were read")
    ]
    records: Annotated[
        int | None, Doc("number of records, from headers; null if not all were read, or for compressed magic 0 and 1")
    ]
    oldestTimestamp: Annotated[
        int | None, Doc("smallest first timestamp of a batch; a record in it may be older", EPOCH_MS)
    ]
    newestTimestamp: Annotated[int | None, Doc("largest maxTimestamp of a batch", EPOCH_MS)]
    formats: Annotated[list[int], Doc("magic values of the batches, in ascending order")]
    compressions: Annotated[list[str], Doc("compression of the batches: none, gzip, snappy, lz4, zstd, unknown(N)")]
    partial: Annotated[
        bool, Doc("whether not all headers were read, so that there may be more formats and compressions")
    ]
    torn: Annotated[int, Doc("length of incomplete batches at the end of a segment", BYTES)]
    junk: Annotated[int, Doc("bytes that belong to no batch", BYTES)]
    padding: Annotated[int, Doc("zeros where a batch should start", BYTES)]
    damage: Annotated[str | None, Doc("first damage visible in the headers; run kdump verify for details")]
    errors: Annotated[list[PathText], Doc("what could not be read, and why")]


class ListedHeaders(NamedTuple):
    """The same with the offsets, which exist only within a single partition."""

    firstOffset: Annotated[int | None, Doc("first offset of the first batch on this disk", OFFSET)]
    lastOffset: Annotated[int | None, Doc("last offset of the last batch", OFFSET)]
    listed_batches: Annotated[ListedBatches, INLINE]


class OffsetRange(NamedTuple):
    """Offsets, first and last included."""

    first: int
    last: int


@answer("partitionLog")
class ListedPartition(NamedTuple):
    """A partition directory."""

    partitionDirectory: Annotated[PathText, Doc("path of the partition directory")]
    source: Annotated[PathText, Doc("log directory that contains it, or the path that was passed")]
    topic: Annotated[str, Doc("topic; the directory's name if it is not topic-partition")]
    partition: Annotated[int | None, Doc("partition number")]
    state: Annotated[str, Doc("live, delete, future or stray")]
    sizes: Annotated[FileSizes, INLINE]
    logStartOffset: LogStartOffset
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
    highWatermark: Annotated[int | None, Doc("from replication-offset-checkpoint", OFFSET)]
    recoveryPoint: Annotated[
        int | None, Doc("from recovery-point-offset-checkpoint; what is below has been flushed", OFFSET)
    ]
    logEndOffset: LogEndOffset
    offsets: Annotated[int | None, Doc("logEndOffset minus logStartOffset")]
    headers: Annotated[ListedHeaders, INLINE]
    unknown: UnknownKeys


@answer("topicLogs")
class ListedTopic(NamedTuple):
    """All partitions of a topic."""

    source: Annotated[PathText, Doc("log directory that contains it")]
    topic: Annotated[str, Doc("topic")]
    partitions: Annotated[int, Doc("number of its partitions here")]
    sizes: Annotated[FileSizes, INLINE]
    offsets: Annotated[int | None, Doc("total of all partitions; null if unknown for one of them")]
    headers: Annotated[ListedBatches, INLINE]


@answer("logSegment")
class ListedSegment(NamedTuple):
    """A segment."""

    file: Annotated[PathText, Doc("path of the .log")]
    topic: Annotated[str | None, Doc("from the name of its directory")]
    partition: Annotated[int | None, Doc("from the name of its directory")]
    baseOffset: Annotated[int, Doc("base offset, from the file's name", OFFSET)]
    size: Annotated[int, Doc("length of the segment", BYTES)]
    beside: Annotated[list[str], Doc("files with the same name that exist: index, timeindex, txnindex, snapshot")]
    headers: Annotated[ListedHeaders, INLINE]
