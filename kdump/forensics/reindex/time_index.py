"""Compares an existing .timeindex with the batches of its segment.

A broker adds an entry with each entry of the .index, unless no larger timestamp was appended since the previous one,
and when it rolls, closes or recovers the segment. Source: LogSegment.append, onBecomeInactiveSegment, close; TimeIndex.
"""

from __future__ import annotations

from kdump.forensics.reindex.index_comparer import IndexComparer
from kdump.log.entries import Entry
from kdump.log.file_kinds import TIME_INDEX
from kdump.log.region import Batch


class TimeIndexComparer(IndexComparer):
    """Compares a .timeindex. The caller passes each batch to the OffsetJudge first, then here, and calls `due` if the
    .index has an entry for it."""

    kind = TIME_INDEX
    telling = ("timestamp", "offset")
    _newest, _newest_offset = -1, -1
    _previous: Entry | None = None  # the last correct entry
    _with_index = True  # whether it was added with an entry of the .index

    def rises(self, before: Entry, entry: Entry) -> bool:
        return bool(
            entry.values["timestamp"] >= before.values["timestamp"]
            and entry.values["offset"] >= before.values["offset"]
        )

    def batch(self, batch: Batch) -> None:
        timestamp = -1 if batch.maxTimestamp is None else batch.maxTimestamp
        last = batch.lastOffset
        while self.entry is not None and self.entry.values["offset"] <= last:
            self._reached(self.entry, batch, timestamp)
            self.advance()
        if timestamp > self._newest:
            self._newest, self._newest_offset = timestamp, last

    def due(self) -> None:
        """Check that there is an entry to go with that of the .index for the last batch."""
        self._with_index = True
        entry_time = self._previous.values["timestamp"] if self._previous is not None else -1
        if self._newest > entry_time and not (
            self.entry is not None and self.entry.values["timestamp"] == self._newest
        ):
            expected = {"timestamp": self._newest, "offset": self._newest_offset}
            reason = "this entry, which accompanies an .index entry, is missing"
            self.lacks(expected, reason)
            self._previous = Entry("", 0, 0, b"", expected)  # report it only once

    def _reached(self, entry: Entry, batch: Batch, timestamp: int) -> None:
        """Compare an entry whose offset is at or below the batch's last offset."""
        entry_time, offset = entry.values["timestamp"], entry.values["offset"]
        base = batch.baseOffset
        if entry_time != timestamp:
            reason = f"the batch with that offset has maxTimestamp {timestamp}"
            self.is_wrong(entry, reason if base is None or offset >= base else "no batch has that offset")
        elif timestamp <= self._newest:
            self.is_wrong(entry, f"an earlier batch has maxTimestamp {self._newest}")
        else:
            if offset != batch.lastOffset:
                self.verdict.because("recordOffset")
            self._closed_before()
            self._previous, self._with_index = entry, False

    def _closed_before(self) -> None:
        """Explain the last correct entry, if no .index entry goes with it and it is not the final one: the segment was
        closed there, and appended to later."""
        if self._previous is not None and not self._with_index:
            self.verdict.because("closedBefore")
            self._with_index = True

    def finish(self, rebuilt: bytes, valid_end: int, size: int, *, is_stopped: bool) -> None:
        while self.entry is not None:
            if is_stopped:
                self.verdict.because("behindTheCut")
            else:
                self.is_wrong(self.entry, "its offset is above the segment's last offset")
            self.advance()
        entry_time = self._previous.values["timestamp"] if self._previous is not None else -1
        if self._newest > entry_time:
            self._closed_before()
        if self._newest > entry_time and self.verdict.path is not None and not is_stopped:
            if self.open_end:
                self.verdict.because("notClosed")
            else:
                expected = {"timestamp": self._newest, "offset": self._newest_offset}
                reason = "this last entry is missing, though the segment was closed: time-based retention uses it"
                self.lacks(expected, reason)
        self.report(rebuilt)
