"""Family files, indexes: compares .timeindex files with the batches of their segment.

Source: TimeIndex, LogSegment.append.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable

from kdump.check.finding import ERROR, WARNING, Code, Finding
from kdump.check.rule import NONE, BatchContext, SegmentContext
from kdump.check.rules.indexes import IGNORED, LEFT_OVER_INFO, REBUILD, IndexRule
from kdump.core.column_numbers import BASE_OFFSET, LAST_OFFSET, MAX_TIMESTAMP
from kdump.core.header_columns import HeaderColumns, largest
from kdump.core.index_entries import matching_timestamps
from kdump.log.entries import Entry
from kdump.log.file_kinds import TIME_INDEX
from kdump.log.region import Region

TIME_INDEX_SIZE_INVALID = Code(
    code="time-index-size-invalid",
    family="indexes",
    severity=WARNING,
    meaning="The size of a .timeindex is not a multiple of 12.",
    consequence=IGNORED,
    fix=REBUILD,
    source="AbstractIndex.createMappedBuffer, TimeIndex.sanityCheck",
)

TIME_INDEX_NOT_SORTED = Code(
    code="time-index-not-sorted",
    family="indexes",
    severity=ERROR,
    meaning="The entries of a .timeindex are not in ascending order.",
    consequence=(
        "lookups by timestamp return wrong offsets, and time-based retention may use the wrong timestamp; a clean "
        "startup does not check it"
    ),
    fix=REBUILD,
    source="TimeIndex.sanityCheck, TimeIndex.maybeAppend",
    unless=LEFT_OVER_INFO,
)

TIME_INDEX_MISMATCH = Code(
    code="time-index-mismatch",
    family="indexes",
    severity=ERROR,
    meaning=(
        "A .timeindex entry names an offset whose batch has a different maxTimestamp, or an earlier batch has a larger "
        "one."
    ),
    consequence=(
        "lookups by timestamp may return wrong offsets; time-based retention uses the last entry, and deletes the "
        "segment early if that timestamp is too old"
    ),
    fix=REBUILD,
    source="TimeIndex.lookup, LogSegment.findOffsetByTimestamp, LogSegment.largestTimestamp",
    unless=LEFT_OVER_INFO,
)


class TimeIndexRule(IndexRule):
    """Checks .timeindex files."""

    kind, size_invalid, not_sorted = TIME_INDEX, TIME_INDEX_SIZE_INVALID, TIME_INDEX_NOT_SORTED

    def reset(self) -> None:
        self.largest = -1
        self.damaged = False

    def is_not_above(self, before: Entry, entry: Entry) -> bool:
        return bool(
            entry.values["offset"] < before.values["offset"] or entry.values["timestamp"] < before.values["timestamp"]
        )

    def region(self, part: SegmentContext, region: Region) -> Iterable[Finding]:
        self.damaged = True
        return NONE

    def batch(self, seen: BatchContext) -> Iterable[Finding]:
        batch = seen.batch
        if not seen.is_valid:
            self.damaged = True
            return NONE
        timestamp = -1 if batch.maxTimestamp is None else batch.maxTimestamp
        while self.entry is not None and self.entry.values["offset"] <= batch.lastOffset:
            self._compare(self.entry, seen.batch.baseOffset, timestamp, self.largest)
            self.entry = self._next(seen.part)
        self.largest = max(self.largest, timestamp)
        return NONE

    def accept_run(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> None:
        lasts = heads.column(LAST_OFFSET)
        row = first
        while self.entry is not None and self.entry.values["offset"] <= lasts[stop - 1]:
            at = bisect_left(lasts, self.entry.values["offset"], row, stop)
            self.largest = max(self.largest, largest(heads, MAX_TIMESTAMP, row, at))
            row = at
            self._compare(self.entry, heads.of(row, BASE_OFFSET), heads.of(row, MAX_TIMESTAMP), self.largest)
            if isinstance(self.numbers, array) and not self.damaged:
                count, row, self.largest = matching_timestamps(
                    heads, row, stop, self.largest, self.numbers, self.number - 1
                )
                self.skip(count)
            self.entry = self._next(part)
        self.largest = max(self.largest, largest(heads, MAX_TIMESTAMP, row, stop))

    def _compare(self, entry: Entry, base: int | None, timestamp: int, newest: int) -> None:
        """Check an entry against the batch that should contain its offset: `base` and `timestamp` are that batch's
        baseOffset and maxTimestamp, `newest` is the largest maxTimestamp of the batches before it."""
        if self.damaged:
            return
        offset, stored = entry.values["offset"], entry.values["timestamp"]
        if base is not None and offset < base:
            message = f"timestamp {stored} at offset {offset}, which no batch contains"
            self.note(TIME_INDEX_MISMATCH, entry, message=message, offset=offset)
        elif stored != timestamp:
            message = f"timestamp {stored} at offset {offset}, but its batch has maxTimestamp {timestamp}"
            self.note(TIME_INDEX_MISMATCH, entry, message=message, offset=offset, expected=timestamp, actual=stored)
        elif newest > stored:
            message = f"timestamp {stored} at offset {offset}, but an earlier batch has maxTimestamp {newest}"
            self.note(TIME_INDEX_MISMATCH, entry, message=message, offset=offset, expected=newest, actual=stored)
        else:
            self.confirm()

    def rest(self, part: SegmentContext) -> None:
        while self.entry is not None:
            entry = self.entry
            if not self.damaged:
                message = (
                    f"timestamp {entry.values['timestamp']} at offset {entry.values['offset']}, which is after the "
                    "segment's last batch"
                )
                self.note(TIME_INDEX_MISMATCH, entry, message=message, offset=entry.values["offset"])
            self.entry = self._next(part)
