"""What `kdump stats` answers: the statistics of a partition, or of all together (kdump.forensics.stats counts them)."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kdump.answer import BYTES, EPOCH_MS, NESTED, OFFSET, Doc, PathText, answer
from kdump.forensics.spread import Class


class At(NamedTuple):
    """Where a record is."""

    file: Annotated[PathText, Doc()]
    position: Annotated[int, Doc("of its batch")]
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
    histogram: Annotated[list[Class], Doc()]


class BatchFullness(NamedTuple):
    """Records of a batch."""

    mean: float | None
    most: int | None
    mostAt: At | None
    ones: int
    empty: int
    histogram: list[Class]


class BatchLengths(NamedTuple):
    """Bytes of a batch."""

    mean: float | None
    most: int | None
    mostAt: At | None
    histogram: list[Class]


class KeyLengths(NamedTuple):
    """Bytes of keys."""

    nulls: int
    bytes: int
    mean: float | None
    most: int | None
    mostAt: At | None
    histogram: list[Class]


class ValueLengths(NamedTuple):
    """Bytes of values."""

    nulls: Annotated[int, Doc("tombstones")]
    bytes: Annotated[int, Doc()]
    mean: Annotated[float | None, Doc()]
    most: Annotated[int | None, Doc()]
    mostAt: Annotated[At | None, Doc()]
    histogram: Annotated[list[Class], Doc()]


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
    unpackedBytes: int
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
    """Statistics of a partition; `scope` total: of all of them."""

    scope: Annotated[str, Doc("partition, or total: the sum of all before it")]
    source: Annotated[PathText, Doc("the directory or file; empty in the total")]
    topic: Annotated[str | None, Doc("null in the total, and where no directory names it")]
    partition: Annotated[int | None, Doc("of the topic")]
    partitions: Annotated[int, Doc("how many are in it")]
    files: Annotated[int, Doc("segments that were read")]
    bytes: Annotated[int, Doc("their length", BYTES)]
    batches: Annotated[int, Doc("batches, and messages of magic 0 and 1, as verify counts them")]
    records: Annotated[int, Doc("records in sound batches, as verify counts them")]
    dataRecords: Annotated[int, Doc("of them those that are no control records, and decode: all below is of these")]
    controlRecords: Annotated[int, Doc("markers of transactions, and what KRaft writes")]
    undecodedRecords: Annotated[int, Doc("that sound batches count, and that do not decode")]
    firstOffset: Annotated[int | None, Doc("the first of sound batches; null in the total", OFFSET)]
    lastOffset: Annotated[int | None, Doc("the last of sound batches; null in the total", OFFSET)]
    oldest: Annotated[int | None, Doc("smallest timestamp of a record that has one", EPOCH_MS)]
    oldestAt: Annotated[At | None, Doc(NESTED)]
    newest: Annotated[int | None, Doc("largest timestamp of a record", EPOCH_MS)]
    newestAt: Annotated[At | None, Doc(NESTED)]
    untimedRecords: Annotated[int, Doc("without a timestamp (magic 0, -1), or with one that cannot be")]
    recordsPerSecond: Annotated[
        float | None, Doc("data records from oldest to newest; null: no time between them", "records/s")
    ]
    bytesPerSecond: Annotated[float | None, Doc("bytes of sound batches over the same time", "bytes/s")]
    peak: Annotated[FullestBucket | None, Doc("{…}: the fullest bucket of `times`")]
    times: Annotated[TimeBuckets, Doc("{…}: buckets so wide, of {timestamp, count}; without empty ones")]
    late: Annotated[
        Lateness,
        Doc(
            "{…}: records that are older than one before them in their "
            "partition, and by how many ms; histogram is of {from, to (null: no bound), count}, both ends "
            "included"
        ),
    ]
    batchRecords: Annotated[
        BatchFullness,
        Doc("{…}: records of a batch; histogram is of {from, to (null: no bound), count}, both ends included"),
    ]
    batchSizes: Annotated[
        BatchLengths,
        Doc(
            "{…}: bytes of a batch with its header; histogram is of {from, to (null: "
            "no bound), count}, both ends included"
        ),
    ]
    transactionalBatches: Annotated[int, Doc("control batches included")]
    transactionalRecords: Annotated[int, Doc("control records included")]
    controlBatches: Annotated[int, Doc("")]
    idempotentBatches: Annotated[int, Doc("with a producerId")]
    formats: Annotated[list[MagicUse], Doc("of {…}")]
    timestampTypes: Annotated[list[TimestampTypeUse], Doc("of {…}")]
    codecs: Annotated[
        list[CodecUse],
        Doc(
            "of {…}: bytes of records without "
            "batch headers (messages of magic 0 and 1 with theirs); of control batches only their number"
        ),
    ]
    ratio: Annotated[float | None, Doc("unpackedBytes / storedBytes of all that is compressed; null: nothing is")]
    recordBytes: Annotated[int, Doc("of data records, unpacked", BYTES)]
    headers: Annotated[HeaderSums, Doc("{…}: record headers")]
    keys: Annotated[
        KeyLengths,
        Doc("{…}: sizes of keys; histogram is of {from, to (null: no bound), count}, both ends included"),
    ]
    values: Annotated[
        ValueLengths,
        Doc("{…}: sizes of values; histogram is of {from, to (null: no bound), count}, both ends included"),
    ]
    topKeys: Annotated[
        TopKeys,
        Doc(
            "{…}: keys is of {topic, key, keySize, records, recordsAtMost, bytes}, by records; "
            "`records` may be too low by `error`, 0 if exact; bytes are of records, and a least; key is text, or "
            "base64 with keyEncoding; of one above 128 bytes only the first 64, with isCut"
        ),
    ]
    topProducers: Annotated[TopProducers, Doc("{…}: of {producerId, records, recordsAtMost, bytes (of batches)}")]
    damage: Annotated[list[DamagedPlace], Doc("of {…}: bytes that are in none of these numbers; at most 100")]
    damagedPlaces: Annotated[int, Doc("how many there are")]
    damagedBytes: Annotated[int, Doc("of them", BYTES)]
    paddingBytes: Annotated[int, Doc("zeros, and a torn end of the last segment", BYTES)]
    unread: Annotated[list[PathText], Doc("what could not be read, and why")]
    notes: Annotated[list[PathText], Doc("what else is not counted")]
