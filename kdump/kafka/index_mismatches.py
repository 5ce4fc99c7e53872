"""Compares one index with its segment, entry by entry, and yields every wrong entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from kdump.io.run import PLAIN_RUN, Run
from kdump.io.window import Window
from kdump.kafka.index_judge import ZEROS, Fault
from kdump.kafka.offset_index_judge import OffsetIndexJudge
from kdump.kafka.time_index_judge import TimeIndexJudge
from kdump.log.batch_validity import is_valid
from kdump.log.entries import entry_runs
from kdump.log.file_kinds import INDEX, FileKind
from kdump.log.paths import Target
from kdump.log.region import Batch, Region
from kdump.log.region_reader import Depth, regions
from kdump.log.walk import RegionObserver, walk

MAX_MISMATCHES = 100_000
"""Maximum number of wrong entries reported per file; an index has up to 1.3 million entries."""


def wrong_entries(
    index: Target,
    kind: FileKind,
    window: Window,
    log: Target,
    log_window: Window,
    run: Run = PLAIN_RUN,
) -> Iterator[Fault]:
    """Yield the wrong entries of `index`, an index of `kind` INDEX or TIME_INDEX, in order and at most MAX_MISMATCHES.
    The segment at `log` is read once; calls `run.at` with each position reached in it. Raises SourceError."""
    comparison = _Comparison(index, kind, window, lambda position: run.at(position, log_window.source.size))
    yield from walk(partial(regions, log_window, name_offset=log.name_offset, limits=run.limits), [comparison])
    comparison.judge.finish(log_window.source.size)
    yield from comparison.wrong


class _Comparison(RegionObserver):
    """Lets the judge of an index see the batches, and answers the entries that it has found wrong."""

    depth = Depth.BATCHES

    def __init__(self, index: Target, kind: FileKind, window: Window, at: Callable[[int], object]) -> None:
        self.wrong: list[Fault] = []
        self.at = at
        self._count = 0
        judge_type = OffsetIndexJudge if kind is INDEX else TimeIndexJudge
        self.judge = judge_type(entry_runs(kind, window, index.name_offset or 0), self._note)

    def _note(self, fault: Fault) -> None:
        self._count += 1
        if self._count <= MAX_MISMATCHES and fault.what != ZEROS:
            self.wrong.append(fault)

    def region(self, region: Region) -> list[Fault]:
        self.at(region.position)
        if not isinstance(region, Batch):
            self.judge.gap(region.end)
        elif not is_valid(region):
            self.judge.invalid_batch(region)
        else:
            self.judge.batch(region)
        wrong, self.wrong = self.wrong, []
        return wrong
