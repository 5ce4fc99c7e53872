"""Answers of `kdump ls`: overviews of log directories, topics, partitions and segments."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kdump.answer import BYTES, EPOCH_MS, INLINE, OFFSET, Doc, PathText, answer


class NotLive(NamedTuple):
    """A partition directory that is not live; `size`: bytes of all its files."""

    name: PathText
    state: str
    size: int


@answer("logDirectory")
class DirectoryOverview(NamedTuple):
    """A log directory."""

    directory: Annotated[PathText, Doc("the log directory: path as given, or found below")]
    clusterId: Annotated[str | None, Doc("cluster.id of meta.properties")]
    nodeId: Annotated[str | None, Doc("node.id of meta.properties; broker.id before KRaft")]
    directoryId: Annotated[str | None, Doc("directory.id of meta.properties (KIP-858)")]
    metaPropertiesVersion: Annotated[str | None, Doc("version of meta.properties: 0 with ZooKeeper, 1 in KRaft")]
    cleanShutdown: Annotated[
        bool | None,
        Doc("whether .kafka_cleanshutdown is there; null without any checkpoint: a controller's directory, or a copy"),
    ]
    brokerEpoch: Annotated[str | None, Doc("what .kafka_cleanshutdown says (KIP-966)")]
    dated: Annotated[
        int | None, Doc("time of the file .kafka_cleanshutdown; without it, of the newest checkpoint", EPOCH_MS)
    ]
    topics: Annotated[int, Doc("topics with a live partition here")]
    partitions: Annotated[int, Doc("live partitions")]
    segments: Annotated[int, Doc("their segments")]
    size: Annotated[int, Doc("length of the segments of live partitions", BYTES)]
    besideSize: Annotated[
        int, Doc("length of all other live files of partitions: indexes, snapshots, checkpoints", BYTES)
    ]
    deletedSize: Annotated[
        int, Doc("length of .deleted files, which a broker deletes after file.delete.delay.ms", BYTES)
    ]
    unfinishedSize: Annotated[int, Doc("length of .swap and .cleaned files", BYTES)]
    onDisk: Annotated[int, Doc("what all files of partitions occupy; less than their length if they are sparse", BYTES)]
    remoteCacheSize: Annotated[int, Doc("length of the files in remote-log-index-cache", BYTES)]
    notLive: Annotated[list[NotLive], Doc("of {…}: directories -delete, -future and -stray; all their files")]
    unknown: Annotated[list[PathText], Doc("directories not named topic-partition: a broker does not start with them")]
    otherFiles: Annotated[list[PathText], Doc("files at the root that are none of Kafka's")]
    broken: Annotated[list[PathText], Doc("meta.properties and checkpoints that are damaged or cannot be read")]
    absent: Annotated[list[PathText], Doc("live partitions that a checkpoint names and that are not here")]


class FileSizes(NamedTuple):
    """File sizes of a partition, or of several."""

    segments: Annotated[int, Doc("live segments")]
    size: Annotated[int, Doc("their length", BYTES)]
    besideSize: Annotated[int, Doc("length of all other live files: indexes, snapshots, checkpoints", BYTES)]
    deletedSize: Annotated[int, Doc("length of .deleted files", BYTES)]
    unfinishedSize: Annotated[int, Doc("length of .swap and .cleaned files", BYTES)]
    onDisk: Annotated[int, Doc("what all files occupy", BYTES)]


class BatchesOverview(NamedTuple):
    """Summary of the batch headers of a segment, or of several."""

    batches: Annotated[int | None, Doc("batches, and messages of magic 0 and 1; null if not all headers were read")]
    records: Annotated[
        int | None, Doc("records by the headers; null if not all were read, or in compressed magic 0 and 1")
    ]
    oldestTimestamp: Annotated[
        int | None, Doc("smallest first timestamp of a batch; a record inside may be older", EPOCH_MS)
    ]
    newestTimestamp: Annotated[int | None, Doc("largest maxTimestamp of a batch", EPOCH_MS)]
    formats: Annotated[list[int], Doc("magic of the batches, rising")]
    compressions: Annotated[list[str], Doc("none, gzip, snappy, lz4, zstd, unknown(N)")]
    partial: Annotated[bool, Doc("not all headers were read: there may be more formats and compressions")]
    torn: Annotated[int, Doc("of batches that run past the end", BYTES)]
    junk: Annotated[int, Doc("that no batch claims", BYTES)]
    padding: Annotated[int, Doc("zeros where a batch should begin", BYTES)]
    damage: Annotated[str | None, Doc("the first damage that the headers show; kdump verify says what it is")]
    errors: Annotated[list[PathText], Doc("what could not be read, and why")]


class HeadersOverview(NamedTuple):
    """The same with the offsets, which exist only within a single partition."""

    firstOffset: Annotated[int | None, Doc("of the first batch on this disk", OFFSET)]
    lastOffset: Annotated[int | None, Doc("of the last batch", OFFSET)]
    batches_overview: Annotated[BatchesOverview, INLINE]


@answer("partitionLog")
class PartitionOverview(NamedTuple):
    """A partition directory."""

    partitionDirectory: Annotated[PathText, Doc("path of the partition's directory")]
    source: Annotated[PathText, Doc("the log directory that it is in, or the path that was given")]
    topic: Annotated[str, Doc("the topic; the directory's name where that is none of a partition")]
    partition: Annotated[int | None, Doc("its number")]
    state: Annotated[str, Doc("live, delete, future or stray")]
    sizes: Annotated[FileSizes, INLINE]
    logStartOffset: Annotated[
        int | None, Doc("from log-start-offset-checkpoint; where that has none, the first segment's", OFFSET)
    ]
    localLogStartOffset: Annotated[int | None, Doc("where this disk begins; a tier may have what lies below", OFFSET)]
    highWatermark: Annotated[int | None, Doc("from replication-offset-checkpoint", OFFSET)]
    recoveryPoint: Annotated[
        int | None, Doc("from recovery-point-offset-checkpoint: what lies below has been flushed", OFFSET)
    ]
    logEndOffset: Annotated[int | None, Doc("the offset behind the last batch", OFFSET)]
    offsets: Annotated[int | None, Doc("logEndOffset less logStartOffset")]
    headers: Annotated[HeadersOverview, INLINE]


@answer("topicLogs")
class TopicOverview(NamedTuple):
    """All partitions of a topic."""

    source: Annotated[PathText, Doc("the log directory that it is in")]
    topic: Annotated[str, Doc("the topic")]
    partitions: Annotated[int, Doc("its partitions here")]
    sizes: Annotated[FileSizes, INLINE]
    offsets: Annotated[int | None, Doc("of all partitions together; null if one's are not known")]
    headers: Annotated[BatchesOverview, INLINE]


@answer("logSegment")
class SegmentOverview(NamedTuple):
    """A segment."""

    file: Annotated[PathText, Doc("the .log")]
    topic: Annotated[str | None, Doc("from the name of its directory")]
    partition: Annotated[int | None, Doc("from the name of its directory")]
    baseOffset: Annotated[int, Doc("in the file's name", OFFSET)]
    size: Annotated[int, Doc("its length", BYTES)]
    beside: Annotated[list[str], Doc("which files of its name are there: index, timeindex, txnindex, snapshot")]
    headers: Annotated[HeadersOverview, INLINE]
