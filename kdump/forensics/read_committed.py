"""What a consumer with isolation.level=read_committed sees of a segment: no control batch, no batch of a transaction
that was aborted, and nothing at or above the last stable offset.

A segment alone does not tell: transactions begin in earlier segments and end in later ones. So the whole log from this
segment on is read beforehand, by its headers and markers, beginning at a snapshot of producer states that says what was
open there; and the .txnindex files, which are what a broker goes by.

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

from kdump.check.options import Options
from kdump.check.rule import Known, Part, Seen
from kdump.check.totals import Totals
from kdump.forensics.walk import Walk, Watch
from kdump.log.disk import Partition, Segment, partition
from kdump.log.entries import Entry
from kdump.log.errors import SourceError
from kdump.log.kinds import TXN_INDEX
from kdump.log.paths import Target
from kdump.log.region import Batch, Limits
from kdump.log.source import Source
from kdump.log.window import Window
from kdump.state.marker import ABORT

MOST_ABORTED = 2_000_000
"""Aborted transactions that are kept in mind; a log that has more is shown by parts."""
Say = Callable[[str], None]


@dataclass
class LeftOut:
    """What was kept back. `transactions` are those of which records were."""

    control_batches: int = 0
    aborted_batches: int = 0
    aborted_records: int = 0
    transactions: set[tuple[int, int]] = field(default_factory=set)
    unstable_batches: int = 0
    unstable_records: int = 0

    def text(self) -> str:
        """In words; empty if there is nothing."""
        said = []
        if self.control_batches:
            said.append(_many(self.control_batches, "control batch", "control batches"))
        if self.aborted_batches:
            whose = _many(len(self.transactions), "aborted transaction")
            said.append(f"{_many(self.aborted_records, 'record')} of {whose}")
        if self.unstable_batches:
            said.append(f"{_many(self.unstable_records, 'record')} at or above the last stable offset")
        return ", ".join(said)


@dataclass
class View:
    """What is known of a log from offset `start` on: the aborted transactions by producer id, as their first offsets
    and those of their markers, in order; and the last stable offset."""

    start: int = 0
    stable: int | None = None
    held_by: int | None = None
    firsts: dict[int, array[int]] = field(default_factory=dict)
    lasts: dict[int, array[int]] = field(default_factory=dict)
    count: int = 0
    is_full: bool = False
    """There were more aborted transactions than are kept: nothing can be shown."""
    segments: int = 0
    indexes: int = 0
    snapshot: str = ""
    alone: bool = False
    damages: int = 0
    by_index: int = 0
    """Aborted transactions that only a .txnindex tells of."""
    unread: list[str] = field(default_factory=list)

    def add(self, producer_id: int, first: int, last: int) -> None:
        if self.count >= MOST_ABORTED:
            self.is_full = True
            return
        self.count += 1
        self.firsts.setdefault(producer_id, array("q")).append(first)
        self.lasts.setdefault(producer_id, array("q")).append(last)

    def sort(self) -> None:
        """Put what an index told later in its place."""
        for producer_id, lasts in self.lasts.items():
            if any(one > other for one, other in pairwise(lasts)):
                order = sorted(zip(lasts, self.firsts[producer_id]))
                self.lasts[producer_id] = array("q", (last for last, _ in order))
                self.firsts[producer_id] = array("q", (first for _, first in order))

    def aborted(self, producer_id: int, offset: int) -> int | None:
        """The offset of the marker that aborted what the producer wrote at `offset`; None if none did."""
        lasts = self.lasts.get(producer_id)
        if lasts is None:
            return None
        index = bisect_left(lasts, offset)
        return lasts[index] if index < len(lasts) and self.firsts[producer_id][index] <= offset else None


class _Collect(Watch):
    """Fills a view as a walk goes by."""

    def __init__(self, walk: Walk, view: View) -> None:
        self.walk = walk
        self.view = view
        self.ends: set[int] = set()
        found = walk.snapshot_at_start()
        if found is not None:
            at, rows = found
            view.snapshot = os.path.basename(at.path)
            for position, entry in rows:
                walk.transactions.state.seed(at, position, 38, entry)

    def begin(self, part: Part) -> Any:
        self.ends = set()
        self.view.segments += 1
        return ()

    def batch(self, seen: Seen) -> Any:
        ended = self.walk.transactions.ended
        if ended is not None and ended.marker.type == ABORT:
            self.ends.add(ended.offset)
            if ended.transaction is not None:
                self.view.add(ended.producer_id, ended.transaction.first_offset, ended.offset)
        return ()

    def finish(self, part: Part) -> Any:
        """What only the index tells."""
        read = self.walk.aborted(part)
        if read is None or read[0] is None:
            return ()
        self.view.indexes += 1
        for _, entry in read[1]:
            if entry["lastOffset"] not in self.ends:
                self.walk.close_by_index(entry)
                self.view.add(entry["producerId"], entry["firstOffset"], entry["lastOffset"])
                self.view.by_index += 1
        return ()


class ReadCommitted:
    """The gate of one run (kdump.log.select.Gate): `turn_to` each file before its batches are shown. `say` gets the
    lines that tell what was taken into account, and what was left out."""

    def __init__(self, limits: Limits, say: Say) -> None:
        self.limits = limits
        self.say = say
        self.view = View()
        self.left_out = LeftOut()
        self._folder: str | None = None
        self._lock = threading.Lock()  # batches are shown by several threads

    def sees(self, batch: Batch) -> bool:
        """Whether the consumer gets the batch's records."""
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
                    out.aborted_records += batch.recordCount or 0
                    if len(out.transactions) < MOST_ABORTED:
                        out.transactions.add((batch.producerId, marker))
                return False
        if view.stable is not None and first >= view.stable:
            with self._lock:
                out.unstable_batches += 1
                out.unstable_records += batch.recordCount or 0
            return False
        return True

    def turn_to(self, at: Target, window: Window) -> None:
        """The batches that are asked about next are those of this file. Raises SourceError."""
        is_stream = at.path == "-" or "://" in at.path
        folder = "" if is_stream else os.path.dirname(os.path.abspath(at.path))
        name = os.path.basename(at.path)
        place = None if is_stream else partition(folder)
        index = None
        if place is not None:
            names = [os.path.basename(segment.log.path) if segment.log else "" for segment in place.segments]
            index = names.index(name) if name in names else None
        if place is None or index is None:
            self._folder = None
            self._look(_one(at), window, alone=True, name=name)
            return
        if folder == self._folder and self.view.start <= place.segments[index].offset:
            return
        self._folder = folder
        place.segments = place.segments[_start(place, index, self._options()) :]
        self._look(place, None, alone=False, name=os.path.basename(folder))

    def _options(self, window: Window | None = None) -> Options:
        if window is None:
            return Options(limits=self.limits)
        return Options(limits=self.limits, open_source=lambda path: _Shared(window.source))

    def _look(self, place: Partition, window: Window | None, *, alone: bool, name: str) -> None:
        totals = Totals()
        first = place.segments[0].offset
        self.view = view = View(start=first, alone=alone)
        walk = Walk(place, Known(last=None), self._options(window), totals)
        for _ in walk.run(_Collect(walk, view)):
            pass
        for at in place.orphans:  # of segments that are not here
            if at.kind is TXN_INDEX and (at.name_offset or 0) >= first:
                view.indexes += 1
                for item in walk.entries(at, TXN_INDEX):
                    if isinstance(item, Entry):
                        walk.close_by_index(item.values)
                        view.add(item.values["producerId"], item.values["firstOffset"], item.values["lastOffset"])
                        view.by_index += 1
        view.sort()
        tracker = walk.transactions.state
        if view.is_full or tracker.untracked:
            many = f"{len(tracker.open)} open" if tracker.untracked else f"{MOST_ABORTED} aborted"
            raise SourceError(f"{place.path}: more than {many} transactions: show its segments one by one")
        view.stable, view.held_by = tracker.first_undecided, next(iter(tracker.open), None)
        view.damages = walk.transactions.damages
        view.unread = totals.unread
        for line in said(view, name, starts_late=first > 0 and not view.snapshot):
            self.say(line)

    def end(self) -> None:
        """Tell what was left out."""
        text = self.left_out.text()
        self.say(f"read committed: left out {text}" if text else "read committed: nothing was left out")


