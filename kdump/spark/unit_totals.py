"""Counts of a unit's batches and segments: collected while they are read, small, and summed over a fleet."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

from kdump.check.engine.units import CheckUnit
from kdump.check.rule import BatchContext
from kdump.core.header_columns import HeaderColumns, batch_ages, by_codec
from kdump.forensics.scan_answer import (
    BatchFill,
    DirtyPartition,
    FleetTimestamps,
    FleetTopic,
    FormatUse,
    OverdueTopic,
)
from kdump.format.batch_header import codec_name

Object = dict[str, Any]
LEAST_BATCHES = 10
"""Minimum number of batches in a topic for reporting how full its batches are."""


class UnitTotals:
    """Counts of one unit. `retention`: the topic's retention.ms; None if unknown, or without time-based retention."""

    def __init__(self, retention: int | None = None) -> None:
        self.retention = retention
        self.formats: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        self.data = [0, 0, 0]
        self.negative = 0
        self.oldest: int | None = None
        self.newest: int | None = None
        self.segments: list[tuple[int, int, int | None]] = []

    def batch(self, seen: BatchContext) -> None:
        """Count one batch."""
        batch = seen.batch
        count = batch.possible_records
        counted = [self.formats[f"{batch.magic}/{batch.compression}"]]
        if not batch.isControlBatch:
            counted.append(self.data)
        for sums in counted:
            sums[0] += 1
            sums[1] += count
            sums[2] += batch.size
        if not seen.is_valid:
            return
        newest = batch.maxTimestamp
        if newest is not None and newest >= 0:
            oldest = newest if batch.baseTimestamp is None or batch.hasDeleteHorizonMs else batch.baseTimestamp
            self._times(oldest, newest)
        elif newest is not None and count:
            self.negative += 1

    def batches(self, heads: HeaderColumns, first: int, stop: int) -> None:
        """Count the batches first..stop-1: valid, without control batches and without delete horizons."""
        for sums in by_codec(heads, first, stop):
            for counted in (self.formats[f"2/{codec_name(sums.codec)}"], self.data):
                counted[0] += sums.batches
                counted[1] += sums.records
                counted[2] += sums.bytes
        seen = batch_ages(heads, first, stop)
        self._times(seen.oldest, seen.newest)
        self.negative += seen.negative

    def _times(self, oldest: int, newest: int) -> None:
        """Extend the range of timestamps (epoch ms; -1: none)."""
        if newest >= 0:
            self.newest = newest if self.newest is None else max(self.newest, newest)
        if oldest >= 0:
            self.oldest = oldest if self.oldest is None else min(self.oldest, oldest)

    def segment(self, row: Object) -> None:
        """Count one segment, given its row."""
        self.segments.append((row["baseOffset"], row["size"], row["newestTimestamp"]))

    def state(self) -> Object:
        """Return the counts so far as a JSON object."""
        counted = {name: getattr(self, name) for name in ("data", "negative", "oldest", "newest", "segments")}
        return {"formats": dict(self.formats), **counted}

    def resume(self, state: Object) -> None:
        """Restore the counts from a state. Raises KeyError, TypeError or ValueError if it is not a state."""
        for name, (batches, records, size) in state["formats"].items():
            self.formats[name] = [int(batches), int(records), int(size)]
        batches, records, size = state["data"]
        self.data = [int(batches), int(records), int(size)]
        self.negative = int(state["negative"])
        self.oldest, self.newest = (None if state[name] is None else int(state[name]) for name in ("oldest", "newest"))
        for offset, size, newest in state["segments"]:
            self.segments.append((int(offset), int(size), None if newest is None else int(newest)))

    def as_object(self, unit: CheckUnit) -> Object:
        """Return the counts for the unit's entry, as a JSON object."""
        size = sum(size for _, size, _ in self.segments)
        closed = sorted(self.segments)[:-1]
        times = [time for _, _, time in self.segments if time is not None]
        old: list[int] = []
        if self.retention is not None and times:
            old = [size for _, size, time in closed if time is not None and time < max(times) - self.retention]
        cleaned = unit.known.checkpoints.get("cleaner-offset")
        dirty = sum(size for offset, size, _ in closed if cleaned is not None and offset >= cleaned.offset)
        return {
            "formats": dict(self.formats),
            "data": self.data,
            "negative": self.negative,
            "oldest": self.oldest,
            "newest": self.newest,
            "size": size,
            "old": [len(old), sum(old)],
            "dirty": [dirty, sum(size for _, size, _ in closed)],
            "retentionMs": self.retention,
        }


