"""What a consumer with isolation.level=read_committed receives of a segment: no control batches, no batches of aborted
transactions, and nothing at or above the last stable offset.

A segment alone does not show this: transactions begin in earlier segments and end in later ones. So the headers and
markers of the log are first read up to its end, starting at this segment or at an earlier one whose producer snapshot
lists the transactions open there; and so are the .txnindex files, which brokers use.

Source: org.apache.kafka.clients.consumer.internals.CompletedFetch, TransactionIndex.collectAbortedTxns,
UnifiedLog.fetchLastStableOffsetMetadata.
"""

from __future__ import annotations

import os
import threading
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from kdump.check.engine.neighbor_files import NeighborFiles
from kdump.check.options import Options
from kdump.check.partition_context import PartitionContext
from kdump.check.rule import BatchContext, Observer, SegmentContext
from kdump.check.totals import CheckTotals
from kdump.check.watchers.txn_index_entries import close
from kdump.forensics.partition_scan import PartitionScan
from kdump.format.count_text import count_text
from kdump.log.batch_validity import impossible_count
from kdump.log.entries import Entry
from kdump.log.errors import SourceError
from kdump.log.file_kinds import TXN_INDEX
from kdump.log.log_directory import directory_above
from kdump.log.partition_directory import PartitionDirectory, SegmentFiles, one_file, partition
from kdump.log.paths import Target
from kdump.log.region import Batch
from kdump.log.run import PLAIN_RUN, Limits, Run
from kdump.log.source import Source
from kdump.log.window import Window
from kdump.state.marker import ABORT

Say = Callable[[str], None]


class _Collect(Observer):
    """Fills a ReadCommittedView while a partition is scanned."""

    def __init__(self, scan: PartitionScan, view: ReadCommittedView) -> None:
        self.scan = scan
        self.view = view
        if scan.seeded_from is not None:
            view.snapshot = os.path.basename(scan.seeded_from.path)

    def begin(self, part: SegmentContext) -> None:
        self.view.segments += 1

    def batch(self, seen: BatchContext) -> None:
        self._by_index()
        if seen.batch.isTransactional:
            self.view.has_transactions = True
        ended = self.scan.transactions.ended
        if ended is not None and ended.marker.type == ABORT and ended.transaction is not None:
            self.view.add(ended.producer_id, ended.transaction.first_offset, ended.offset)

    def finish(self, part: SegmentContext) -> None:
        self._by_index()

    def _by_index(self) -> None:
        """Add the transactions that only the .txnindex lists."""
        entries = self.scan.entries_of_index
        for found in (entries.lost, entries.unmatched):
            for lost in found:
                self.view.add_entry(lost.entry)
            found.clear()


