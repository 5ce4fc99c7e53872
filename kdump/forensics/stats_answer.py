"""What `kdump stats` answers: the statistics of a partition, or of all together (kdump.forensics.stats counts them)."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kdump.answer import BYTES, EPOCH_MS, NESTED, OFFSET, Doc, PathText, answer
from kdump.forensics.histograms import SizeClass


class At(NamedTuple):
    """Where a record is."""

    file: Annotated[PathText, Doc()]
    position: Annotated[int, Doc("position of its batch")]
    offset: Annotated[int, Doc()]


class DamagedPlace(NamedTuple):
    """Bytes that are in none of the numbers."""

    file: PathText
    position: int
    size: int
    reason: str


class HeaderSums(NamedTuple):
    """Record headers."""

    number: Annotated[int, Doc(name="count")]
    bytes: Annotated[int, Doc()]


class FullestBucket(NamedTuple):
    """The bucket of time with the most records."""

    timestamp: int
    milliseconds: int
    records: int


class TimeBucket(NamedTuple):
    """A bucket of time."""

    timestamp: Annotated[int, Doc()]
    records: Annotated[int, Doc(name="count")]


class TimeBuckets(NamedTuple):
    """Records by time: buckets of so many ms each."""

    milliseconds: int
    buckets: list[TimeBucket]


class Lateness(NamedTuple):
    """Records that are older than one before them."""

    records: Annotated[int, Doc()]
    most: Annotated[int | None, Doc("ms")]
    mostAt: Annotated[At | None, Doc()]
    histogram: Annotated[list[SizeClass], Doc()]


class BatchFullness(NamedTuple):
    """Records of a batch."""

    mean: float | None
    most: int | None
    mostAt: At | None
    ones: int
    empty: int
    histogram: list[SizeClass]


class BatchLengths(NamedTuple):
    """Bytes of a batch."""

    mean: float | None
    most: int | None
    mostAt: At | None
    histogram: list[SizeClass]


class KeyLengths(NamedTuple):
    """Bytes of keys."""

    nulls: int
    bytes: int
    mean: float | None
    most: int | None
    mostAt: At | None
    histogram: list[SizeClass]


class ValueLengths(NamedTuple):
    """Bytes of values."""

    nulls: Annotated[int, Doc("tombstones")]
    bytes: Annotated[int, Doc()]
    mean: Annotated[float | None, Doc()]
    most: Annotated[int | None, Doc()]
    mostAt: Annotated[At | None, Doc()]
    histogram: Annotated[list[SizeClass], Doc()]


class MagicUse(NamedTuple):
    """The batches of one magic."""

    magic: int
    batches: int


class TimestampTypeUse(NamedTuple):
    """The records of one timestamp type."""

    timestampType: str
    records: int


class CodecUse(NamedTuple):
    """The batches of one codec."""

    compression: str
    batches: int
    records: int
    storedBytes: int
    unpackedBytes: int | None
    ratio: float | None


class TopKey(NamedTuple):
    """A key that many records have."""

    topic: Annotated[str | None, Doc()]
    key: Annotated[str | None, Doc()]
    keyEncoding: Annotated[str | None, Doc(optional=True)]
    isCut: Annotated[bool | None, Doc(optional=True)]
    keySize: Annotated[int, Doc()]
    records: Annotated[int, Doc()]
    recordsAtMost: Annotated[int, Doc()]
    bytes: Annotated[int, Doc()]


class TopKeys(NamedTuple):
    """The keys that most records have."""

    error: int
    keys: list[TopKey]


class TopProducer(NamedTuple):
    """A producer that wrote many records."""

    producerId: Annotated[int, Doc()]
    records: Annotated[int, Doc()]
    recordsAtMost: Annotated[int, Doc()]
    bytes: Annotated[int, Doc("of batches")]


class TopProducers(NamedTuple):
    """The producers that wrote most records."""

    error: int
    producers: list[TopProducer]


@answer("stats")
class PartitionStatistics(NamedTuple):
    """Statistics of a partition; `scope` total: of all of them. What depends on records that are not in a bundle is
    null."""

    scope: Annotated[str, Doc("partition, or total (the sum of all before it)")]
    source: Annotated[PathText, Doc("directory or file; empty in the total")]
    topic: Annotated[str | None, Doc("topic; null in the total, and if no directory is named after it")]
    partition: Annotated[int | None, Doc("partition; null like topic")]
    partitions: Annotated[int, Doc("number of partitions included")]
    files: Annotated[int, Doc("number of segments read")]
    bytes: Annotated[int, Doc("total length of these segments", BYTES)]
    batches: Annotated[int, Doc("number of batches, and of messages of magic 0 and 1, as in verify")]
    records: Annotated[int, Doc("number of records in valid batches, as in verify")]
    dataRecords: Annotated[
        int | None,
        Doc("number of these that are not control records and decode; the statistics below cover only these"),
    ]
    controlRecords: Annotated[int, Doc("number of transaction markers and of KRaft's control records")]
    undecodedRecords: Annotated[int | None, Doc("number of records in valid batches that do not decode")]
    firstOffset: Annotated[int | None, Doc("first offset of valid batches; null in the total", OFFSET)]
    lastOffset: Annotated[int | None, Doc("last offset of valid batches; null in the total", OFFSET)]
    oldest: Annotated[int | None, Doc("smallest timestamp of a record", EPOCH_MS)]
    oldestAt: Annotated[At | None, Doc(NESTED)]
    newest: Annotated[int | None, Doc("largest timestamp of a record", EPOCH_MS)]
    newestAt: Annotated[At | None, Doc(NESTED)]
    untimedRecords: Annotated[
        int | None, Doc("number of records without a timestamp (magic 0, -1) or with an impossible one")
    ]
    recordsPerSecond: Annotated[
        float | None, Doc("data records per second from oldest to newest; null if these are the same", "records/s")
    ]
    bytesPerSecond: Annotated[float | None, Doc("bytes of valid batches per second of the same time", "bytes/s")]
    peak: Annotated[FullestBucket | None, Doc("bucket of `times` with the most records: {…}")]
    times: Annotated[
        TimeBuckets | None,
        Doc("records by time: {…}; buckets of this width, each {timestamp, count}, without empty ones"),
    ]
    late: Annotated[
        Lateness | None,
        Doc(
            "records with an older timestamp than an earlier record of the partition, and by how many ms: {…}; "
            "histogram: classes {from, to (null: unbounded), count}, both ends inclusive"
        ),
    ]
    batchRecords: Annotated[
        BatchFullness,
        Doc("records per batch: {…}; histogram: classes {from, to (null: unbounded), count}, both ends inclusive"),
    ]
    batchSizes: Annotated[
        BatchLengths,
        Doc(
            "bytes per batch, including the header: {…}; histogram: classes {from, to (null: unbounded), count}, both "
            "ends inclusive"
        ),
    ]
    transactionalBatches: Annotated[int, Doc("number of transactional batches, including control batches")]
    transactionalRecords: Annotated[int, Doc("number of transactional records, including control records")]
    controlBatches: Annotated[int, Doc("number of control batches")]
    idempotentBatches: Annotated[int, Doc("number of batches with a producer ID")]
    formats: Annotated[list[MagicUse], Doc("batches by format, each {…}")]
    timestampTypes: Annotated[list[TimestampTypeUse] | None, Doc("records by timestamp type, each {…}")]
    codecs: Annotated[
        list[CodecUse],
        Doc(
            "batches by codec, each {…}; bytes of records without batch headers (messages of magic 0 and 1 with "
            "theirs); for control batches only their number"
        ),
    ]
    ratio: Annotated[float | None, Doc("unpackedBytes / storedBytes of all compressed batches; null if none are")]
    recordBytes: Annotated[int | None, Doc("size of data records, uncompressed", BYTES)]
    headers: Annotated[HeaderSums | None, Doc("record headers: {…}")]
    keys: Annotated[
        KeyLengths | None,
        Doc("sizes of keys: {…}; histogram: classes {from, to (null: unbounded), count}, both ends inclusive"),
    ]
    values: Annotated[
        ValueLengths | None,
        Doc("sizes of values: {…}; histogram: classes {from, to (null: unbounded), count}, both ends inclusive"),
    ]
    topKeys: Annotated[
        TopKeys | None,
        Doc(
            "most frequent keys: {…}; keys: {topic, key, keySize, records, recordsAtMost, bytes}, by records; "
            "`records` may be too low by up to `error`, which is 0 if counts are exact; bytes: size of these records, "
            "at least; key is text, or base64 with keyEncoding; of more than 128 bytes only the first 64, with isCut"
        ),
    ]
    topProducers: Annotated[
        TopProducers,
        Doc("producers with the most records: {…}; each {producerId, records, recordsAtMost, bytes (of batches)}"),
    ]
    damage: Annotated[list[DamagedPlace], Doc("bytes that are in none of these numbers, each {…}; at most 100")]
    damagedPlaces: Annotated[int, Doc("number of these byte ranges")]
    damagedBytes: Annotated[int, Doc("total size of these byte ranges", BYTES)]
    paddingBytes: Annotated[int, Doc("zeros, and an incomplete batch at the end of the last segment", BYTES)]
    unread: Annotated[list[PathText], Doc("what could not be read, and why")]
    notes: Annotated[list[PathText], Doc("what else is not counted")]
