"""Collects what retention and the cleaner depend on in each segment, as its batches are read."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from operator import sub
from typing import NamedTuple

from kdump.check.options import Options
from kdump.check.rule import BatchContext, Observer, SegmentContext, may_hide_batches
from kdump.format.batch_header import LOG_OVERHEAD
from kdump.format.numbers import INT_MAX
from kdump.format.varint import varint
from kdump.io.errors import SourceError
from kdump.log.batch_records import decode_columns, records
from kdump.log.batch_validity import CHECKSUM, impossible_count, invalidity
from kdump.log.file_kinds import INDEX
from kdump.log.indexed_timestamp import complete_timestamp, indexed_timestamp
from kdump.log.legacy_records import read_wrapper
from kdump.log.paths import Target
from kdump.log.reading import Reading
from kdump.log.region import PADDING, TORN, Batch, DefaultRecordBatch, LegacyRecordBatch, Region
from kdump.log.region_reader import regions
from kdump.log.segment_summary import summarize_headers

BATCH, TIMES, FILE = "batch", "timeIndex", "file"
"""Sources of a segment's largest timestamp: a batch header, the last entry of its .timeindex or, if no record has one,
the file's modification time (LogSegment.largestTimestamp)."""


class DamagedRange(NamedTuple):
    """Bytes that are not a valid batch: position and reason."""

    position: int
    reason: str
    is_readable: bool
    """Whether only the checksum does not match, which the cleaner does not verify: lengths are valid and, if records
    were read, all of them decode."""
    is_too_large: bool = False
    """Whether it is a valid batch with a record above max.decompressed.message.bytes, at which the cleaner fails."""


@dataclass
class Tombstones:
    """Numbers of records without a value: in batches with no delete horizon yet (`unstamped`), with one that has passed
    (`due`) or has not (`pending`), or of a format that has none (`legacy`); `undecoded`: batches that do not decode
    completely."""

    unstamped: int = 0
    due: int = 0
    pending: int = 0
    undecoded: int = 0
    legacy: int = 0

    def add(self, count: int, horizon: int | None, now: int, *, is_legacy: bool) -> None:
        if is_legacy:
            self.legacy += count
        elif horizon is None:
            self.unstamped += count
        elif horizon <= now:
            self.due += count
        else:
            self.pending += count

    @property
    def total(self) -> int:
        return self.unstamped + self.due + self.pending + self.legacy

    def by_segment(self, *, is_due: bool, has_horizons: bool) -> None:
        """Decide by the segment's modification time: `is_due`. `has_horizons`: only for the formats without a delete
        horizon."""
        if not has_horizons:
            self.legacy += self.unstamped + self.due + self.pending
            self.unstamped = self.due = self.pending = 0
        if is_due:
            self.due, self.legacy = self.due + self.legacy, 0


@dataclass
class ObservedSegment:
    """A segment. `size` is the size for a broker: without zeros or an incomplete batch at the end of an active segment.
    Timestamps are epoch ms, -1 for none; `largest_at` is the position of the batch with the timestamp `largest`, and
    `largest_offsets` its offsets. `first_timestamp` is the largest timestamp of the first batch."""

    target: Target
    baseOffset: int
    size: int
    modified: int
    is_read: bool = True
    end: int = 0
    """Position after the last batch."""
    lastOffset: int | None = None
    batches: int = 0
    records: int = 0
    uncounted: int = 0
    """Number of batches whose record count cannot be true, so that their records are not in `records`."""
    first_timestamp: int = -1
    largest: int = -1
    largest_at: int = 0
    largest_offsets: tuple[int, int] = (0, 0)
    indexed: int | None = None
    """The largest timestamp according to the .timeindex, as a broker reads it; None without an entry, or an index."""
    recovers: bool | None = None
    """Whether startup re-reads the segment and rebuilds its indexes; None if unknown."""
    damage: DamagedRange | None = None
    tombstones: Tombstones | None = None
    """None if records are not read."""
    markers: Tombstones | None = None
    """The same for control batches with a record."""
    emptyBatches: int = 0
    """Number of batches without a record."""
    nextDeleteHorizonMs: int | None = None
    """The earliest delete horizon that has not passed; None without one."""

    def note_damage(self, damage: DamagedRange) -> None:
        """Keep the first damage that the cleaner cannot read, or else the first of all."""
        if self.damage is None or (self.damage.is_readable and not damage.is_readable):
            self.damage = damage

    @property
    def timestamp(self) -> int:
        """The largest timestamp as a broker has it. After a clean shutdown it is that of the .timeindex or, without an
        entry, of the file; for a segment that the broker re-reads, or has written itself, it is that of the batches."""
        if self.timestamp_from == TIMES:
            assert self.indexed is not None
            return self.indexed
        return self.largest if self.timestamp_from == BATCH else self.modified

    @property
    def timestamp_from(self) -> str:
        if self.recovers is False and self.indexed != (self.largest if self.largest >= 0 else None):
            return FILE if self.indexed is None else TIMES
        return BATCH if self.largest >= 0 else FILE


