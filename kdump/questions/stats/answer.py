"""What `kdump stats` answers: the statistics of a partition, or of all together, as totals.py counts them."""

from __future__ import annotations

from array import array
from collections.abc import Hashable
from typing import Annotated, Any, NamedTuple

from kdump.answer import (
    BYTES,
    EPOCH_MS,
    NESTED,
    OFFSET,
    Doc,
    Object,
    PathText,
    answer,
    answer_object,
    of_fact,
    put_bytes,
)
from kdump.core.column_numbers import HEADER_BYTES, HEADERS, LATEST, LONGEST_KEY, LONGEST_VALUE, NEWEST, OLDEST
from kdump.io.errors import is_gone
from kdump.log.histograms import SizeClass, late_classes, size_classes
from kdump.questions.stats.frequent_items import FrequentItem, LongKey
from kdump.questions.stats.totals import RecordLocation, SkippedBytes, Stats, TopicKey, codecs_of


class At(NamedTuple):
    """Where a record is."""

    file: Annotated[PathText, Doc()]
    position: Annotated[int, Doc("position of its batch")]
    offset: Annotated[int, Doc()]


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


@answer("keyCount")
class TopKey(NamedTuple):
    """A key that many records have; a row of `kdump stats --by key`."""

    topic: Annotated[str | None, Doc("its topic")]
    key: Annotated[str | None, Doc("text, or base64 with keyEncoding")]
    keyEncoding: Annotated[str | None, Doc('"base64" if key is base64', optional=True)]
    isCut: Annotated[bool | None, Doc("true if it is longer than 128 bytes: key has the first 64", optional=True)]
    keySize: Annotated[int, Doc("size of the key", BYTES)]
    records: Annotated[int, Doc("number of its data records, at least")]
    recordsAtMost: Annotated[int, Doc("and at most; the same if counts are exact")]
    bytes: Annotated[int, Doc("size of these records, uncompressed, at least", BYTES)]


class TopKeys(NamedTuple):
    """The keys that most records have."""

    error: int
    keys: list[TopKey]


