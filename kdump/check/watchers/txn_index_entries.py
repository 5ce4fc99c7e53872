"""The .txnindex entries of a log as it is read: the entry of the current marker, and those whose markers are lost.

If an ABORT marker is lost to damage, its entry still shows where the transaction ended: the transaction is closed
before the next valid batch could be added to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kdump.check.resume_state import NUMBER
from kdump.check.rule import BatchContext, Observer, SegmentContext, may_hide_batches
from kdump.check.watchers.transactions import TransactionWatcher
from kdump.core.column_numbers import ATTRIBUTES, BASE_OFFSET, IS_CONTROL, PRODUCER_ID
from kdump.core.header_columns import HeaderColumns, within
from kdump.log.packed_entries import PackedEntries
from kdump.log.paths import Target
from kdump.log.region import Region
from kdump.state.transaction_marker import ABORT, marker_type
from kdump.state.transaction_tracker import OngoingTxn

IndexedAborts = tuple[Target | None, PackedEntries] | None
"""The .txnindex of a segment, None if it has none and needs none, and its entries; None if it is not valid."""


class EntryWithoutMarker(NamedTuple):
    """An entry without its marker, at byte `position` of file `target`. `transaction`: the open transaction that it
    closed, None if there was none."""

    target: Target
    position: int
    entry: dict[str, int]
    transaction: OngoingTxn | None


class TxnIndexEntries(Observer):
    """Runs before the transaction watcher processes a batch. `is_valid`: the segment has a valid .txnindex, or has none
    and needs none; `entry`: that of the current ABORT marker, None if there is none; `entries_in_run`: those of the
    current run, by the rows of their markers (filled only if `keeps`). `lost`: entries whose markers are
    lost to damage; `unmatched`: entries without a marker in an undamaged segment. Both lists are filled only if
    `keeps`, and whoever sets it removes entries from them."""

    saved_fields = {"files": NUMBER}

    def __init__(self, transactions: TransactionWatcher, read: Callable[[SegmentContext], IndexedAborts]) -> None:
        self.transactions, self.read = transactions, read
        self.files = 0
        self.is_valid = False
        self.lists_all = True
        """Whether every segment since the last damage that may hide batches has a valid .txnindex, or needs none."""
        self.entry: dict[str, int] | None = None
        self.keeps = False
        self.entries_in_run: dict[int, dict[str, int]] = {}
        self.lost: list[EntryWithoutMarker] = []
        self.unmatched: list[EntryWithoutMarker] = []
        self._target: Target | None = None
        self._entries = PackedEntries()
        self._order: range | list[int] = range(0)
        """Numbers of the entries, in the order of their markers."""
        self._next = 0
        self._damaged = False
        self._found: list[tuple[int, int]] = []
        """Markers that first_suspect has found, as their rows and the numbers of their entries."""

    def begin(self, part: SegmentContext) -> None:
        read = self.read(part)
        self.is_valid = read is not None
        self._target, self._entries = read if read is not None else (None, PackedEntries())
        self.files += self._target is not None
        self._order = self._entries.by_last_offset()
        self._next = 0
        self._damaged = False
        self.lists_all = (self.lists_all or not self.transactions.is_doubtful) and self.is_valid

    def region(self, part: SegmentContext, region: Region) -> None:
        self._damaged = self._damaged or may_hide_batches(part, region)

    def batch(self, seen: BatchContext) -> None:
        self.entry = None
        batch = seen.batch if seen.is_valid else seen.repaired
        if batch is None:
            self._damaged = True
            return
        self._pass(batch.lastOffset if batch.baseOffset is None else batch.baseOffset)
        if seen.marker is not None and seen.marker.type == ABORT and self._next < len(self._order):
            _, entry = self._entries[self._order[self._next]]
            if (entry["lastOffset"], entry["producerId"]) == (batch.lastOffset, batch.producerId):
                self.entry = entry
                self._next += 1

    def first_suspect(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        """Return the first batch after a lost marker."""
        self._found = []
        row, number = first, self._next
        while number < len(self._order):
            last_offset, producer_id = self._entries.marker_of(self._order[number])
            row = within(heads, BASE_OFFSET, row, stop, 0, max(last_offset, 0) - 1)
            if row == stop:
                return row
            batch = heads.row(row)
            if batch[BASE_OFFSET] > last_offset:
                return row
            is_marker = batch[ATTRIBUTES] & IS_CONTROL and batch[PRODUCER_ID] == producer_id
            if is_marker and marker_type(heads, row) == ABORT:
                self._found.append((row, number))
                number += 1
            row += 1
        return stop

    def accept_run(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> None:
        self.entry = None
        self.entries_in_run = {}
        for row, number in self._found:
            if row < stop:
                self._next = number + 1
                if self.keeps:
                    self.entries_in_run[row] = self._entries[self._order[number]][1]

    def finish(self, part: SegmentContext) -> None:
        if part.last:
            self._pass(self.transactions.log_end)
            self._damaged = False  # no marker can be above the log end
        self._pass(None)

    def _pass(self, offset: int | None) -> None:
        """Move past the entries below `offset` (None: all that are left): their markers are missing."""
        while self._next < len(self._order):
            number = self._order[self._next]
            if offset is not None and self._entries.last_offset(number) >= offset:
                return
            position, entry = self._entries[number]
            self._next += 1
            assert self._target is not None
            closed = close(self.transactions, entry) if self._damaged else None
            if self.keeps:
                entries = self.lost if self._damaged else self.unmatched
                entries.append(EntryWithoutMarker(self._target, position, entry, closed))


def close(transactions: TransactionWatcher, entry: dict[str, int]) -> OngoingTxn | None:
    """Close and return the open transaction that the entry lists as aborted; None if there is none."""
    producer_id = entry["producerId"]
    running = transactions.state.open.get(producer_id)
    if running is None or running.first_offset > entry["lastOffset"]:
        return None
    transactions.state.loaded.pop(producer_id, None)
    return transactions.state.open.pop(producer_id)
