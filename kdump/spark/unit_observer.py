"""Collects the batches that a check reads for a scan: counts them, in all and by producer, and adds them to the table
batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kdump.check.rule import BatchContext, Observer, SegmentContext
from kdump.core.header_columns import HeaderColumns
from kdump.log.producer_sums import ProducerSums
from kdump.render.escape import path_text
from kdump.spark.batch_rows import BatchColumns
from kdump.spark.unit_totals import UnitTotals


class UnitObserver(Observer):
    """Counts the batches of a unit, and collects them. `batches` returns the collector of the table batches once there
    is a row, and `put` writes its contents; with None instead, batches are only counted. `put_producer` writes a row of
    the table producers; `end_segment` has to be called after each segment."""

    def __init__(
        self,
        tally: UnitTotals,
        common: dict[str, Any],
        batches: Callable[[], BatchColumns] | None,
        put: Callable[[], None],
        put_producer: Callable[[dict[str, Any]], None],
    ) -> None:
        self.tally = tally
        self.producers, self.put_producer = ProducerSums(), put_producer
        self.common = common
        self.batches = batches
        self.put = put
        self.path = ""
        self.here: dict[str, Any] = {}

    def accept_run(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> None:
        here = self._here(part)
        self.tally.batches(heads, first, stop)
        self.producers.batches(heads, first, stop)
        if self.batches is not None and self.batches().add_many(heads, first, stop, here):
            self.put()
        if self.producers.is_full:
            self.end_segment()

    def batch(self, seen: BatchContext) -> None:
        here = self._here(seen.part)
        self.tally.batch(seen)
        self.producers.batch(seen.batch)
        if self.batches is not None and self.batches().add(seen.batch, here):
            self.put()
        if self.producers.is_full:
            self.end_segment()

    def end_segment(self) -> None:
        """Write what the batches of the segment add up to by producer."""
        for row in self.producers.take():
            self.put_producer(self.here | row)

    def _here(self, part: SegmentContext) -> dict[str, Any]:
        """Return the columns that all rows of a segment share."""
        path = part.target.path
        if path != self.path:
            self.path, self.here = path, {**self.common, "file": path_text(path)}
        return self.here
