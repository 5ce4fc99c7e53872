"""Builds the JSON object of statistics."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from kdump.answer import Object, answer_object
from kdump.core.column_numbers import HEADER_BYTES, HEADERS, LATEST, LONGEST_KEY, LONGEST_VALUE, NEWEST, OLDEST
from kdump.forensics.frequent_items import FrequentItem, LongKey
from kdump.forensics.histograms import late_classes, size_classes
from kdump.forensics.stats import RecordLocation, Stats, TopicKey, codecs_of
from kdump.forensics.stats_answer import (
    At,
    BatchFullness,
    BatchLengths,
    CodecUse,
    DamagedPlace,
    FullestBucket,
    HeaderSums,
    KeyLengths,
    Lateness,
    MagicUse,
    PartitionStatistics,
    TimeBucket,
    TimeBuckets,
    TimestampTypeUse,
    TopKey,
    TopKeys,
    TopProducer,
    TopProducers,
    ValueLengths,
)
from kdump.log.errors import is_gone

KEYS_OF_RECORDS = (
    "dataRecords", "oldest", "oldestAt", "newest", "newestAt", "untimedRecords", "recordsPerSecond", "bytesPerSecond",
    "peak", "times", "late", "timestampTypes", "ratio", "recordBytes", "headers", "keys", "values", "topKeys",
    "undecodedRecords",
)  # fmt: skip
"""JSON keys that are null if the records of a segment are not known."""

PutBytes = Callable[[Object, str, bytes | None], None]


def stats_object(stats: Stats, limit: int, put_bytes: PutBytes, *, is_total: bool = False) -> Object:
    """Return the JSON object. `limit`: number of top keys and producers; `put_bytes` is objects.put_bytes."""
    seconds = stats.seconds
    peak = stats.peak
    width = stats.moments.width
    fullest = stats.fullestBatch
    largest = stats.largestBatch
    keyed, valued = stats.dataRecords - stats.nullKeys, stats.dataRecords - stats.tombstones
    found = PartitionStatistics(
        scope="total" if is_total else "partition",
        source=stats.source,
        topic=stats.topic,
        partition=stats.partition,
        partitions=stats.partitions,
        files=stats.files,
        bytes=stats.bytes,
        batches=stats.batches,
        records=stats.records,
        dataRecords=stats.dataRecords,
        controlRecords=stats.controlRecords,
        undecodedRecords=stats.undecoded,
        firstOffset=stats.firstOffset,
        lastOffset=stats.lastOffset,
        oldest=stats.oldest,
        oldestAt=_at(stats.extremes.get(OLDEST)),
        newest=stats.newest,
        newestAt=_at(stats.extremes.get(NEWEST)),
        untimedRecords=stats.untimed,
        recordsPerSecond=None if seconds is None else round((stats.dataRecords - stats.untimed) / seconds, 3),
        bytesPerSecond=None if seconds is None else round(stats.batchBytes / seconds, 3),
        peak=None if peak is None else FullestBucket(peak[0], width, peak[1]),
        times=TimeBuckets(width, [TimeBucket(*each) for each in stats.over_time]),
        late=Lateness(
            records=stats.lateRecords,
            most=stats.latest,
            mostAt=_at(stats.extremes.get(LATEST)),
            histogram=late_classes(stats.late),
        ),
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
        transactionalBatches=stats.transactionalBatches,
        transactionalRecords=stats.transactionalRecords,
        controlBatches=stats.controlBatches,
        idempotentBatches=stats.idempotentBatches,
        formats=[MagicUse(magic, count) for magic, count in sorted(stats.formats.items())],
        timestampTypes=[TimestampTypeUse(name, count) for name, count in sorted(stats.timestampTypes.items())],
        codecs=[
            CodecUse(
                compression=name,
                batches=codec.batches,
                records=codec.records,
                storedBytes=codec.storedBytes,
                unpackedBytes=None if stats.unknown else codec.unpackedBytes,
                ratio=None if codec.ratio is None or stats.unknown else round(codec.ratio, 3),
            )
            for name, codec in codecs_of(stats)
        ],
        ratio=None if stats.ratio is None else round(stats.ratio, 3),
        recordBytes=stats.recordBytes,
        headers=HeaderSums(stats.sums[HEADERS], stats.sums[HEADER_BYTES]),
        keys=KeyLengths(
            nulls=stats.nullKeys,
            bytes=stats.keyBytes,
            mean=_mean(stats.keyBytes, keyed),
            most=stats.longestKey,
            mostAt=_at(stats.extremes.get(LONGEST_KEY)),
            histogram=size_classes(stats.keySizes),
        ),
        values=ValueLengths(
            nulls=stats.tombstones,
            bytes=stats.valueBytes,
            mean=_mean(stats.valueBytes, valued),
            most=stats.longestValue,
            mostAt=_at(stats.extremes.get(LONGEST_VALUE)),
            histogram=size_classes(stats.valueSizes),
        ),
        topKeys=TopKeys(stats.keys.error, [_key(stats, each, put_bytes) for each in stats.keys.top(limit)]),
        topProducers=TopProducers(
            stats.producers.error,
            [_producer(stats, each) for each in stats.producers.top(limit)],
        ),
        damage=[
            DamagedPlace(each.place.file, each.place.position, each.place.size, each.reason) for each in stats.missed
        ],
        damagedPlaces=stats.damaged,
        damagedBytes=stats.damagedBytes,
        paddingBytes=stats.padding,
        unread=[text for text in stats.unread if not is_gone(text)],
        notes=stats.notes,
    )
    unknown: dict[str, Any] = dict.fromkeys(KEYS_OF_RECORDS if stats.unknown else ("topKeys",) if stats.keyless else ())
    return answer_object(found._replace(**unknown))


def _at(evidence: RecordLocation | None) -> At | None:
    return None if evidence is None else At(evidence.place.file, evidence.place.position, evidence.offset)


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


def _key(stats: Stats, each: FrequentItem, put_bytes: PutBytes) -> TopKey:
    topic, key, size, is_cut = split_key(stats, each.item)
    text: Object = {}
    put_bytes(text, "key", key)
    return TopKey(
        topic=topic,
        key=text["key"],
        keyEncoding=text.get("keyEncoding"),
        isCut=is_cut or None,
        keySize=size,
        records=each.times,
        recordsAtMost=each.times + stats.keys.error,
        bytes=each.weight,
    )


def _producer(stats: Stats, each: FrequentItem) -> TopProducer:
    assert isinstance(each.item, int)
    return TopProducer(each.item, each.times, each.times + stats.producers.error, each.weight)