class FleetSums(NamedTuple):
    """What the counts of all units add up to: fields of the summary."""

    topics: list[FleetTopic]
    formats: list[FormatUse]
    fill: list[BatchFill]
    timestamps: FleetTimestamps
    retention: list[OverdueTopic]
    compaction: list[DirtyPartition]


def sum_units(entries: Iterable[Object], limit: int) -> FleetSums:
    """Sum up the live partitions among the entries for the summary, with at most `limit` rows per list."""
    every = [entry for entry in entries if entry.get("tally") and entry["state"] == "live"]
    topics: dict[str, list[Object]] = defaultdict(list)
    formats: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for entry in every:
        if entry["topic"] is not None:
            topics[entry["topic"]].append(entry)
        for name, sums in entry["tally"]["formats"].items():
            formats[name] = [have + more for have, more in zip(formats[name], sums)]
    oldest = [entry["tally"]["oldest"] for entry in every if entry["tally"]["oldest"] is not None]
    newest = [entry["tally"]["newest"] for entry in every if entry["tally"]["newest"] is not None]
    codes = Counter[str]()
    for entry in every:
        codes.update(entry["codes"])
    return FleetSums(
        topics=_first(map(_topic, topics, topics.values()), "bytes", limit),
        formats=_first(map(_format, formats, formats.values()), "bytes", limit),
        fill=_fill(topics)[:limit],
        timestamps=FleetTimestamps(
            future=codes["timestamp-in-future"],
            negative=sum(entry["tally"]["negative"] for entry in every),
            oldest=min(oldest, default=None),
            newest=max(newest, default=None),
        ),
        retention=_first(_retention(topics), "bytes", limit),
        compaction=_first(_compaction(every), "dirtyBytes", limit),
    )


T = TypeVar("T")


def _first(rows: Iterable[T], by: str, limit: int) -> list[T]:
    return sorted(rows, key=lambda row: (-getattr(row, by), str(row)))[:limit]


def _topic(name: str, entries: list[Object]) -> FleetTopic:
    sizes = [entry["tally"]["size"] for entry in entries]
    total = sum(sizes)
    return FleetTopic(
        topic=name,
        partitions=len(entries),
        bytes=total,
        records=sum(entry["totals"]["records"] for entry in entries),
        largest=max(sizes),
        skew=round(max(sizes) * len(sizes) / total, 2) if total else None,
    )


def _format(name: str, sums: list[int]) -> FormatUse:
    magic, _, compression = name.partition("/")
    return FormatUse(int(magic), compression, *sums)


def _fill(topics: dict[str, list[Object]]) -> list[BatchFill]:
    rows = []
    for name, entries in topics.items():
        batches, records, size = (sum(entry["tally"]["data"][n] for entry in entries) for n in range(3))
        if batches >= LEAST_BATCHES:
            rows.append(BatchFill(name, batches, round(size / batches, 1), round(records / batches, 1)))
    return sorted(rows, key=lambda row: (row.bytesPerBatch, row.topic))


def _retention(topics: dict[str, list[Object]]) -> Iterable[OverdueTopic]:
    for name, entries in topics.items():
        segments, size = (sum(entry["tally"]["old"][n] for entry in entries) for n in range(2))
        if segments:
            longest = max(entry["tally"]["retentionMs"] or 0 for entry in entries)
            yield OverdueTopic(name, segments, size, longest)


def _compaction(entries: list[Object]) -> Iterable[DirtyPartition]:
    for entry in entries:
        dirty, size = entry["tally"]["dirty"]
        if dirty:
            ratio = round(dirty / size, 3)
            yield DirtyPartition(entry["topic"], entry["partition"], entry["source"], dirty, size, ratio)