@answer("producerCount")
class TopProducer(NamedTuple):
    """A producer that wrote many records; a row of `kdump stats --by producer`."""

    producerId: Annotated[int, Doc("producer ID")]
    records: Annotated[int, Doc("number of its records, control records included, at least")]
    recordsAtMost: Annotated[int, Doc("and at most; the same if counts are exact")]
    bytes: Annotated[int, Doc("size of its batches, at least", BYTES)]


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
    readableRecords: Annotated[
        int | None,
        Doc("number of data records that consumers receive: at or above the log start offset; null if not known"),
    ]
    committedRecords: Annotated[
        int | None, Doc("number of these that consumers with isolation.level=read_committed receive; null if not known")
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
        Doc("records per batch: {…}; histogram as in late"),
    ]
    batchSizes: Annotated[
        BatchLengths,
        Doc("bytes per batch, including the header: {…}; histogram as in late"),
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
            "batches by codec, each {…}; bytes of records without batch headers (messages of magic 0 and 1 with theirs)"
        ),
    ]
    ratio: Annotated[float | None, Doc("unpackedBytes / storedBytes of all compressed batches; null if none are")]
    recordBytes: Annotated[int | None, Doc("size of data records, uncompressed", BYTES)]
    headers: Annotated[HeaderSums | None, Doc("record headers: {…}")]
    keys: Annotated[
        KeyLengths | None,
        Doc("sizes of keys: {…}; histogram as in late"),
    ]
    values: Annotated[
        ValueLengths | None,
        Doc("sizes of values: {…}; histogram as in late"),
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
    damage: Annotated[list[SkippedBytes], Doc("bytes that are in none of these numbers, each {…}; at most 100")]
    damagedPlaces: Annotated[int, Doc("number of these byte ranges")]
    damagedBytes: Annotated[int, Doc("total size of these byte ranges", BYTES)]
    paddingBytes: Annotated[int, Doc("zeros, and an incomplete batch at the end of the last segment", BYTES)]
    unread: Annotated[list[PathText], Doc("what could not be read, and why")]
    notes: Annotated[list[PathText], Doc("what else is not counted")]


KEYS_OF_RECORDS = (
    "dataRecords", "readableRecords", "committedRecords", "oldest", "oldestAt", "newest", "newestAt",
    "untimedRecords", "recordsPerSecond", "bytesPerSecond", "peak",
    "times", "late", "timestampTypes", "ratio", "recordBytes", "headers", "keys", "values", "topKeys",
    "undecodedRecords",
)  # fmt: skip
"""JSON keys that are null if the records of a segment are not known."""


def stats_object(stats: Stats, limit: int, *, is_total: bool = False) -> Object:
    """Return the JSON object. `limit`: number of top keys and producers."""
    seconds = stats.seconds
    peak = stats.peak
    width = stats.moments.width
    fullest = stats.fullestBatch
    largest = stats.largestBatch
    answer = of_fact(
        PartitionStatistics,
        stats,
        scope="total" if is_total else "partition",
        readableRecords=stats.readable,
        committedRecords=stats.committed,
        undecodedRecords=stats.undecoded,
        oldestAt=_at(stats.extremes.get(OLDEST)),
        newestAt=_at(stats.extremes.get(NEWEST)),
        untimedRecords=stats.untimed,
        recordsPerSecond=None if seconds is None else round((stats.dataRecords - stats.untimed) / seconds, 3),
        bytesPerSecond=None if seconds is None else round(stats.batchBytes / seconds, 3),
        peak=None if peak is None else FullestBucket(peak[0], width, peak[1]),
        times=TimeBuckets(width, [TimeBucket(*bucket) for bucket in stats.over_time]),
        late=Lateness(stats.lateRecords, stats.latest, _at(stats.extremes.get(LATEST)), late_classes(stats.late)),
        batchRecords=BatchFullness(
            mean=_mean(stats.records, stats.soundBatches),
            most=None if fullest is None else fullest[0],
            mostAt=None if fullest is None else _at(fullest[1]),
            ones=stats.batchRecords[1],
            empty=stats.emptyBatches,
            histogram=size_classes(stats.batchRecords),
        ),
        batchSizes=BatchLengths(
            mean=_mean(stats.batchBytes, stats.soundBatches),
            most=None if largest is None else largest.place.size,
            mostAt=_at(largest),
            histogram=size_classes(stats.batchSizes),
        ),
        formats=[MagicUse(magic, count) for magic, count in sorted(stats.formats.items())],
        timestampTypes=[TimestampTypeUse(name, count) for name, count in sorted(stats.timestampTypes.items())],
        codecs=_codecs(stats),
        ratio=None if stats.ratio is None else round(stats.ratio, 3),
        headers=HeaderSums(stats.sums[HEADERS], stats.sums[HEADER_BYTES]),
        keys=KeyLengths(*_lengths(stats, stats.nullKeys, stats.keyBytes, LONGEST_KEY, stats.keySizes)),
        values=ValueLengths(*_lengths(stats, stats.tombstones, stats.valueBytes, LONGEST_VALUE, stats.valueSizes)),
        topKeys=TopKeys(stats.keys.error, [key_count(stats, frequent) for frequent in stats.keys.top(limit)]),
        topProducers=TopProducers(
            stats.producers.error, [producer_count(stats, frequent) for frequent in stats.producers.top(limit)]
        ),
        damage=stats.missed,
        damagedPlaces=stats.damaged,
        paddingBytes=stats.padding,
        unread=[reason for reason in stats.unread if not is_gone(reason)],
    )
    unknown: dict[str, Any] = dict.fromkeys(KEYS_OF_RECORDS if stats.unknown else ("topKeys",) if stats.keyless else ())
    return answer_object(answer._replace(**unknown))


def _codecs(stats: Stats) -> list[CodecUse]:
    return [
        of_fact(
            CodecUse,
            codec,
            compression=name,
            unpackedBytes=None if stats.unknown else codec.unpackedBytes,
            ratio=None if codec.ratio is None or stats.unknown else round(codec.ratio, 3),
        )
        for name, codec in codecs_of(stats)
    ]


def _at(evidence: RecordLocation | None) -> At | None:
    return None if evidence is None else At(evidence.place.file, evidence.place.position, evidence.offset)


def _lengths(
    stats: Stats, nulls: int, size: int, longest: int, sizes: array[int]
) -> tuple[int, int, float | None, int | None, At | None, list[SizeClass]]:
    """Return the fields of KeyLengths or ValueLengths."""
    mean, most = _mean(size, stats.dataRecords - nulls), stats.sums[longest]
    return nulls, size, mean, None if most < 0 else most, _at(stats.extremes.get(longest)), size_classes(sizes)


def _mean(total: int, count: int) -> float | None:
    return round(total / count, 3) if count else None


def split_key(stats: Stats, item: Hashable) -> tuple[str | None, bytes, int, bool]:
    """Return the topic of a counted key, the key or its beginning, its size in bytes, and whether it is truncated."""
    topic = stats.topic
    if isinstance(item, TopicKey):
        topic, item = item.topic, item.key
    if isinstance(item, LongKey):
        return topic, item.start, item.size, True
    assert isinstance(item, bytes)
    return topic, item, len(item), False


def key_count(stats: Stats, frequent: FrequentItem) -> TopKey:
    """Return the row of a key."""
    topic, key, size, is_cut = split_key(stats, frequent.item)
    shown: Object = {}
    put_bytes(shown, "key", key)
    return TopKey(
        topic=topic,
        key=shown["key"],
        keyEncoding=shown.get("keyEncoding"),
        isCut=is_cut or None,
        keySize=size,
        records=frequent.times,
        recordsAtMost=frequent.times + stats.keys.error,
        bytes=frequent.weight,
    )


def producer_count(stats: Stats, frequent: FrequentItem) -> TopProducer:
    """Return the row of a producer."""
    assert isinstance(frequent.item, int)
    return TopProducer(frequent.item, frequent.times, frequent.times + stats.producers.error, frequent.weight)
