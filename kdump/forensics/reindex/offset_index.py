"""Compares an existing .index with the batches of its segment.

For batches that were appended together, releases before 2.0 index the first offset, and 2.0 to 4.0 the last offset; the
position is that of the first batch. 4.1 and later index each batch on its own, by its last offset. Source:
LogSegment.append, OffsetIndex.
"""

from __future__ import annotations

from kdump.forensics.reindex.build import INTERVAL
from kdump.forensics.reindex.index_comparer import IndexComparer
from kdump.log.entries import Entry
from kdump.log.file_kinds import INDEX
from kdump.log.region import Batch


class OffsetIndexComparer(IndexComparer):
    """Compares an .index. `interval`: index.interval.bytes, set by the caller. `here`: an entry has the last offset of
    the latest batch, which it indexes alone or together with batches before it."""

    kind = INDEX
    telling = ("position", "offset")
    interval = INTERVAL
    here = False
    _ended = -1  # largest last offset of all batches so far
    _indexed_to = 0  # position of the last correct entry
    _is_late = False
    _appended: Entry | None = None  # an entry whose offset must be the last offset of a later batch
    _appended_number = 0

    def rises(self, before: Entry, entry: Entry) -> bool:
        return bool(
            entry.values["offset"] > before.values["offset"] and entry.values["position"] > before.values["position"]
        )

    def batch(self, batch: Batch) -> None:
        self.here = False
        last = batch.lastOffset
        while self.entry is not None and self.entry.values["position"] <= batch.position:
            if self.entry.values["position"] < batch.position:
                self.is_wrong(self.entry, "no batch starts at that position")
            else:
                self._reached(self.entry, batch)
            self.advance()
        appended = self._appended
        if appended is not None and appended.values["offset"] <= last:
            if appended.values["offset"] == last:
                self.verdict.because("perAppend")
                self.here = True
            else:
                self.pending.append((self._appended_number, appended, "its offset is not the last offset of any batch"))
            self._appended = None
        self._is_late = self._is_late or batch.position - self._indexed_to > self.interval
        self._ended = max(self._ended, last)

    def _reached(self, entry: Entry, batch: Batch) -> None:
        """Compare an entry with the batch at its position."""
        offset, last = entry.values["offset"], batch.lastOffset
        base = batch.baseOffset
        if offset <= self._ended or (base is not None and offset < base):
            self.is_wrong(entry, "its offset is below the batch at that position")
            return
        if offset < last and base in (offset, None):
            self.verdict.because("firstOffset")
        elif offset < last:
            self.is_wrong(entry, "its offset is inside the batch at that position, which no release writes")
            return
        elif offset > last:
            self._appended, self._appended_number = entry, self.number
        else:
            self.here = True
        position = batch.position
        if position - self._indexed_to <= self.interval:
            self.verdict.because("otherInterval")
        elif self._is_late:
            self.verdict.because("intervalAnew")
        self._indexed_to, self._is_late = position, False

    def finish(self, rebuilt: bytes, valid_end: int, size: int, *, is_stopped: bool) -> None:
        while self.entry is not None:
            position = self.entry.values["position"]
            if position >= size:
                self.is_wrong(self.entry, f"its position is after the end of the segment ({size} bytes)")
            elif is_stopped and position >= valid_end:
                self.verdict.because("behindTheCut")
            else:
                self.is_wrong(self.entry, "no batch starts at that position")
            self.advance()
        if self._appended is not None:
            self.pending.append(
                (self._appended_number, self._appended, "its offset is above the segment's last offset")
            )
        if self._is_late:
            self.verdict.because("intervalAnew")
        if self.pending or self.verdict.reasons.keys() & {"perAppend", "firstOffset"}:
            self.verdict.reasons.pop("intervalAnew", None)  # batches appended together have at most one entry
        self.report(rebuilt)
