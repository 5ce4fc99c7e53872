"""Compares an existing .index or .timeindex with the rebuilt one: what the judges of both (kafka/index_judge.py) call
wrong, and in which ways the rest differs legally."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kdump.kafka.index_builder import INTERVAL
from kdump.kafka.offset_index_judge import PER_APPEND, OffsetIndexJudge
from kdump.kafka.time_index_judge import TimeIndexJudge
from kdump.log.entries import Entry, EntryRun
from kdump.log.region import Batch, Region
from kdump.questions.reindex.verdict import Verdict


class OffsetIndexComparer(OffsetIndexJudge):
    """Compares an .index. `interval`: index.interval.bytes. `here`: an entry has the last offset of the latest batch,
    which it indexes alone or together with batches before it."""

    here = False
    _position = 0  # of the latest batch
    _indexed_to = 0  # position of the last correct entry
    _is_late = False

    def __init__(
        self, runs: Iterator[EntryRun | Region], verdict: Verdict, *, interval: int = INTERVAL, **more: Any
    ) -> None:
        self.verdict, self.interval = verdict, interval
        super().__init__(runs, verdict.note, **more)

    def batch(self, batch: Batch) -> None:
        self.here, self._position = False, batch.position
        super().batch(batch)
        self._is_late = self._is_late or batch.position - self._indexed_to > self.interval

    def confirm(self, entry: Entry, last: int | None) -> None:
        super().confirm(entry, last)
        self.here = entry.values["offset"] == last
        if self._position - self._indexed_to <= self.interval:
            self.verdict.because("otherInterval")
        elif self._is_late:
            self.verdict.because("intervalAnew")
        self._indexed_to, self._is_late = self._position, False

    def unknown(self) -> None:
        self.verdict.because("behindTheCut")

    def written(self, how: str) -> None:
        self.verdict.because(how)
        self.here = how == PER_APPEND

    def finish(self, size: int | None) -> None:
        super().finish(size)
        if self._is_late:
            self.verdict.because("intervalAnew")
        if self.faults or self.verdict.reasons.keys() & {"perAppend", "firstOffset"}:
            self.verdict.reasons.pop("intervalAnew", None)  # batches appended together have at most one entry


class TimeIndexComparer(TimeIndexJudge):
    """Compares a .timeindex. The caller passes each batch to the OffsetIndexComparer first, then here, and calls `due`
    if the .index has an entry for it.

    A broker adds an entry with each entry of the .index, unless no larger timestamp was appended since the previous
    one, and when it rolls, closes or recovers the segment (LogSegment.append, onBecomeInactiveSegment, close)."""

    _expected = -1  # the largest timestamp that an entry should have gone with
    _with_index = True  # whether the last correct entry was added with an entry of the .index

    def __init__(self, runs: Iterator[EntryRun | Region], verdict: Verdict, **more: Any) -> None:
        self.verdict = verdict
        super().__init__(runs, verdict.note, **more)

    def due(self) -> None:
        """Check that there is an entry to go with that of the .index for the last batch."""
        self._with_index = True
        is_next = self.entry is not None and self.entry.values["timestamp"] == self.largest
        if self.largest > max(self.last_time, self._expected) and not is_next:
            self.verdict.because("fewerEntries")
            self._expected = self.largest

    def unknown(self) -> None:
        self.verdict.because("behindTheCut")

    def confirm(self, entry: Entry, last: int | None) -> None:
        super().confirm(entry, last)
        if entry.values["offset"] != last:
            self.verdict.because("recordOffset")
        self._closed_before()
        self._with_index = False

    def _closed_before(self) -> None:
        """Explain the last correct entry, if no .index entry goes with it and it is not the final one: the segment was
        closed there, and appended to later."""
        if not self._with_index:
            self.verdict.because("closedBefore")
            self._with_index = True

    def finish(self, size: int | None) -> None:
        super().finish(size)
        if self.largest > self.last_time:
            self._closed_before()
            if self.may_be_open and self.verdict.path is not None:
                self.verdict.because("notClosed")
