"""Judges the entries of a .timeindex.

An entry states the largest timestamp up to an offset, and that its batch is the first with it: a lookup by that
timestamp starts there, and time-based retention uses the last entry. Source: TimeIndex.lookup, TimeIndex.maybeAppend,
LogSegment.findOffsetByTimestamp, LogSegment.largestTimestamp."""

from __future__ import annotations

from array import array
from bisect import bisect_left

from kdump.core.column_numbers import BASE_OFFSET, LAST_OFFSET, MAX_TIMESTAMP
from kdump.core.header_columns import HeaderColumns, largest
from kdump.core.index_entries import matching_timestamps
from kdump.format.index import TIME_INDEX_ENTRY
from kdump.kafka.index_judge import MISMATCH, ORDER, Doubt, Fault, IndexJudge, base_offset
from kdump.log.entries import Entry
from kdump.log.region import Batch


class TimeIndexJudge(IndexJudge):
    """Judges a .timeindex. `largest`: the largest maxTimestamp so far, and `last_time` that of the last entry that is
    right."""

    entry_size = TIME_INDEX_ENTRY.size
    largest = last_time = -1
    is_damaged = False
    _waiting: tuple[int, int, int] | None = None
    """The offsets and the maxTimestamp of a doubted batch, if an entry may be about it."""

    def is_not_above(self, before: Entry, entry: Entry) -> bool:
        return bool(
            entry.values["offset"] < before.values["offset"] or entry.values["timestamp"] < before.values["timestamp"]
        )

    def is_before(self, entry: Entry, position: int, offset: int) -> bool:
        is_before = bool(entry.values["offset"] < offset)
        if is_before:
            self.last_time = entry.values["timestamp"]
        return is_before

    def gap(self, end: int) -> None:
        self.is_damaged = True
        self._judge_waiting(None)
        self.next_offset = self.doubted = None

    def batch(self, batch: Batch) -> None:
        base, last = base_offset(batch), batch.lastOffset
        timestamp = -1 if batch.maxTimestamp is None else batch.maxTimestamp
        self._judge_waiting(self.follow(base, last))
        self._judge(base, last, timestamp, self.doubted)

    def _judge(self, base: int | None, last: int, timestamp: int, doubted: Doubt | None = None) -> None:
        while self.entry is not None and self.entry.values["offset"] <= max(
            last, -1 if doubted is None else doubted.last
        ):
            offset, stored = self.entry.values["offset"], self.entry.values["timestamp"]
            if doubted is not None and (stored != timestamp or not doubted.base <= offset <= last):
                self._waiting = doubted.base, last, timestamp
                return
            self._compare(self.entry, base, last, timestamp)
            self.advance()
        self.largest = max(self.largest, timestamp)

    def _judge_waiting(self, damaged: Doubt | None) -> None:
        """Judge the entries that have waited for what follows a batch: whether it is `damaged`."""
        if self._waiting is not None:
            (base, last, timestamp), self._waiting = self._waiting, None
            self._judge(*((base, last) if damaged is None else damaged[:2]), timestamp)

    def accept_run(self, heads: HeaderColumns, first: int, stop: int) -> None:
        lasts = heads.column(LAST_OFFSET)
        self._judge_waiting(self.follow(heads.of(first, BASE_OFFSET), lasts[stop - 1]))
        row = first
        while self.entry is not None and self.entry.values["offset"] <= lasts[stop - 1]:
            batch_row = bisect_left(lasts, self.entry.values["offset"], row, stop)
            self.largest = max(self.largest, largest(heads, MAX_TIMESTAMP, row, batch_row))
            row = batch_row
            self._compare(self.entry, heads.of(row, BASE_OFFSET), lasts[row], heads.of(row, MAX_TIMESTAMP))
            if isinstance(self.numbers, array) and not self.is_damaged:
                count, row, self.largest = matching_timestamps(
                    heads, row, stop, self.largest, self.numbers, self.next_row - 1
                )
                self.skip(count)
                if count and self.before is not None:
                    self.last_time = self.before.values["timestamp"]
            self.advance()
        self.largest = max(self.largest, largest(heads, MAX_TIMESTAMP, row, stop))

    def _compare(self, entry: Entry, base: int | None, last: int, timestamp: int) -> None:
        """Judge an entry by the batch that should contain its offset: `timestamp` is its maxTimestamp."""
        if self.is_damaged:
            self.unknown()
            return
        offset, stored = entry.values["offset"], entry.values["timestamp"]
        message = f"timestamp {stored} at offset {offset}, "
        if base is not None and offset < base:
            self.wrong(entry, f"{message}which no batch contains", offset=offset)
        elif stored != timestamp:
            message += f"but its batch has maxTimestamp {timestamp}"
            self.wrong(entry, message, offset=offset, expected=timestamp, actual=stored)
        elif self.largest > stored or self.largest == stored >= 0:
            message += f"but an earlier batch has maxTimestamp {self.largest}"
            self.wrong(entry, message, offset=offset, expected=self.largest, actual=stored)
        elif stored <= self.last_time:
            message += "which is not above the timestamp before it: no release writes such an entry"
            self.wrong(entry, message, what=ORDER, is_usable=True, offset=offset)
        else:
            self.last_time = stored
            self.confirm(entry, last)

    def finish(self, size: int | None) -> None:
        is_shown = self.doubted and self.entry and self.doubted.is_shown_by(self.entry)
        self._judge_waiting(self.doubted if is_shown else None)
        while self.entry is not None:
            if self.is_damaged:
                self.unknown()
            else:
                message = f"{self.entry_text(self.entry).replace(' offset', ' at offset')}, "
                message += "which is after the segment's last batch"
                self.wrong(self.entry, message, offset=self.entry.values["offset"])
            self.advance()
        is_other = self.may_be_open or self.is_damaged or self.faults or self.ends_in_zeros
        if self.largest > self.last_time and not is_other:
            message = f"the last entry is missing: the segment was closed, and its largest timestamp is {self.largest}"
            # Without any entry, retention uses the time at which the segment was modified.
            self.note(Fault(MISMATCH, None, None, message, not self.entries, expected=self.largest))
