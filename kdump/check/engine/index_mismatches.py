"""Compares one index with its segment, entry by entry, and reports every wrong entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kdump.check.finding import Code
from kdump.check.partition_context import PartitionContext
from kdump.check.rule import BatchContext, SegmentContext
from kdump.check.rules.indexes import INDEX_PADDING, IndexRule, OffsetIndexRule
from kdump.check.rules.time_index import TimeIndexRule
from kdump.log.batch_validity import is_intact
from kdump.log.entries import Entry, EntryRun, entry_runs
from kdump.log.file_kinds import INDEX, TIME_INDEX, FileKind
from kdump.log.legacy_records import read_wrapper
from kdump.log.partition_directory import SegmentFiles
from kdump.log.paths import Target
from kdump.log.region import Batch, LegacyRecordBatch, Limits, Region
from kdump.log.region_reader import regions
from kdump.log.window import Window

MAX_MISMATCHES = 100_000
"""Maximum number of wrong entries reported per file; an index has up to 1.3 million entries."""


class IndexMismatch(NamedTuple):
    """A wrong entry, or bytes that are not an entry, and the reason. `code`: that of the finding (check/catalogue.py);
    `before`: the last entry before it that was in ascending order."""

    code: str
    entry: Entry | Region
    message: str
    expected: Any = None
    before: Entry | None = None


def wrong_entries(
    index: Target,
    kind: FileKind,
    window: Window,
    log: Target,
    log_window: Window,
    limits: Limits,
    on_progress: Callable[[int], None] = lambda position: None,
) -> Iterator[IndexMismatch]:
    """Yield the wrong entries of `index`, an index of `kind` INDEX or TIME_INDEX, in order and at most MAX_MISMATCHES.
    The segment at `log` is read once; calls `on_progress` with each position reached in it. Raises SourceError."""
    rule = _RULES[kind](lambda at, kind: entry_runs(kind, window, index.name_offset or 0), _known(log))
    segment = SegmentFiles("", log.name_offset or 0, log, {kind: index})
    part = SegmentContext(segment, log, True, None, 0, log_window.source.size)
    for _ in rule.begin(part):
        pass
    yield from rule.taken()
    for region in regions(log_window, name_offset=log.name_offset, limits=limits):
        on_progress(region.position)
        if isinstance(region, Batch):
            is_valid = is_intact(region)
            if is_valid and isinstance(region, LegacyRecordBatch):
                read_wrapper(region)
            rule.batch(BatchContext(part, region, is_valid, None, None))
        else:
            rule.region(part, region)
        yield from rule.taken()
    rule.rest(part)
    yield from rule.taken()


def _known(log: Target) -> PartitionContext:
    return PartitionContext(topic=log.topic, partition=log.partition)


class _MismatchCollector(IndexRule):
    """Collects every wrong entry (up to MAX_MISMATCHES); verify's rule keeps the first and counts the rest."""

    def __init__(
        self, read: Callable[[Target, FileKind], Iterator[EntryRun | Region]], known: PartitionContext
    ) -> None:
        super().__init__(read, known)
        self.wrong: list[IndexMismatch] = []
        self.count = 0

    def note(self, code: Code, entry: Entry | Region, *, message: str, **more: Any) -> None:
        self.count += 1
        if self.count <= MAX_MISMATCHES and code is not INDEX_PADDING:
            self.wrong.append(IndexMismatch(code.code, entry, message, more.get("expected"), self.before))

    def taken(self) -> list[IndexMismatch]:
        taken, self.wrong = self.wrong, []
        return taken


class _OffsetIndexCollector(_MismatchCollector, OffsetIndexRule):
    pass


class _TimeIndexCollector(_MismatchCollector, TimeIndexRule):
    pass


_RULES: dict[FileKind, type[_OffsetIndexCollector] | type[_TimeIndexCollector]] = {
    INDEX: _OffsetIndexCollector,
    TIME_INDEX: _TimeIndexCollector,
}
