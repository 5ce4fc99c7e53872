"""The base class of what sees the batches of one partition in order: rules, which return findings, and watchers, which
keep state for them. Also the batch and the segment that they are given."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

from kdump.check.finding import Finding
from kdump.check.resume_state import Resumable
from kdump.core.header_columns import HeaderColumns
from kdump.io.source import Source
from kdump.io.window import Window
from kdump.log.partition_directory import SegmentFiles
from kdump.log.paths import Target
from kdump.log.region import PADDING, TORN, Batch, DefaultRecordBatch, Region
from kdump.log.walk import RegionObserver
from kdump.state.transaction_marker import EndTxnMarker

DAY = 86_400_000

NONE: tuple[Finding, ...] = ()


class SegmentContext(NamedTuple):
    """A segment being checked. `modified`: modification time of the file in epoch ms, the current time if it has none;
    `recovers`: whether the broker re-reads the segment at startup (LogLoader.recoverLog), None if unknown. `start`: the
    byte from which on it is checked, because an earlier check ended there; `start_offset`: the offset of that batch;
    `next_offset`: that of the next segment's name, None if unknown."""

    segment: SegmentFiles
    target: Target
    last: bool
    recovers: bool | None
    modified: int
    size: int | None
    start: int = 0
    start_offset: int = 0
    next_offset: int | None = None


def may_hide_batches(part: SegmentContext, region: Region) -> bool:
    """Return True if a region may have contained valid batches. This is not so for what a restart truncates at the end
    of a log: zeros, or a batch that was being written."""
    at_end = part.last and part.size is not None and region.end == part.size
    return not (at_end and (region.kind == PADDING or (region.kind == TORN and part.recovers is not False)))


class BatchContext(NamedTuple):
    """A batch as passed to the rules. `is_valid`: see kdump.log.batch_validity; `damage`: position of bytes between it
    and the previous batch that are not part of a valid batch, None if there are none; `repaired`: the batch with one
    flipped bit corrected, if its checksum then matches; `marker`: the transaction marker of the valid or repaired
    batch."""

    part: SegmentContext
    batch: Batch
    is_valid: bool
    marker: EndTxnMarker | None
    damage: int | None
    repaired: DefaultRecordBatch | None = None


class Observer(Resumable):
    """Sees the batches of one partition in order. Subclasses override the hooks that they need: those of a rule return
    the findings that are certain at that point, those of a ledger its answers, and those of a watcher nothing.

    Consecutive valid batches are processed in bulk: `first_suspect` returns the first batch that needs `batch`, and
    `accept_run` updates the state for those before it. All control batches among them are transaction markers exactly
    as brokers write them (is_marker).

    An observer must declare state that outlives a segment in `saved_fields`, and reset all other state with each
    segment."""

    @property
    def accepts_runs(self) -> bool:
        """Whether batches may be processed in bulk: an observer with a `batch` of its own must also override another
        hook for them."""
        return any(map(self.has_hook, ("first_suspect", "accept_run"))) or not self.has_hook("batch")

    @classmethod
    @cache
    def has_hook(cls, name: str) -> bool:
        """Return True if the observer's class overrides the hook: the others need not be called."""
        return getattr(cls, name) is not getattr(Observer, name)

    def first_suspect(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        """Return the first of the batches first..stop (`stop` excluded) that must be passed to `batch`; `stop` if there
        is none."""
        return stop

    def accept_run(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> Iterable[Any] | None:
        """Update the state for the batches first..stop (`stop` excluded), none of which needs `batch`. `first_suspect`
        has been called before for these batches, and perhaps some after them."""
        return None

    def before(self, number: int) -> None:
        """Called before the segment at this index is opened, after all that was yielded before has been consumed."""

    def begin(self, part: SegmentContext) -> Iterable[Any] | None:
        """Called at the start of a segment."""
        return None

    def batch(self, seen: BatchContext) -> Iterable[Any] | None:
        return None

    def region(self, part: SegmentContext, region: Region) -> Iterable[Any] | None:
        """Called for bytes that are not a batch."""
        return None

    def finish(self, part: SegmentContext) -> Iterable[Any] | None:
        """Called at the end of a segment."""
        return None

    def unread(self) -> None:
        """Called if a segment, or the rest of one, cannot be read: its batches and markers are unknown."""

    def end(self) -> Iterable[Any] | None:
        """Called at the end of the partition."""
        return None


class SegmentObserver(RegionObserver):
    """Sees all regions of the segments of a partition, after the observers of its batches."""

    def begin(self, target: Target, window: Window, is_last: bool) -> None:
        """Called before the regions of each segment; the last one is the newest."""

    def finish(self, source: Source) -> None:
        """Called after the last region of a segment that could be read."""


class FindingMerger:
    """Merges findings of one kind in consecutive batches into one finding."""

    def __init__(self) -> None:
        self.first: BatchContext | None = None
        self.end = 0
        self.count = 0
        self.last_offset = 0

    def add(self, seen: BatchContext) -> None:
        if self.first is None:
            self.first = seen
            self.count = 0
        self.count += 1
        self.end = seen.batch.end
        self.last_offset = seen.batch.lastOffset

    def take(self) -> tuple[BatchContext, int, int, int] | None:
        """Return first batch, number of batches, end position and last offset, and start a new run; None if there is no
        batch."""
        if self.first is None:
            return None
        taken = (self.first, self.count, self.end, self.last_offset)
        self.first = None
        return taken
