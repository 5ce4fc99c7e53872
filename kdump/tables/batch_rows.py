"""Table batches: one row per batch, with the values that `kdump inspect --json` prints."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import Any

from kdump.core.arrow_buffers import batch_checksums, batch_last_sequences, batch_numbers
from kdump.core.column_numbers import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_SEQUENCE,
    BASE_TIMESTAMP,
    BATCH_END,
    BATCH_START,
    LAST_OFFSET,
    LEADER_EPOCH,
    MAX_TIMESTAMP,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    RECORD_COUNT,
)
from kdump.core.header_columns import HeaderColumns
from kdump.format.batch_formats import FORMATS, NEWEST
from kdump.format.batch_header import COMPRESSION, CONTROL, DELETE_HORIZON, LOG_OVERHEAD, TIMESTAMP_TYPE, TRANSACTIONAL
from kdump.format.codec_table import ALL_NAMES
from kdump.format.legacy_message import NO_TIMESTAMP_TYPE
from kdump.format.numbers import int64
from kdump.log.expression.terms import NO
from kdump.log.legacy_records import read_wrapper
from kdump.log.region import Batch, BatchRun, LegacyRecordBatch, Region, batches_of
from kdump.log.region_reader import Depth
from kdump.log.selection import Selection
from kdump.tables import arrow
from kdump.tables.arrow import STRING, ArrowArray, ArrowBatch, ArrowSchema, ArrowType
from kdump.tables.declarations import BATCHES
from kdump.tables.read_options import ReadOptions
from kdump.tables.slice_rows import SliceRows

INSIDE = ("baseOffset", "recordCount")
"""Columns for which a compressed message of magic 0 or 1 has to be decompressed."""
BATCH_ROWS = 16_384
"""Number of rows at which a record batch is complete."""
FROM_HEADS: dict[str, tuple[int, int, int]] = {
    "size": (BATCH_END, BATCH_START, 0),
    "batchLength": (BATCH_END, BATCH_START, -LOG_OVERHEAD),
    "baseOffset": (BASE_OFFSET, -1, 0),
    "lastOffset": (LAST_OFFSET, -1, 0),
    "lastOffsetDelta": (LAST_OFFSET, BASE_OFFSET, 0),
    "partitionLeaderEpoch": (LEADER_EPOCH, -1, 0),
    "attributes": (ATTRIBUTES, -1, 0),
    "baseTimestamp": (BASE_TIMESTAMP, -1, 0),
    "maxTimestamp": (MAX_TIMESTAMP, -1, 0),
    "producerId": (PRODUCER_ID, -1, 0),
    "producerEpoch": (PRODUCER_EPOCH, -1, 0),
    "baseSequence": (BASE_SEQUENCE, -1, 0),
    "recordCount": (RECORD_COUNT, -1, 0),
}
"""Columns computed from kdump.core.column_numbers: the column, another one to subtract (-1: none), a constant to
add."""
NUMBERS = tuple(dict.fromkeys(("position", "lastSequence", *FROM_HEADS, *FORMATS[NEWEST].header.names)))
FLAGS = {each.name: each for each in (TRANSACTIONAL, CONTROL, DELETE_HORIZON)}
HORIZON = "deleteHorizonMs"
NEEDS = dict.fromkeys(("compression", "timestampType", *FLAGS), ("attributes", "magic")) | {
    HORIZON: ("attributes", "magic", "baseTimestamp")
}
"""Derived columns, each with the columns that it is computed from."""
MESSAGE_MAGICS = {number for number, each in FORMATS.items() if each.is_message}
UNTIMED_MAGICS = {number for number, each in FORMATS.items() if not each.has_timestamp}
TIMESTAMP_TYPES = [*TIMESTAMP_TYPE.meanings.values(), NO_TIMESTAMP_TYPE]


def _table(of: Callable[[int], int]) -> bytes:
    """Return what bytes.translate computes a function of each byte with."""
    return bytes(map(of, range(256)))


CODEC_OF = _table(lambda attributes: attributes & COMPRESSION.mask)
TIMESTAMP_TYPE_OF = _table(lambda attributes: (attributes & TIMESTAMP_TYPE.mask) >> TIMESTAMP_TYPE.shift)
HAS_FLAGS = _table(lambda magic: magic not in MESSAGE_MAGICS)


class BatchColumns:
    """Collects batches, one at a time or many at once, and converts them to record batches."""

    def __init__(self, schema: ArrowSchema) -> None:
        self.schema = schema
        self.columns = [BATCHES.column(field.name) for field in schema]
        requested = {column.of or column.name for column in self.columns}
        self.looks_inside = any(name in requested for name in INSIDE)
        self.checks = "crcValid" in requested
        requested.update(name for derived, names in NEEDS.items() if derived in requested for name in names)
        self.stored = [name for name in NUMBERS if name in requested]
        self._begin()

    def _begin(self) -> None:
        self.count = 0
        self.numbers = {name: array("q") for name in self.stored}
        self.nulls: dict[str, list[int]] = {name: [] for name in self.stored}
        self.valid = bytearray()
        self.common_of = array("i")
        self.commons: list[dict[str, Any]] = []

    def add(self, batch: Batch, common: dict[str, Any]) -> bool:
        """Add a batch; `common` has the other columns of its row. Returns True if the rows should be taken now."""
        if self.looks_inside and isinstance(batch, LegacyRecordBatch):
            read_wrapper(batch)
        for name, values in self.numbers.items():
            value = getattr(batch, name)
            if value is None:
                self.nulls[name].append(self.count)
            values.append(int64(value or 0))
        if self.checks:
            self.valid.append(batch.crcValid)
        return self._also(1, common)

    def add_many(self, heads: HeaderColumns, first: int, stop: int, common: dict[str, Any]) -> bool:
        """Add the batches first..stop-1. If the table has crcValid, their checksums must have been verified."""
        for name, values in self.numbers.items():
            if name == "position":
                batch_numbers(values, heads, first, stop, BATCH_START, -1, heads.shift)
            elif name == "magic":
                values.extend(array("q", [2]) * (stop - first))
            elif name == "crc":
                batch_checksums(values, heads, first, stop)
            elif name == "lastSequence":
                batch_last_sequences(values, heads, first, stop)
            elif name in FROM_HEADS:
                batch_numbers(values, heads, first, stop, *FROM_HEADS[name])
            else:  # the format of these batches does not have it
                self.nulls[name].extend(range(self.count, self.count + stop - first))
                values.extend(array("q", [0]) * (stop - first))
        if self.checks:
            self.valid.extend(b"\1" * (stop - first))
        return self._also(stop - first, common)

    def _also(self, count: int, common: dict[str, Any]) -> bool:
        if not self.commons or self.commons[-1] is not common:
            self.commons.append(common)
        self.common_of.extend(array("i", [len(self.commons) - 1]) * count)
        self.count += count
        return self.count >= BATCH_ROWS

    def take(self) -> Iterator[ArrowBatch]:
        """Yield the collected rows as one record batch, if there are any."""
        if self.count:
            batch = arrow.batch_of(self.schema, self.columns, self.count, self._array)
            self._begin()
            yield batch

    def _array(self, name: str, kind: ArrowType, is_time: bool) -> ArrowArray:
        make = arrow.times if is_time else arrow.numbers
        if name in self.numbers:
            return make(self.numbers[name], self.nulls[name], kind)
        if name == HORIZON:
            is_set, there = self._flag("hasDeleteHorizonMs")
            gone = [row for row in range(self.count) if not (is_set[row] and there[row])]
            return make(self.numbers["baseTimestamp"], gone, kind)
        if name == "crcValid":
            return arrow.flags(self.valid)
        if name in FLAGS:
            return arrow.flags(*self._flag(name))
        if name in NEEDS:
            return self._derived(name)
        return arrow.taken([common.get(name) for common in self.commons], self.common_of, kind)

    def _flag(self, name: str) -> tuple[bytearray, bytearray]:
        """Return the flag of each batch, and which of them have it."""
        mask = FLAGS[name].mask
        is_set = arrow.low_bytes(self.numbers["attributes"]).translate(
            _table(lambda attributes: bool(attributes & mask))
        )
        return bytearray(is_set), bytearray(arrow.low_bytes(self.numbers["magic"]).translate(HAS_FLAGS))

    def _derived(self, name: str) -> ArrowArray:
        """Return the codec or the type of timestamps."""
        attributes = arrow.low_bytes(self.numbers["attributes"])
        if name == "compression":
            return arrow.taken(ALL_NAMES, array("i", list(attributes.translate(CODEC_OF))), STRING)
        kinds = array("i", list(attributes.translate(TIMESTAMP_TYPE_OF)))
        for row, magic in enumerate(self.numbers["magic"]):
            if magic in UNTIMED_MAGICS:
                kinds[row] = len(TIMESTAMP_TYPES) - 1
        return arrow.taken(TIMESTAMP_TYPES, kinds, STRING)


class BatchRows(SliceRows):
    """Reads slices of segments for the table batches."""

    def __init__(self, options: ReadOptions, selection: Selection, schema: ArrowSchema) -> None:
        super().__init__(options, selection)
        self.columns = BatchColumns(schema)
        self.depth = Depth.CHECKSUMS if self.columns.checks else Depth.PAYLOADS

    def region(self, region: Region) -> Iterator[ArrowBatch]:
        selection, common = self.selection, self.common
        if isinstance(region, BatchRun) and selection.is_all:
            heads = region.headers
            if self.columns.add_many(heads, 0, len(heads), common):
                yield from self.columns.take()
            return
        for batch in batches_of(region):
            if not selection.is_all and selection.batch(batch) == NO:
                continue
            if self.columns.add(batch, common):
                yield from self.columns.take()

    def rest(self) -> Iterator[ArrowBatch]:
        """Yield the rows that have been read but not yielded yet."""
        yield from self.columns.take()
