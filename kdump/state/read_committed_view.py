"""The aborted transactions and the last stable offset of a log, and counts of what they hide from a consumer."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from kdump.format.count_text import count_text

MAX_ABORTED_TRANSACTIONS = 2_000_000
"""Maximum number of aborted transactions kept in memory; a log with more can only be shown segment by segment."""


MAX_NAMED = 3
"""Maximum number of transactions that a line names."""


@dataclass
class HiddenRecords:
    """Counts of what was left out. `transactions`: the aborted ones whose batches were left out, as (producer ID,
    marker offset)."""

    control_batches: int = 0
    aborted_batches: int = 0
    aborted_records: int = 0
    transactions: set[tuple[int, int]] = field(default_factory=set)
    unstable_batches: int = 0
    unstable_records: int = 0
    below_start_batches: int = 0
    below_start_records: int = 0
    uncounted: int = 0
    """Number of the aborted and unstable batches whose record count cannot be true."""

    def text(self) -> str:
        """Return the counts in words; empty if nothing was left out."""
        parts = []
        if self.control_batches:
            parts.append(count_text(self.control_batches, "control batch", "control batches"))
        if self.aborted_batches:
            whose = count_text(len(self.transactions), "aborted transaction")
            parts.append(f"{count_text(self.aborted_records, 'record')} of {whose}")
        if self.below_start_batches:
            parts.append(f"{count_text(self.below_start_records, 'record')} below the log start offset")
        if self.unstable_batches:
            parts.append(f"{count_text(self.unstable_records, 'record')} at or above the last stable offset")
        if self.uncounted:
            parts.append(f"{count_text(self.uncounted, 'batch', 'batches')} whose recordCount cannot be true")
        return ", ".join(parts)


@dataclass
class ReadCommittedView:
    """The state of a log from offset `start` on: the aborted transactions by producer ID, as their first offsets and
    the offsets of their markers, in order; and the last stable offset (None: no transaction is open)."""

    start: int = 0
    log_start: int = 0
    stable: int | None = None
    held_by: int | None = None
    firsts: dict[int, array[int]] = field(default_factory=dict)
    lasts: dict[int, array[int]] = field(default_factory=dict)
    count: int = 0
    is_full: bool = False
    """More aborted transactions than MAX_ABORTED_TRANSACTIONS: nothing can be shown."""
    segments: int = 0
    indexes: int = 0
    snapshot: str = ""
    alone: bool = False
    damages: int = 0
    has_transactions: bool = False
    by_index: int = 0
    """Aborted transactions known only from a .txnindex."""
    unlisted: list[tuple[int, int, int]] = field(default_factory=list)
    """Transactions with an ABORT marker that the .txnindex of its segment does not list, the first MAX_NAMED of
    `unlisted_count`: producer ID, first offset, marker offset."""
    unlisted_count: int = 0
    unread: list[str] = field(default_factory=list)

    def add(self, producer_id: int, first: int, last: int) -> None:
        if self.count >= MAX_ABORTED_TRANSACTIONS:
            self.is_full = True
            return
        self.count += 1
        self.firsts.setdefault(producer_id, array("q")).append(first)
        self.lasts.setdefault(producer_id, array("q")).append(last)

    def add_entry(self, entry: dict[str, int]) -> None:
        """Add the transaction of a .txnindex entry."""
        self.add(entry["producerId"], entry["firstOffset"], entry["lastOffset"])
        self.by_index += 1

    def add_unlisted(self, producer_id: int, first: int, last: int) -> None:
        """Note an aborted transaction that the .txnindex does not list."""
        self.unlisted_count += 1
        if len(self.unlisted) < MAX_NAMED:
            self.unlisted.append((producer_id, first, last))

    def sort(self) -> None:
        """Sort the transactions by marker offset: those from an index may have been added late."""
        for producer_id, lasts in self.lasts.items():
            if any(one > other for one, other in pairwise(lasts)):
                order = sorted(zip(lasts, self.firsts[producer_id]))
                self.lasts[producer_id] = array("q", (last for last, _ in order))
                self.firsts[producer_id] = array("q", (first for _, first in order))

    def aborted(self, producer_id: int, offset: int) -> int | None:
        """Return the offset of the marker that aborted what the producer wrote at `offset`; None if none did."""
        lasts = self.lasts.get(producer_id)
        if lasts is None:
            return None
        index = bisect_left(lasts, offset)
        return lasts[index] if index < len(lasts) and self.firsts[producer_id][index] <= offset else None


def describe_view(view: ReadCommittedView, name: str, *, starts_late: bool, by_markers: bool) -> Iterator[str]:
    """Yield lines on what was taken into account and what could not be. `by_markers`: aborted transactions are those
    of the markers, even if the .txnindex does not list them."""
    if view.unlisted_count:
        aborted = count_text(view.unlisted_count, "aborted transaction")
        named = ", ".join(f"{first}..{last} of producer {producer}" for producer, first, last in view.unlisted)
        more = ", …" if view.unlisted_count > len(view.unlisted) else ""
        it = "not what consumers receive now" if by_markers else "consumers receive their records"
        yield f"{name}: {it}: {aborted} with a marker, but no .txnindex entry (offsets {named}{more})"
    if view.stable is None:
        stable = "no transaction is open at the end"
    else:
        stable = f"last stable offset {view.stable}, where producer {view.held_by} has an open transaction"
        if view.alone:
            stable = (
                f"nothing from offset {view.stable} on: the transaction of producer {view.held_by} does not end here"
            )
    taken = "only this file" if view.alone else count_text(view.segments, "segment")
    if view.snapshot:
        taken += f", open transactions from {view.snapshot}"
    if view.indexes:
        taken += f", {count_text(view.indexes, '.txnindex', '.txnindexes')}"
    yield f"{name}: read committed: {stable}; based on {taken}"
    if view.alone:
        yield f"{name}: transactions that start or end in other segments are unknown"
    elif starts_late:
        yield f"{name}: no valid .snapshot at offset {view.start}: transactions that started before are unknown"
    if view.damages:
        yield (
            f"{name}: {count_text(view.damages, 'damaged byte range')}: how transactions ended there is unknown; run"
            " kdump transactions to list them"
        )
    if view.by_index:
        aborted = count_text(view.by_index, "aborted transaction")
        yield f"{name}: {aborted} known only from a .txnindex, without a marker"
    yield from view.unread
