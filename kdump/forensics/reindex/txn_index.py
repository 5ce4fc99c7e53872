"""Compares an existing .txnindex with the ABORT markers of its segment.

Source: LogSegment.updateTxnIndex, ProducerStateManager.lastStableOffset; for the entries that the log cleaner keeps,
Cleaner's CleanedTransactionMetadata.
"""

from __future__ import annotations

from collections.abc import Iterator

from kdump.forensics.reindex.build import BatchEffects
from kdump.forensics.reindex.index_comparer import IndexComparer
from kdump.forensics.reindex.verdict import Verdict
from kdump.format.index import TxnIndexEntry
from kdump.log.entries import Entry, Item
from kdump.log.file_kinds import TXN_INDEX
from kdump.log.region import Batch


class TxnIndexComparer(IndexComparer):
    """Compares a .txnindex. `compacted`: the log cleaner may have cleaned the segment; `known_from`: every transaction
    that began at or above this offset is known."""

    kind = TXN_INDEX
    telling = ("lastOffset",)

    def __init__(
        self,
        items: Iterator[Item],
        verdict: Verdict,
        base_offset: int,
        *,
        open_end: bool,
        compacted: bool,
        known_from: int,
    ) -> None:
        self.compacted = compacted
        self.known_from = known_from
        self._later: dict[int, tuple[int, Entry]] = {}
        """Entries whose lastStableOffset is the first offset of a transaction that may begin later, by that offset."""
        super().__init__(items, verdict, base_offset, open_end=open_end)

    def rises(self, before: Entry, entry: Entry) -> bool:
        return bool(entry.values["lastOffset"] > before.values["lastOffset"])

    def added(self, batch: Batch, added: BatchEffects) -> None:
        """Process the next batch; `added` states which transaction it began or aborted, if any."""
        if added.began is not None:
            self._began(added.began)
        if added.aborted is None:
            return
        offset = batch.lastOffset if batch.baseOffset is None else batch.baseOffset
        while self.entry is not None and self.entry.values["lastOffset"] < offset:
            self._unmatched(self.entry)
            self.advance()
        entry = self.entry
        if entry is None or entry.values["lastOffset"] != offset:
            self._lacking(added.entry)
            return
        if entry.values["version"] != 0:
            self.is_wrong(entry, f"version {entry.values['version']} is unknown: a broker throws an exception")
        elif entry.values["producerId"] != added.aborted:
            self.is_wrong(entry, f"the ABORT marker at its lastOffset belongs to producer {added.aborted}")
        elif added.entry is None:
            self._without_data(entry)
        else:
            self._compare(entry, added.entry)
        self.advance()

    def _lacking(self, rebuilt: TxnIndexEntry | None) -> None:
        if rebuilt is None or self.verdict.path is None:
            return
        if self.compacted:
            self.verdict.because("compacted")
        else:
            reason = "no entry for this ABORT marker: read_committed consumers receive the records that it aborted"
            self.lacks(dict(rebuilt._asdict()), reason)

    def _without_data(self, entry: Entry) -> None:
        if entry.values["firstOffset"] < self.known_from:
            self.verdict.because("startUnknown")
        elif self.compacted:
            self.verdict.because("compacted")
        else:
            self.is_wrong(entry, "there is no transaction data before the ABORT marker")

    def _unmatched(self, entry: Entry) -> None:
        if self.compacted:
            self.verdict.because("compacted")
        else:
            self.is_wrong(entry, "no ABORT marker has that lastOffset")

    def _compare(self, entry: Entry, rebuilt: TxnIndexEntry) -> None:
        first, stable = entry.values["firstOffset"], entry.values["lastStableOffset"]
        if first != rebuilt.firstOffset:
            if first < self.known_from:
                self.verdict.because("startUnknown")
            elif self.compacted and first < rebuilt.firstOffset:
                self.verdict.because("compacted")
            else:
                self.is_wrong(entry, f"the transaction started at offset {rebuilt.firstOffset}")
                return
        if stable == rebuilt.lastStableOffset:
            return
        if stable > rebuilt.lastStableOffset == rebuilt.lastOffset + 1:
            self._later[stable] = (self.number, entry)
        elif stable < min(self.known_from, rebuilt.lastStableOffset):
            self.verdict.because("startUnknown")
        elif self.compacted and stable < rebuilt.lastStableOffset:
            self.verdict.because("compacted")
        else:
            self.is_wrong(entry, f"the last stable offset after the marker was {rebuilt.lastStableOffset}")

    def _began(self, offset: int) -> None:
        """Settle the entries in `_later` when a transaction begins: the last stable offset of a marker already accounts
        for a transaction that was appended together with it."""
        for stable in [stable for stable in self._later if stable <= offset]:
            number, entry = self._later.pop(stable)
            if stable == offset:
                self.verdict.because("laterTransaction")
            else:
                self._too_high(number, entry)
        for number, entry in self._later.values():
            self._too_high(number, entry)
        self._later.clear()

    def _too_high(self, number: int, entry: Entry) -> None:
        self.pending.append((number, entry, "its lastStableOffset is above the one after the marker"))

    def finish(self, rebuilt: bytes, valid_end: int, size: int, *, is_stopped: bool) -> None:
        while self.entry is not None:
            if is_stopped:
                self.verdict.because("behindTheCut")
            else:
                self._unmatched(self.entry)
            self.advance()
        for number, entry in self._later.values():
            self._too_high(number, entry)
        self.report(rebuilt)
