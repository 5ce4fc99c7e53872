"""Family files, indexes: .txnindex files on their own, and compared with the ABORT markers. Whether one is right is
decided in kafka/transaction_index.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any

from kdump.check.finding import Code, Finding
from kdump.check.partition_context import PartitionContext
from kdump.check.resume_state import NUMBER
from kdump.check.rule import NONE, BatchContext, Observer, SegmentContext
from kdump.check.rules.newer_release import newer_release
from kdump.check.rules.offset_index import fault_finding
from kdump.check.watchers.transactions import TransactionWatcher
from kdump.core.column_numbers import BATCH_START, MARKER_SIZE
from kdump.core.header_columns import HeaderColumns
from kdump.format.index import TXN_INDEX_ENTRY
from kdump.kafka.transaction_index import AbortMarker, AbortMarkers, TransactionIndexJudge, entry_problem, newer_entry
from kdump.log.entries import Entry, Item
from kdump.log.packed_entries import PackedEntries
from kdump.log.paths import Target
from kdump.log.region import Region
from kdump.state.transaction_marker import ABORT
from kdump.state.transaction_tracker import CompletedTxn

TXN_INDEX_INVALID = Code("txn-index-invalid")
TXN_INDEX_MISMATCH = Code("txn-index-mismatch")


def invalid_entries(target: Target, items: Iterable[Item]) -> Iterator[Finding]:
    """Yield findings for a .txnindex on its own, given everything in it."""
    last = -1 if target.name_offset is None else target.name_offset - 1
    newer: tuple[Entry, str] | None = None
    """The first entry since which each is of a newer version, and what is wrong with it if an older one follows."""
    for item in items:
        if isinstance(item, Region):
            yield TXN_INDEX_INVALID.finding(target, message=item.reason, position=item.position, size=item.size)
        if not isinstance(item, Entry):
            continue
        values = item.values
        reason = entry_problem(values, last)
        if newer_entry(values["version"]):
            newer = newer or (item, reason)
            continue  # with other fields, perhaps
        if newer is not None:
            first, message = newer
            yield TXN_INDEX_INVALID.finding(target, message=message, position=first.position, size=first.size)
            newer = None
        if reason:
            yield TXN_INDEX_INVALID.finding(target, message=reason, position=item.position, size=item.size)
        last = max(last, values["lastOffset"])
    if newer is not None:
        first, _ = newer
        yield newer_release(target, newer_entry(first.values["version"]), first.position, first.size)


LARGEST_OFFSET = 2**63 - 1
Begins = Callable[[SegmentContext, AbortMarker, int], bool]
"""Segment, one of its markers, offset -> whether the next transaction after the marker begins at that offset."""


class TxnIndexRule(Observer):
    """Checks that a segment's .txnindex matches its ABORT markers."""

    saved_fields = {"first": NUMBER}

    def __init__(
        self, transactions: TransactionWatcher, context: PartitionContext, entries: Any, begins: Begins
    ) -> None:
        self.transactions, self.known = transactions, context
        self.entries = entries
        """Segment -> the segment's .txnindex (None: there is none) and (position, values) of each entry; None if it
        cannot be read."""
        self.begins = begins
        self.first: int | None = None
        """First offset on the disk."""
        self.aborts = AbortMarkers()

    def begin(self, part: SegmentContext) -> Iterable[Finding]:
        self.aborts = AbortMarkers()
        return NONE

    def batch(self, seen: BatchContext) -> Iterable[Finding]:
        if self.first is None and seen.is_valid:
            self.first = seen.batch.baseOffset
        if self.transactions.ended is not None:
            self._ended(self.transactions.ended, seen.batch.position, seen.batch.size)
        return NONE

    def accept_run(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> None:
        for row, ended in self.transactions.ended_in_run:
            self._ended(ended, heads.of(row, BATCH_START) + heads.shift, MARKER_SIZE)

    def _ended(self, ended: CompletedTxn, position: int, size: int) -> None:
        if ended.marker.type == ABORT:
            aborted = ended.transaction
            start = self.known.log_start
            whole = aborted is not None and (start is None or aborted.first_offset >= start)
            first = aborted.first_offset if aborted is not None else -1
            stable = min(ended.stable, LARGEST_OFFSET)  # after a marker at that offset, it would not fit in 64 bits
            self.aborts.add(AbortMarker(ended.offset, ended.producer_id, first, stable, position, size, whole))

    def first_suspect(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        return first if self.first is None else stop

    def finish(self, part: SegmentContext) -> Iterable[Finding]:
        read = self.entries(part)
        if read is None or self.transactions.damages:
            return NONE
        return list(self._compare(part, *read))

    def _compare(self, part: SegmentContext, target: Target | None, entries: PackedEntries) -> Iterator[Finding]:
        if target is None:
            yield from self._no_index(part)
            return
        begins = partial(self.begins, part)
        judge = TransactionIndexJudge(self.aborts, self.first or 0, bool(self.known.compacted), begins)
        size = TXN_INDEX_ENTRY.size
        faults = (
            judge.entry(Entry("", position, size, b"", values))
            for position, values in entries
            if values["lastOffset"] >= part.start_offset
        )
        for fault in chain(faults, judge.missing()):
            if fault is not None:
                found = fault_finding(TXN_INDEX_MISMATCH, target, fault, "unwritten" if fault.is_usable else "")
                yield found.given({"logDamaged": False})

    def _no_index(self, part: SegmentContext) -> Iterator[Finding]:
        missing = 0
        first: AbortMarker | None = None
        for abort in self.aborts.rest():
            missing += bool(abort.whole)
            first = abort if first is None and abort.whole else first
        if first is not None and not self.known.compacted:
            markers = f"ABORT marker at offset {first.offset}"
            if missing > 1:
                markers = f"{missing} ABORT markers from offset {first.offset} on"
            message = f"{markers}, with their data on this disk, but the segment has no .txnindex"
            yield TXN_INDEX_MISMATCH.finding(
                part.target, message=message, position=first.position, size=first.size, offset=first.offset
            )
