"""What a consumer with isolation.level=read_committed receives of a segment: no control batches, no batches of aborted
transactions, and nothing at or above the last stable offset.

A segment alone does not show this: transactions begin in earlier segments and end in later ones. So the headers and
markers of the log are first read up to its end, starting at this segment or at an earlier one whose producer snapshot
lists the transactions open there; and so are the .txnindex files, from which alone brokers know what is aborted.

Source: org.apache.kafka.clients.consumer.internals.CompletedFetch, TransactionIndex.collectAbortedTxns,
UnifiedLog.fetchLastStableOffsetMetadata."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from kdump.check.engine.neighbor_files import NeighborFiles
from kdump.check.engine.partition_scan import PartitionScan
from kdump.check.engine.rule_list import ledger_rules
from kdump.check.log_dir_context import Surroundings
from kdump.check.options import Options
from kdump.check.partition_context import PartitionContext
from kdump.check.rule import BatchContext, Observer, SegmentContext
from kdump.check.totals import CheckTotals
from kdump.check.watchers.txn_index_entries import close
from kdump.core.batch_scan import FURTHEST
from kdump.core.header_columns import HeaderColumns, is_plain_batch
from kdump.format.batch_header import COMPRESSION, TIMESTAMP_TYPE
from kdump.io.directory_listing import parent
from kdump.io.errors import SourceError
from kdump.io.run import PLAIN_RUN, Limits, Run
from kdump.io.source import Source
from kdump.io.window import Window
from kdump.log.batch_validity import impossible_count
from kdump.log.entries import Entry
from kdump.log.file_kinds import TXN_INDEX
from kdump.log.log_directory import directory_above
from kdump.log.partition_directory import PartitionDirectory, SegmentFiles, one_file, partition
from kdump.log.paths import Target
from kdump.log.region import Batch
from kdump.state.read_committed_view import MAX_ABORTED_TRANSACTIONS, HiddenRecords, ReadCommittedView, describe_view
from kdump.state.transaction_marker import ABORT

Say = Callable[[str], None]


UNCONCERNED = COMPRESSION.mask | TIMESTAMP_TYPE.mask
"""Attribute bits that batches outside transactions may have."""


class _Collect(Observer):
    """Fills a ReadCommittedView while a partition is scanned."""

    def __init__(self, scan: PartitionScan, view: ReadCommittedView, by_markers: bool) -> None:
        self.scan, self.view, self.by_markers = scan, view, by_markers
        scan.entries_of_index.keeps = True
        if scan.seeded_from is not None:
            view.snapshot = os.path.basename(scan.seeded_from.path)

    def begin(self, part: SegmentContext) -> None:
        self.view.segments += 1

    def first_suspect(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        return is_plain_batch(heads, first, stop, UNCONCERNED, FURTHEST, False)

    def batch(self, seen: BatchContext) -> None:
        self._by_index()
        if seen.batch.isTransactional:
            self.view.has_transactions = True
        ended = self.scan.transactions.ended
        if ended is not None and ended.marker.type == ABORT and ended.transaction is not None:
            aborted = (ended.producer_id, ended.transaction.first_offset, ended.offset)
            entries = self.scan.entries_of_index
            if entries.entry is not None and not self.by_markers:
                aborted = (ended.producer_id, entries.entry["firstOffset"], ended.offset)
            is_listed = entries.entry is not None or not entries.is_valid or seen.part.recovers
            if is_listed or self.by_markers:
                self.view.add(*aborted)
            if not is_listed:
                self.view.add_unlisted(*aborted)

    def finish(self, part: SegmentContext) -> None:
        self._by_index()

    def _by_index(self) -> None:
        """Add the transactions that only the .txnindex lists: because of damage, or against the markers."""
        entries = self.scan.entries_of_index
        for lost in (*entries.lost, *(entries.unmatched if not self.by_markers else ())):
            self.view.add_entry(lost.entry)
        entries.lost.clear()
        entries.unmatched.clear()


def surroundings_of_gates(limits: Limits) -> Surroundings:
    """Return what several ReadCommitted may share, so that each directory around the files is read once. Coordinators
    are not needed."""
    return Surroundings(Options.of(Run(limits), only=frozenset({"indexes"})))


class ReadCommitted:
    """The gate of one run (kdump.log.selection.BatchFilter): call `turn_to` for each file before its batches are shown.
    `say` is called with lines on what was taken into account and what was left out. `by_markers`: aborted transactions
    are those of the markers, not those of the .txnindex files, from which alone brokers tell consumers.
    `surroundings`: see surroundings_of_gates; by default its own."""

    def __init__(
        self, limits: Limits, say: Say, *, by_markers: bool = False, surroundings: Surroundings | None = None
    ) -> None:
        self.limits, self.say, self.by_markers = limits, say, by_markers
        self.view = ReadCommittedView()
        self.left_out = HiddenRecords()
        self._folder: str | None = None
        self._surroundings, self._run = surroundings, PLAIN_RUN
        self._lock = threading.Lock()  # batches are shown by several threads

    def sees(self, batch: Batch) -> bool:
        """Return True if the consumer receives the batch's records; else count them as left out."""
        view, out = self.view, self.left_out
        if batch.isControlBatch:
            with self._lock:
                out.control_batches += 1
            return False
        first = batch.lastOffset if batch.baseOffset is None else batch.baseOffset
        if batch.lastOffset < view.log_start:
            with self._lock:
                out.below_start_batches += 1
                out.below_start_records += batch.possible_records
            return False
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

    def is_aborted(self, batch: Batch) -> bool | None:
        """Return whether a transactional batch is of an aborted transaction; None if its header does not say whose it
        is."""
        if batch.producerId is None or batch.baseOffset is None:
            return None
        return self.view.aborted(batch.producerId, batch.baseOffset) is not None

    def turn_to(self, target: Target, window: Window, run: Run = PLAIN_RUN) -> None:
        """Prepare for the batches of this file. Calls `run.more` with the number of bytes read. Raises
        SourceError."""
        self._run = Run(self.limits, more=run.more)
        is_stream = target.path == "-" or "://" in target.path
        folder = "" if is_stream else parent(target.path)
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
            file = one_file(target, SegmentFiles("", target.name_offset or 0, target))
            self._read_view(file, PartitionContext(), window, alone=True, name=name)
            return
        if folder == self._folder and self.view.start <= place.segments[index].offset:
            return
        self._folder = folder
        options = self._options()
        if self._surroundings is None:  # coordinators are not needed
            self._surroundings = Surroundings(options)
        known = self._surroundings.of_partition(place)
        number = _start(place, index, options)
        here = place.with_segments(place.segments[number:]) if number else place
        self._read_view(here, known, None, alone=False, name=os.path.basename(folder))

    def _options(self, window: Window | None = None) -> Options:
        only = frozenset({"indexes"})  # not the records: headers and markers state it
        if window is None:
            return Options.of(self._run, only=only)
        return Options.of(self._run, only=only, open_source=lambda path: _Shared(window.source))

    def _read_view(
        self, place: PartitionDirectory, known: PartitionContext, window: Window | None, *, alone: bool, name: str
    ) -> None:
        totals = CheckTotals()
        first = place.segments[0].offset
        self.view = view = ReadCommittedView(start=first, alone=alone)
        scan = PartitionScan(
            place,
            known,
            self._options(window),
            totals,
            lambda scan: [*ledger_rules(scan), _Collect(scan, view, self.by_markers)],
        )
        for _ in scan.findings():
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
            raise SourceError.at(place.path, f"more than {limit_text} transactions; pass its segments one by one")
        view.held_by = scan.held_by
        view.stable = None if view.held_by is None else scan.last_stable_offset
        view.damages = scan.transactions.damages
        view.unread = totals.unread
        view.log_start = max(known.log_start or 0, 0)
        concerned = view.has_transactions or view.count or view.damages or view.snapshot or view.unread
        if concerned:
            starts_late = first > 0 and not view.snapshot
            for line in describe_view(view, name, starts_late=starts_late, by_markers=self.by_markers):
                self.say(line)

    def end(self) -> None:
        """Report what was left out."""
        omitted = self.left_out.text()
        self.say(f"read committed: left out {omitted}" if omitted else "read committed: nothing was left out")


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
