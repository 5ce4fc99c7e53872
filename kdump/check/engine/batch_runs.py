"""Checks consecutive valid batches in bulk and yields only those that a rule must examine.

The findings are the same as if every batch were checked on its own; tests/check/test_batch_runs.py compares the two."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

from kdump.check.partition_context import PartitionContext
from kdump.check.rule import Observer, SegmentContext
from kdump.core.batch_scan import FURTHEST
from kdump.core.column_numbers import ATTRIBUTES, BATCH_START, MARKER_SIZE
from kdump.core.header_columns import HeaderColumns, is_plain_batch
from kdump.core.record_checks import count_valid_batches, records_agree
from kdump.format.batch_header import COMPRESSION, TIMESTAMP_TYPE, TRANSACTIONAL
from kdump.io.run import Limits
from kdump.log.batch_records import payload_of
from kdump.log.region import BatchRun, DefaultRecordBatch
from kdump.state.transaction_marker import EndTxnMarker, plain_marker


def first_record_suspect(heads: HeaderColumns, row: int, stop: int, limits: Limits, *, keyed: bool) -> int:
    """Return the first batch of row..stop (`stop` excluded) whose records may have a problem; `stop` if there is
    none. `keyed`: a null key is one."""
    while True:
        row = count_valid_batches(heads, row, stop, keyed)
        if row == stop or not heads.of(row, ATTRIBUTES) & COMPRESSION.mask:
            return row
        payload = payload_of(heads, row, limits.max_decompressed_size)
        if payload is None or not records_agree(heads, row, payload, keyed):
            return row
        row += 1


FLAGS = COMPRESSION.mask | TIMESTAMP_TYPE.mask | TRANSACTIONAL.mask
"""Attribute bits that need no check: not those of control batches or delete horizons, and no reserved ones."""
FIRST_TRY = 16
"""Number of batches tried in bulk after one that had to be examined; doubled with each success."""
MAX_RUN = 1024
"""Maximum number of batches tried in bulk: what observers note for each takes memory."""


class BatchRunChecker:
    """Checks batch runs. `decode`: markers are needed; `deep`: also check the records."""

    def __init__(
        self,
        part: SegmentContext,
        context: PartitionContext,
        observers: Sequence[Observer],
        limits: Limits,
        *,
        decode: bool,
        deep: bool,
    ) -> None:
        self.part, self.known = part, context
        self._first_suspects = [observer.first_suspect for observer in observers if observer.has_hook("first_suspect")]
        self._accept_run = [observer.accept_run for observer in observers if observer.has_hook("accept_run")]
        self.deep, self.limits = deep, limits
        largest = context.max_message_bytes
        self.max_batch_bytes = largest if deep and largest is not None else FURTHEST
        self.markers = decode and self.max_batch_bytes >= MARKER_SIZE
        self.ahead = FIRST_TRY

    def split(
        self, batch_run: BatchRun, damaged: bool
    ) -> Iterator[range | tuple[DefaultRecordBatch, EndTxnMarker | None]]:
        """Yield the rows of batches that `accept` must be called with, and, between them, the batches that the
        observers must examine one by one; for one that is valid beyond doubt, its transaction marker. `damaged`: there
        is damage before the first batch."""
        heads = batch_run.headers
        row = 0
        while row < len(heads):
            stop = min(row + self.ahead, len(heads))
            after_damage = damaged and row == 0
            suspect = row if after_damage else self._first_suspect(heads, row, stop, batch_run.suspects)
            if suspect > row:
                yield range(row, suspect)
            self.ahead = min(2 * self.ahead, MAX_RUN) if suspect == stop else FIRST_TRY
            row = suspect
            if suspect < stop:
                marker = plain_marker(heads, row) if self.markers and not after_damage else None
                yield batch_run.batch(heads.of(row, BATCH_START)), marker
                row += 1

    def accept(self, heads: HeaderColumns, rows: range) -> Iterator[Any]:
        """Let the observers take the batches in these rows, and yield what they return."""
        for accept_run in self._accept_run:
            yield from accept_run(self.part, heads, rows.start, rows.stop) or ()

    def _first_suspect(self, heads: HeaderColumns, first: int, stop: int, suspects: list[int] | None) -> int:
        stop = is_plain_batch(heads, first, stop, FLAGS, self.max_batch_bytes, self.markers)
        for first_suspect in self._first_suspects:
            if stop == first:
                return first
            stop = first_suspect(self.part, heads, first, stop)
        if not self.deep:
            return stop
        if suspects is not None:
            number = bisect_left(suspects, first)
            return min(stop, suspects[number]) if number < len(suspects) else stop
        return first_record_suspect(heads, first, stop, self.limits, keyed=bool(self.known.compacted))