class RetentionObserver(Observer):
    """Collects the facts by path of the segment. `deep`: read records, to count tombstones; `now`: epoch ms;
    `largest_record`: number of bytes of a compressed record above which the cleaner fails."""

    def __init__(self, now: int, *, deep: bool, largest_record: int = INT_MAX) -> None:
        self.now, self.deep, self.largest_record = now, deep, largest_record
        self.found: dict[str, ObservedSegment] = {}
        self._now: ObservedSegment | None = None
        self._tail = 0
        self._is_stream = False

    def begin(self, part: SegmentContext) -> None:
        facts = ObservedSegment(part.target, part.segment.offset, part.size or 0, part.modified)
        self._is_stream = part.size is None
        facts.indexed = indexed_timestamp(part.target)
        # Without an .index, a broker recovers the segment, wherever it is.
        facts.recovers = True if INDEX not in part.segment.indexes and part.recovers is False else part.recovers
        facts.tombstones = Tombstones() if self.deep else None
        facts.markers = Tombstones()
        self.found[part.target.path] = self._now = facts
        self._tail = 0

    def batch(self, seen: BatchContext) -> None:
        facts, batch = self._now, seen.batch
        assert facts is not None
        self._tail = 0
        if not seen.is_valid:
            reading = Reading(batch)
            if self.deep and not reading.problems:
                _read_records(reading)  # to find out whether it still decodes
            reason = reading.problems[0].reason if reading.problems else (invalidity(batch) or CHECKSUM).reason
            facts.note_damage(DamagedRange(batch.position, reason, not reading.problems))
            return
        facts.end = batch.end
        timestamp = -1 if batch.maxTimestamp is None else batch.maxTimestamp
        base = batch.lastOffset if batch.baseOffset is None else batch.baseOffset
        if not facts.batches:
            facts.first_timestamp = timestamp
        if timestamp > facts.largest:
            facts.largest, facts.largest_at, facts.largest_offsets = timestamp, batch.position, (base, batch.lastOffset)
        facts.lastOffset = batch.lastOffset
        facts.batches += 1
        facts.records += batch.possible_records
        impossible = impossible_count(batch)
        if impossible is None:
            self._horizons(facts, batch)
        else:
            facts.uncounted += 1
            facts.note_damage(DamagedRange(batch.position, impossible.reason, False))

    def _horizons(self, facts: ObservedSegment, batch: Batch) -> None:
        horizon = batch.deleteHorizonMs
        if horizon is not None and horizon > self.now:
            earliest = facts.nextDeleteHorizonMs
            facts.nextDeleteHorizonMs = horizon if earliest is None else min(earliest, horizon)
        if batch.recordCount == 0:
            facts.emptyBatches += 1
        elif batch.isControlBatch:
            assert facts.markers is not None
            facts.markers.add(1, horizon, self.now, is_legacy=False)
        elif facts.tombstones is not None:
            is_legacy = isinstance(batch, LegacyRecordBatch)
            reading = Reading(batch)
            tombstones, largest = _read_records(reading)
            facts.tombstones.add(tombstones, horizon, self.now, is_legacy=is_legacy)
            facts.tombstones.undecoded += bool(reading.problems)
            if largest > self.largest_record and batch.is_compressed and not reading.problems:
                reason = f"a record of {largest} bytes is above max.decompressed.message.bytes={self.largest_record}"
                facts.note_damage(DamagedRange(batch.position, reason, False, True))

    def region(self, part: SegmentContext, region: Region) -> None:
        assert self._now is not None
        if may_hide_batches(part, region):
            self._now.note_damage(DamagedRange(region.position, region.reason or region.kind, False))
        elif region.kind in (PADDING, TORN):
            self._tail = region.size

    def unread(self) -> None:
        if self._now is not None:
            self._now.is_read = False

    def finish(self, part: SegmentContext) -> None:
        assert self._now is not None
        self._now.size = self._now.end if self._is_stream else self._now.size - self._tail
        self._now = None