class ReadCommitted:
    """The gate of one run (kdump.log.selection.BatchFilter): call `turn_to` for each file before its batches are shown.
    `say` is called with lines on what was taken into account and what was left out."""

    def __init__(self, limits: Limits, say: Say) -> None:
        self.limits = limits
        self.say = say
        self.view = ReadCommittedView()
        self.left_out = HiddenRecords()
        self._folder: str | None = None
        self._run = PLAIN_RUN
        self._lock = threading.Lock()  # batches are shown by several threads

    def sees(self, batch: Batch) -> bool:
        """Return True if the consumer receives the batch's records; else count them as left out."""
        view, out = self.view, self.left_out
        if batch.isControlBatch:
            with self._lock:
                out.control_batches += 1
            return False
        first = batch.lastOffset if batch.baseOffset is None else batch.baseOffset
        if batch.isTransactional and batch.producerId is not None:
            marker = view.aborted(batch.producerId, first)
            if marker is not None:
                with self._lock:
                    out.aborted_batches += 1
                    out.aborted_records += batch.possible_records
                    out.uncounted += impossible_count(batch) is not None
                    if len(out.transactions) < MAX_ABORTED_TRANSACTIONS:
                        out.transactions.add((batch.producerId, marker))
                return False
        if view.stable is not None and first >= view.stable:
            with self._lock:
                out.unstable_batches += 1
                out.unstable_records += batch.possible_records
                out.uncounted += impossible_count(batch) is not None
            return False
        return True

    def turn_to(self, target: Target, window: Window, run: Run = PLAIN_RUN) -> None:
        """Prepare for the batches of this file. Calls `run.more` with the number of bytes read. Raises
        SourceError."""
        self._run = Run(self.limits, more=run.more)
        is_stream = target.path == "-" or "://" in target.path
        folder = "" if is_stream else os.path.dirname(os.path.abspath(target.path))
        name = os.path.basename(target.path)
        place = None
        if not is_stream:
            above = directory_above(target.path)
            place = above if isinstance(above, PartitionDirectory) else partition(folder)
        index = None
        if place is not None:
            names = [os.path.basename(segment.log.path) if segment.log else "" for segment in place.segments]
            index = names.index(name) if name in names else None
        if place is None or index is None:
            self._folder = None
            self._read_view(
                one_file(target, SegmentFiles("", target.name_offset or 0, target)), window, alone=True, name=name
            )
            return
        if folder == self._folder and self.view.start <= place.segments[index].offset:
            return
        self._folder = folder
        place = place.with_segments(place.segments[_start(place, index, self._options()) :])
        self._read_view(place, None, alone=False, name=os.path.basename(folder))

    def _options(self, window: Window | None = None) -> Options:
        if window is None:
            return Options.of(self._run)
        return Options.of(self._run, open_source=lambda path: _Shared(window.source))

    def _read_view(self, place: PartitionDirectory, window: Window | None, *, alone: bool, name: str) -> None:
        totals = CheckTotals()
        first = place.segments[0].offset
        self.view = view = ReadCommittedView(start=first, alone=alone)
        scan = PartitionScan(place, PartitionContext(last=None), self._options(window), totals)
        for _ in scan.run(_Collect(scan, view)):
            pass
        for target in place.orphans:  # of segments that are missing here
            if target.kind is TXN_INDEX and (target.name_offset or 0) >= first:
                view.indexes += 1
                for item in scan.neighbor_files.entries(target, TXN_INDEX):
                    if isinstance(item, Entry):
                        close(scan.transactions, item.values)
                        view.add_entry(item.values)
        view.indexes += scan.entries_of_index.files
        view.sort()
        tracker = scan.transactions.state
        if view.is_full or tracker.untracked:
            limit_text = f"{len(tracker.open)} open" if tracker.untracked else f"{MAX_ABORTED_TRANSACTIONS} aborted"
            raise SourceError(f"{place.path}: more than {limit_text} transactions; pass its segments one by one")
        view.stable, view.held_by = tracker.first_undecided, next(iter(tracker.open), None)
        view.damages = scan.transactions.damages
        view.unread = totals.unread
        concerned = view.has_transactions or view.count or view.damages or view.snapshot or view.unread
        for line in () if not concerned else describe_view(view, name, starts_late=first > 0 and not view.snapshot):
            self.say(line)

    def end(self) -> None:
        """Report what was left out."""
        text = self.left_out.text()
        self.say(f"read committed: left out {text}" if text else "read committed: nothing was left out")


def _start(place: PartitionDirectory, index: int, options: Options) -> int:
    """Return the number of the last segment up to `index` with a valid producer snapshot at its base offset, which
    lists the open transactions; 0 if there is none."""
    snapshots = {target.name_offset: target for target in place.snapshots}
    for number in range(index, 0, -1):
        target = snapshots.get(place.segments[number].offset)
        if target is not None and NeighborFiles(options, CheckTotals()).snapshot(target) is not None:
            return number
    return 0


class _Shared:
    """A source that the caller closes: it is read here before it is shown."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def release(self, position: int) -> None:
        pass

    def close(self) -> None:
        pass


MAX_ABORTED_TRANSACTIONS = 2_000_000
"""Maximum number of aborted transactions kept in memory; a log with more can only be shown segment by segment."""


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


def describe_view(view: ReadCommittedView, name: str, *, starts_late: bool) -> Iterator[str]:
    """Yield lines on what was taken into account and what could not be."""
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
