"""Notices whether the log cleaner has worked on a log."""

from __future__ import annotations

from kdump.check.partition_context import PartitionContext
from kdump.check.resume_state import FLAG
from kdump.check.rule import BatchContext, Observer, SegmentContext
from kdump.core.header_columns import HeaderColumns, cleaned_batch
from kdump.log.batch_validity import cleaner_trace


class CompactionWatcher(Observer):
    """`compacted`: whether the log is compacted, or was, by what is known of it and by the batches so far: a batch has
    fewer records than offsets, or a delete horizon."""

    saved_fields = {"compacted": FLAG}

    def __init__(self, context: PartitionContext) -> None:
        self.compacted = context.is_cleaned

    def batch(self, seen: BatchContext) -> None:
        self.compacted = self.compacted or (seen.is_valid and bool(cleaner_trace(seen.batch)))

    def accept_run(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> None:
        self.compacted = self.compacted or cleaned_batch(heads, first, stop) < stop