def _read_records(reading: Reading[Batch]) -> tuple[int, int]:
    """Return how many of the batch's records have no value, and the size of the largest one as it is compared with
    max.decompressed.message.bytes: without its length field (DefaultRecord.readFrom), or without offset and size
    (AbstractLegacyRecordBatch.DataLogInputStream)."""
    tombstones = largest = 0
    if isinstance(reading.batch, DefaultRecordBatch):
        for columns, _ in decode_columns(reading, keys=False, values=False):
            tombstones += list(columns.value_size).count(-1)
            size = max(map(sub, columns.end, columns.start))
            length = next(size - field for field in range(1, 6) if len(varint(size - field)) <= field)
            largest = max(largest, length)
    else:
        for record in records(reading, values=False):
            tombstones += record.valueSize < 0
            largest = max(largest, record.end - record.start - LOG_OVERHEAD)
    return tombstones, largest


class Latest(NamedTuple):
    """The record with the largest timestamp of a segment."""

    position: int
    offset: int
    timestamp: int


def latest(facts: ObservedSegment, options: Options) -> Latest | None:
    """Return the record with the segment's largest timestamp; None if its batch cannot be read again."""
    try:
        window = options.open(facts.target)
    except SourceError:
        return None
    with closing(window.source):
        try:
            stream = regions(
                window, name_offset=facts.target.name_offset, start=facts.largest_at, limits=options.limits
            )
            batch = next(stream, None)
            if not isinstance(batch, Batch) or batch.maxTimestamp != facts.largest:
                return None
            if isinstance(batch, LegacyRecordBatch):
                read_wrapper(batch)
            for record in records(batch, values=False):
                if record.timestamp == facts.largest and record.offset is not None:
                    return Latest(batch.position, record.offset, facts.largest)
        except SourceError:
            return None
    return None


class DiskSegment(ObservedSegment):
    """A segment, whose largest timestamp is determined when it is first needed. `allocated`: what the .log, its indexes
    and its producer snapshot occupy.

    A broker takes that timestamp from the last entry of the .timeindex, and from the file's modification time without
    one (LogSegment.largestTimestamp). Of a segment that it recovers, it is that of the batches: these are read only if
    the .timeindex is not as it was when the segment was rolled. What a startup has read already is not read again."""

    def __init__(self, target: Target, size: int, modified: int, allocated: int = 0, stamp: int | None = None) -> None:
        """What only batches show is as the class has it: a broker has a hundred thousand segments, and an attribute
        that is set later costs each 400 bytes."""
        self.target, self.baseOffset = target, target.name_offset or 0
        self.size, self.modified, self.allocated = size, modified, allocated
        self.is_read, self.is_indexed = True, False
        self.recovers: bool | None = None
        self._stamp = stamp

    @property
    def timestamp(self) -> int:
        if self._stamp is None:
            self._stamp = self._newest()
        return self._stamp

    def _newest(self) -> int:
        read = complete_timestamp if self.recovers else indexed_timestamp
        stamp = read(self.target) if self.size or not self.recovers else None
        if stamp is None and self.recovers:
            stamp = self._of_batches()
        return self.modified if stamp is None else stamp

    def _of_batches(self) -> int | None:
        """Return the largest timestamp of the batches; None if they have none, or cannot be read."""
        try:
            window = Options().open(self.target)
            with closing(window.source):
                newest = summarize_headers(self.target, window).newest
        except SourceError:
            return None
        return newest if newest is not None and newest >= 0 else None
