"""Collects the batches that a check reads for a scan: counts them, and adds them to the table batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kdump.check.rule import BatchContext, SegmentContext, Watcher
from kdump.core.header_columns import HeaderColumns
from kdump.render.escape import path_text
from kdump.spark.batch_rows import BatchColumns
from kdump.spark.unit_totals import UnitTotals


class UnitObserver(Watcher):
    """Counts the batches of a unit, and collects them. `batches` returns the collector of the table batches once there
    is a row, and `put` writes its contents; with None instead, batches are only counted."""

    def __init__(
        self,
        tally: UnitTotals,
        common: dict[str, Any],
        batches: Callable[[], BatchColumns] | None,
        put: Callable[[], None],
    ) -> None:
        self.tally = tally
        self.common = common
        self.batches = batches
        self.put = put
        self.path = ""
        self.here: dict[str, Any] = {}

    def first_suspect(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        return stop

    def accept_run(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> None:
        self.tally.batches(heads, first, stop)
        if self.batches is not None and self.batches().add_many(heads, first, stop, self._here(part)):
            self.put()

    def batch(self, seen: BatchContext) -> None:
        self.tally.batch(seen)
        if self.batches is not None and self.batches().add(seen.batch, self._here(seen.part)):
            self.put()

    def _here(self, part: SegmentContext) -> dict[str, Any]:
        """Return the columns that all rows of a segment share."""
        path = part.target.path
        if path != self.path:
            self.path, self.here = path, {**self.common, "file": path_text(path)}
        return self.here
