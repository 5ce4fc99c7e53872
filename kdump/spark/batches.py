"""Table batches: a row is what `kdump inspect --json` says of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from kdump.log.legacy import look_inside
from kdump.log.reader import CHECKED, WALKED
from kdump.log.region import Batch, BatchLegacy, Region, Stretch
from kdump.log.select import NO
from kdump.log.window import Window
from kdump.render.objects import BATCH_KEYS
from kdump.spark.arrow import Rows
from kdump.spark.walk import Slice, own_regions

if TYPE_CHECKING:
    from kdump.spark.reading import Reading

INSIDE = ("baseOffset", "recordCount")
"""Columns for which a compressed message of magic 0 and 1 has to be looked into."""


class BatchRows:
    """Reads slices of segments."""

    def __init__(self, reading: Reading, schema: pa.Schema) -> None:
        self.reading = reading
        self.rows = Rows(reading.options.table, schema)
        wanted = {column.of or column.name for column in self.rows.columns}
        self.own = [key.name for key in BATCH_KEYS if key.name in wanted and key.name != "file"]
        self.looks_inside = any(name in wanted for name in INSIDE)
        self.stretches = CHECKED if "crcValid" in wanted else WALKED

    def read(self, part: Slice, window: Window, common: dict[str, object]) -> Iterator[pa.RecordBatch]:
        """The batches of a slice. Raises SourceError."""
        selection = self.reading.selection
        first = selection.offsets.first if selection.offsets else None
        for region in own_regions(part, window, self.reading.options.limits, self.stretches, first):
            for batch in _batches(region):
                if not selection.is_all and selection.batch(batch) == NO:
                    continue
                if self.looks_inside and isinstance(batch, BatchLegacy):
                    look_inside(batch)
                row = dict(common)
                for name in self.own:
                    row[name] = getattr(batch, name)
                if self.rows.add(row):
                    yield from self.rows.take()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """What has been read and not handed out."""
        yield from self.rows.take()


def _batches(region: Region) -> Iterator[Batch]:
    if isinstance(region, Stretch):
        yield from region.batches()
    elif isinstance(region, Batch):
        yield region
