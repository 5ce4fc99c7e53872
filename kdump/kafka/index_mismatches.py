"""Compares one index with its segment, entry by entry, and yields every wrong entry."""

from __future__ import annotations

from collections.abc import Iterator

from kdump.io.run import PLAIN_RUN, Run
from kdump.io.window import Window
from kdump.kafka.index_judge import ZEROS, Fault
from kdump.kafka.offset_index_judge import OffsetIndexJudge
from kdump.kafka.time_index_judge import TimeIndexJudge
from kdump.log.batch_validity import is_valid
from kdump.log.entries import entry_runs
from kdump.log.file_kinds import INDEX, FileKind
from kdump.log.paths import Target
from kdump.log.region import Batch
from kdump.log.region_reader import regions

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
    wrong: list[Fault] = []
    count = 0

    def note(fault: Fault) -> None:
        nonlocal count
        count += 1
        if count <= MAX_MISMATCHES and fault.what != ZEROS:
            wrong.append(fault)

    judge_type = OffsetIndexJudge if kind is INDEX else TimeIndexJudge
    judge = judge_type(entry_runs(kind, window, index.name_offset or 0), note)
    for region in regions(log_window, name_offset=log.name_offset, limits=run.limits):
        run.at(region.position, log_window.source.size)
        if not isinstance(region, Batch):
            judge.gap(region.end)
        elif not is_valid(region):
            judge.invalid_batch(region)
        else:
            judge.batch(region)
        yield from wrong
        wrong.clear()
    judge.finish(log_window.source.size)
    yield from wrong
