"""Builds the JSON object of statistics."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable

from kdump.answer import Object, answer_object
from kdump.forensics.sketch import Counted, Frequent, LongKey
from kdump.forensics.spread import Class, late_classes, size_classes
from kdump.forensics.stats import Evidence, Stats, TopicKey, codecs_of
from kdump.forensics.stats_answer import At, DamagedPlace, HeaderSums, PartitionStatistics
from kdump.forensics.tally import HEADER_BYTES, HEADERS, LATEST, LONGEST_KEY, LONGEST_VALUE, NEWEST, OLDEST
from kdump.log.errors import is_gone
from kdump.render.escape import path_text

PutBytes = Callable[[Object, str, bytes | None], None]


def stats_object(stats: Stats, most: int, put_bytes: PutBytes, *, is_total: bool = False) -> Object:
    """Return the JSON object. `most`: number of top keys and producers; `put_bytes` is objects.put_bytes."""
    seconds = stats.seconds
    peak = stats.moments.peak
    width = stats.moments.width
    fullest = stats.fullestBatch
    largest = stats.largestBatch
    keyed, valued = stats.dataRecords - stats.nullKeys, stats.dataRecords - stats.tombstones
    return answer_object(
        PartitionStatistics(
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
            oldestAt=_where(stats.extremes.get(OLDEST)),
            newest=stats.newest,
            newestAt=_where(stats.extremes.get(NEWEST)),
            untimedRecords=stats.untimed,
            recordsPerSecond=None if seconds is None else round((stats.dataRecords - stats.untimed) / seconds, 3),
            bytesPerSecond=None if seconds is None else round(stats.batchBytes / seconds, 3),
            peak=None if peak is None else {"timestamp": peak[0], "milliseconds": width, "records": peak[1]},
            times={
                "milliseconds": width,
                "buckets": [{"timestamp": start, "count": count} for start, count in stats.moments],
            },
            late={
                "records": stats.lateRecords,
                "most": stats.latest,
                "mostAt": _at(stats.extremes.get(LATEST)),
                "histogram": _histogram(late_classes(stats.late)),
            },
            batchRecords={
                "mean": _mean(stats.records, stats.soundBatches),
                "most": None if fullest is None else fullest[0],
                "mostAt": None if fullest is None else _at(fullest[1]),
                "ones": stats.batchRecords[1],
                "empty": stats.emptyBatches,
                "histogram": _sizes(stats.batchRecords),
            },
            batchSizes={
                "mean": _mean(stats.batchBytes, stats.soundBatches),
                "most": None if largest is None else largest.place.size,
                "mostAt": _at(largest),
                "histogram": _sizes(stats.batchSizes),
            },
            transactionalBatches=stats.transactionalBatches,
            transactionalRecords=stats.transactionalRecords,
            controlBatches=stats.controlBatches,
            idempotentBatches=stats.idempotentBatches,
            formats=[{"magic": magic, "batches": count} for magic, count in sorted(stats.formats.items())],
            timestampTypes=[
                {"timestampType": name, "records": count} for name, count in sorted(stats.timestampTypes.items())
            ],
            codecs=[
                {
                    "compression": name,
                    "batches": codec.batches,
                    "records": codec.records,
                    "storedBytes": codec.storedBytes,
                    "unpackedBytes": codec.unpackedBytes,
                    "ratio": None if codec.ratio is None else round(codec.ratio, 3),
                }
                for name, codec in codecs_of(stats)
            ],
            ratio=None if stats.ratio is None else round(stats.ratio, 3),
            recordBytes=stats.recordBytes,
            headers=HeaderSums(stats.sums[HEADERS], stats.sums[HEADER_BYTES]),
            keys=_lengths(
                stats.nullKeys, stats.keyBytes, keyed, stats.longestKey, stats.extremes.get(LONGEST_KEY), stats.keySizes
            ),
            values=_lengths(
                stats.tombstones,
                stats.valueBytes,
                valued,
                stats.longestValue,
                stats.extremes.get(LONGEST_VALUE),
                stats.valueSizes,
            ),
            topKeys={
                "error": stats.keys.error,
                "keys": [_key(stats, each, put_bytes) for each in stats.keys.top(most)],
            },
            topProducers={
                "error": stats.producers.error,
                "producers": [
                    {"producerId": each.item, **_counts(stats.producers, each)} for each in stats.producers.top(most)
                ],
            },
            damage=[
                DamagedPlace(each.place.file, each.place.position, each.place.size, each.reason)
                for each in stats.missed
            ],
            damagedPlaces=stats.damaged,
            damagedBytes=stats.damagedBytes,
            paddingBytes=stats.padding,
            unread=[text for text in stats.unread if not is_gone(text)],
            notes=stats.notes,
        )
    )


def _where(evidence: Evidence | None) -> At | None:
    return None if evidence is None else At(evidence.place.file, evidence.place.position, evidence.offset)


def _at(evidence: Evidence | None) -> Object | None:
    if evidence is None:
        return None
    place = evidence.place
    return {"file": path_text(place.file), "position": place.position, "offset": evidence.offset}


def _mean(total: int, count: int) -> float | None:
    return round(total / count, 3) if count else None


def _histogram(classes: list[Class]) -> list[Object]:
    return [{"from": each.first, "to": each.last, "count": each.amount} for each in classes]


def _sizes(counts: array[int]) -> list[Object]:
    return _histogram(size_classes(counts))


def _lengths(nulls: int, total: int, count: int, most: int | None, at: Evidence | None, counts: array[int]) -> Object:
    return {
        "nulls": nulls,
        "bytes": total,
        "mean": _mean(total, count),
        "most": most,
        "mostAt": _at(at),
        "histogram": _sizes(counts),
    }


def split(stats: Stats, item: Hashable) -> tuple[str | None, bytes, int, bool]:
    """Return the topic of a counted key, the key or its beginning, its size in bytes, and whether it is truncated."""
    topic = stats.topic
    if isinstance(item, TopicKey):
        topic, item = item.topic, item.key
    if isinstance(item, LongKey):
        return topic, item.start, item.size, True
    assert isinstance(item, bytes)
    return topic, item, len(item), False


def _key(stats: Stats, each: Counted, put_bytes: PutBytes) -> Object:
    topic, key, size, is_cut = split(stats, each.item)
    out: Object = {"topic": topic}
    put_bytes(out, "key", key)
    if is_cut:
        out["isCut"] = True
    return out | {"keySize": size, **_counts(stats.keys, each)}


def _counts(sketch: Frequent, each: Counted) -> Object:
    return {"records": each.times, "recordsAtMost": each.times + sketch.error, "bytes": each.weight}
