"""Checks consecutive valid batches in bulk and yields only those that a rule must examine.

The findings are the same as if every batch were checked on its own; tests/check/test_batch_runs.py compares the two.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

from kdump.check.partition_context import PartitionContext
from kdump.check.rule import Observer, SegmentContext
from kdump.core.batch_scan import FURTHEST
from kdump.core.column_numbers import ATTRIBUTES, BATCH_END, BATCH_START
from kdump.core.header_columns import HeaderColumns, is_plain_batch
from kdump.core.record_checks import count_valid_batches, records_agree
from kdump.core.record_columns import RecordColumns
from kdump.format.batch_header import BATCH_HEADER, COMPRESSION, TIMESTAMP_TYPE, TRANSACTIONAL, codec_name
from kdump.format.codec.decompress_small import decompress_small
from kdump.log.region import BatchRun, DefaultRecordBatch
from kdump.state.marker import MARKER_SIZE, EndTxnMarker, plain_marker

FLAGS = COMPRESSION.mask | TIMESTAMP_TYPE.mask | TRANSACTIONAL.mask
"""Attribute bits that need no check: not those of control batches or delete horizons, and no reserved ones."""
FIRST_TRY = 16
"""Number of batches tried in bulk after one that had to be examined; doubled with each success."""


class BatchRunChecker:
    """Checks batch runs. `decode`: markers are needed; `deep`: also check the records; `limit`: maximum decompressed
    size of a batch in bytes."""

    def __init__(
        self,
        part: SegmentContext,
        known: PartitionContext,
        observers: Sequence[Observer],
        limit: int,
        *,
        decode: bool,
        deep: bool,
    ) -> None:
        self.part = part
        self.known = known
        self._first_suspects = [each.first_suspect for each in observers if each.has_hook("first_suspect")]
        self._accept_run = [each.accept_run for each in observers if each.has_hook("accept_run")]
        self.deep = deep
        self.limit = limit
        largest = known.max_message_bytes
        self.max_batch_bytes = largest if deep and largest is not None else FURTHEST
        self.markers = decode and self.max_batch_bytes >= MARKER_SIZE
        self.ahead = FIRST_TRY

    def record_suspects(self, batch_run: BatchRun, is_over: Callable[[], bool] = lambda: False) -> list[int]:
        """Return the numbers of the batches whose records may have a problem. May be called in any thread. Stops early
        once `is_over`: a run may contain thousands of batches that each decompress to megabytes."""
        heads = batch_run.headers
        own, unpacked = RecordColumns(batch_run.buffer), RecordColumns(b"")
        found = []
        row = 0
        while row < len(heads) and not is_over():
            stop = min(row + FIRST_TRY, len(heads))
            row = self._records(heads, row, stop, own, unpacked)
            if row < stop:
                found.append(row)
                row += 1
        return found

    def split(
        self,
        batch_run: BatchRun,
        damaged: bool,
        accepted: Callable[[HeaderColumns, int, int], None],
        known: list[int] | None = None,
    ) -> Iterator[tuple[DefaultRecordBatch, EndTxnMarker | None]]:
        """Yield the batches that the observers must examine one by one; for one that is valid beyond doubt, its
        transaction marker. When one is yielded, the observers have taken the batches before it, and `accepted` has been
        called for these. `damaged`: there is damage before the first batch. `known`: what record_suspects returns."""
        heads = batch_run.headers
        own, unpacked = RecordColumns(batch_run.buffer), RecordColumns(b"")
        row = 0
        while row < len(heads):
            stop = min(row + self.ahead, len(heads))
            after_damage = damaged and row == 0
            suspect = row if after_damage else self._first_suspect(heads, row, stop, own, unpacked, known)
            if suspect > row:
                for accept_run in self._accept_run:
                    accept_run(self.part, heads, row, suspect)
                accepted(heads, row, suspect)
            self.ahead = 2 * self.ahead if suspect == stop else FIRST_TRY
            row = suspect
            if suspect < stop:
                marker = plain_marker(heads, row) if self.markers and not after_damage else None
                yield batch_run.batch(heads.of(row, BATCH_START)), marker
                row += 1

    def _first_suspect(
        self,
        heads: HeaderColumns,
        first: int,
        stop: int,
        own: RecordColumns,
        unpacked: RecordColumns,
        known: list[int] | None,
    ) -> int:
        stop = is_plain_batch(heads, first, stop, FLAGS, self.max_batch_bytes)
        for first_suspect in self._first_suspects:
            if stop == first:
                return first
            stop = first_suspect(self.part, heads, first, stop)
        if not self.deep:
            return stop
        if known is not None:
            number = bisect_left(known, first)
            return min(stop, known[number]) if number < len(known) else stop
        return self._records(heads, first, stop, own, unpacked)

    def _records(self, heads: HeaderColumns, row: int, stop: int, own: RecordColumns, unpacked: RecordColumns) -> int:
        """Return the first batch of row..stop (`stop` excluded) whose records may have a problem; `stop` if there is
        none."""
        keyed = bool(self.known.compacted)
        while True:
            row = count_valid_batches(heads, own, row, stop, keyed)
            if row == stop or not heads.of(row, ATTRIBUTES) & COMPRESSION.mask:
                return row
            payload = self._payload(heads, row)
            if payload is None:
                return row
            unpacked.data = payload
            if not records_agree(heads, row, unpacked, 0, len(payload), keyed):
                return row
            row += 1

    def _payload(self, heads: HeaderColumns, row: int) -> bytes | None:
        """Return the decompressed payload of a batch; None if it is invalid or too large for the fast path."""
        codec = codec_name(COMPRESSION.of(heads.of(row, ATTRIBUTES)))
        start = heads.of(row, BATCH_START) + BATCH_HEADER.size
        return decompress_small(codec, memoryview(heads.data)[start : heads.of(row, BATCH_END)], self.limit)
