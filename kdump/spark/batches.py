"""Table batches: a row is what `kdump inspect --json` says of a batch."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from operator import attrgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kdump.log.legacy import look_inside
from kdump.log.reader import CHECKED, WALKED
from kdump.log.region import Batch, BatchLegacy, BatchV2, Region, Stretch
from kdump.log.select import NO
from kdump.log.window import Window
from kdump.render.objects import BATCH_KEYS
from kdump.spark import arrow
from kdump.spark.tables import BATCHES
from kdump.spark.walk import Slice, own_regions

if TYPE_CHECKING:
    from kdump.spark.reading import Reading

INSIDE = ("baseOffset", "recordCount")
"""Columns for which a compressed message of magic 0 and 1 has to be looked into."""
MOST = 16_384
"""Rows of a record batch."""
APART = ("file", "position", "size", "crcValid")
HEADER_NAMES = tuple(key.name for key in BATCH_KEYS if key.name not in APART)
"""What the header of a v2 batch says, or follows from it."""


class BatchColumns:
    """Gathers batches, by their headers, and makes record batches of them."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.columns = [BATCHES.column(name) for name in schema.names]
        wanted = {column.of or column.name for column in self.columns}
        self.looks_inside = any(name in wanted for name in INSIDE)
        self.checks = "crcValid" in wanted
        self._begin()

    def _begin(self) -> None:
        self.headers: list[Any] = []
        self.position = array("q")
        self.size = array("q")
        self.valid: list[bool] = []
        self.common_of = array("i")
        self.commons: list[dict[str, Any]] = []

    def add(self, batch: Batch, common: dict[str, Any]) -> bool:
        """One more, with what else its row says; whether it is time to take a record batch."""
        if isinstance(batch, BatchV2):
            self.headers.append(batch.header)
        else:
            if self.looks_inside and isinstance(batch, BatchLegacy):
                look_inside(batch)
            self.headers.append(SimpleNamespace(**{name: getattr(batch, name) for name in HEADER_NAMES}))
        self.position.append(batch.position)
        self.size.append(batch.size)
        if self.checks:
            self.valid.append(batch.crcValid)
        if not self.commons or self.commons[-1] is not common:
            self.commons.append(common)
        self.common_of.append(len(self.commons) - 1)
        return len(self.headers) >= MOST

    def take(self) -> Iterator[pa.RecordBatch]:
        """What there is, if anything."""
        if self.headers:
            fields = [self.schema.field(number).type for number in range(len(self.columns))]
            arrays = [
                self._array(column.of or column.name, kind, bool(column.of))
                for column, kind in zip(self.columns, fields)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)
            self._begin()

    def _array(self, name: str, kind: pa.DataType, is_time: bool) -> pa.Array:
        if is_time:
            return arrow.times(self._array(name, pa.int64(), False), kind)
        if name == "position":
            return arrow.numbers(self.position, (), kind)
        if name == "size":
            return arrow.numbers(self.size, (), kind)
        if name == "crcValid":
            return arrow.plain(self.valid, kind)
        if name in HEADER_NAMES:
            return arrow.plain(list(map(attrgetter(name), self.headers)), kind)
        said = arrow.plain([common.get(name) for common in self.commons], kind)
        return said.take(pa.Array.from_buffers(pa.int32(), len(self.common_of), [None, pa.py_buffer(self.common_of)]))


class BatchRows:
    """Reads slices of segments."""

    def __init__(self, reading: Reading, schema: pa.Schema) -> None:
        self.reading = reading
        self.columns = BatchColumns(schema)
        self.stretches = CHECKED if self.columns.checks else WALKED

    def read(self, part: Slice, window: Window, common: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        """The batches of a slice. Raises SourceError."""
        selection = self.reading.selection
        first = selection.offsets.first if selection.offsets else None
        for region in own_regions(part, window, self.reading.options.limits, self.stretches, first):
            for batch in batches_of(region):
                if not selection.is_all and selection.batch(batch) == NO:
                    continue
                if self.columns.add(batch, common):
                    yield from self.columns.take()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """What has been read and not handed out."""
        yield from self.columns.take()


def batches_of(region: Region) -> Iterator[Batch]:
    """The batches in a region, if it has any."""
    if isinstance(region, Stretch):
        yield from region.batches()
    elif isinstance(region, Batch):
        yield region