def said(view: View, name: str, *, starts_late: bool) -> Iterator[str]:
    """What was taken into account, and what could not be."""
    if view.stable is None:
        stable = "no transaction is open at its end"
    else:
        stable = f"last stable offset {view.stable}, where producer {view.held_by} has a transaction open"
        if view.alone:
            stable = f"nothing from offset {view.stable} on: the transaction of producer {view.held_by} has no end here"
    taken = "this file alone" if view.alone else _many(view.segments, "segment")
    if view.snapshot:
        taken += f", what was open by {view.snapshot}"
    if view.indexes:
        taken += f", {_many(view.indexes, '.txnindex', '.txnindexes')}"
    yield f"{name}: read committed: {stable}; taken into account: {taken}"
    if view.alone:
        yield f"{name}: what other segments say of transactions that begin or end outside it is not known"
    elif starts_late:
        yield f"{name}: no sound .snapshot says what was open at offset {view.start}: what began before is not known"
    if view.damages:
        yield (
            f"{name}: {_many(view.damages, 'damaged stretch', 'damaged stretches')}: how transactions ended there is"
            " not known; kdump transactions tells which they are"
        )
    if view.by_index:
        yield f"{name}: {_many(view.by_index, 'aborted transaction')} known by a .txnindex alone, without a marker"
    yield from view.unread


def _start(place: Partition, index: int, options: Options) -> int:
    """The last segment up to `index` of which a sound snapshot says what was open where it begins; else the first."""
    snapshots = {at.name_offset: at for at in place.snapshots}
    for number in range(index, 0, -1):
        at = snapshots.get(place.segments[number].offset)
        if at is not None and Walk(place, Known(), options, Totals()).snapshot(at) is not None:
            return number
    return 0


def _one(at: Target) -> Partition:
    return Partition(at.path, at.source, at.topic, at.partition, "", [Segment("", at.name_offset or 0, at)])


class _Shared:
    """A source that somebody else closes: it is read before it is shown."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def release(self, position: int) -> None:
        pass

    def close(self) -> None:
        pass


def _many(count: int, one: str, more: str = "") -> str:
    return f"{count:,} {one if count == 1 else more or one + 's'}"
