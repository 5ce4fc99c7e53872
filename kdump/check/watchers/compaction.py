"""Notices whether the log cleaner has worked on a log."""

from __future__ import annotations

from kdump.check.partition_context import PartitionContext
from kdump.check.resume_state import FLAG
from kdump.check.rule import BatchContext, SegmentContext, Watcher
from kdump.core.header_columns import HeaderColumns, missing_records


class CompactionWatcher(Watcher):
    """`compacted`: whether the log is compacted, or was, by what is known of it and by the batches so far: a batch has
    fewer records than offsets, or a delete horizon."""

    saved_fields = {"compacted": FLAG}

    def __init__(self, known: PartitionContext) -> None:
        self.compacted = bool(known.compacted) or "cleaner-offset" in known.checkpoints

    def batch(self, seen: BatchContext) -> None:
        batch = seen.batch
        count = batch.recordCount
        base = batch.lastOffset if batch.baseOffset is None else batch.baseOffset
        if not self.compacted and seen.is_valid and count is not None and batch.lastOffset >= base >= 0:
            self.compacted = count < batch.lastOffset - base + 1 or bool(batch.hasDeleteHorizonMs)

    def first_suspect(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        return stop

    def accept_run(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> None:
        self.compacted = self.compacted or missing_records(heads, first, stop)
