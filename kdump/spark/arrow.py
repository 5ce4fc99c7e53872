"""Arrow types of the tables, as Spark derives them from their DDL, and values as record batches of these types."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kdump.core.arrow_buffers import ArrowLists, ArrowStrings
from kdump.format.numbers import int64
from kdump.spark.tables import SparkColumn, SparkTable

PLAIN_TYPES = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "double": pa.float64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
_COMMA = re.compile(r",(?![^<]*>)")
"""Between two fields of a struct; not between those of a struct in one of its fields."""


@cache
def arrow_type(ddl: str) -> pa.DataType:
    """Return the type for one in Spark's DDL."""
    if ddl in PLAIN_TYPES:
        return PLAIN_TYPES[ddl]
    outer, _, inner = ddl.removesuffix(">").partition("<")
    if outer == "array":
        return pa.list_(pa.field("element", arrow_type(inner)))
    fields = (field.partition(":") for field in _COMMA.split(inner))
    return pa.struct([(name, arrow_type(kind)) for name, _, kind in fields])


def arrow_schema(table: SparkTable) -> pa.Schema:
    """Return the schema with all columns of a table."""
    return pa.schema([(column.name, arrow_type(column.type)) for column in table.columns])


FIRST, LAST = -62_135_510_400_000, 253_402_127_999_999
"""Epoch ms of 0001-01-02 and of the end of 9999-12-29: the range that Python can represent in every time zone."""
INT32 = (-(1 << 31), (1 << 31) - 1)


def plain(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return the values as an array. Values that do not fit the type raise no error: 64-bit integers wrap as in Java,
    smaller integers become null, and text that is not valid Unicode is escaped."""
    try:
        return pa.array(values, type=kind)
    except (OverflowError, pa.ArrowInvalid, UnicodeError):
        return pa.array([_fitted(value, kind) for value in values], type=kind)


def _fitted(value: Any, kind: pa.DataType) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, int) and kind == pa.int64():
        return int64(value)
    if isinstance(value, int) and kind == pa.int32():
        return value if INT32[0] <= value <= INT32[1] else None
    if isinstance(value, list):
        return [_fitted(item, kind.value_type) for item in value]
    if isinstance(value, dict):
        return {name: _fitted(item, kind.field(name).type) for name, item in value.items()}
    return value


def times(milliseconds: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert epoch ms to timestamps; null for values that a timestamp cannot represent."""
    fits = pc.and_(pc.greater_equal(milliseconds, FIRST), pc.less_equal(milliseconds, LAST))
    held = pc.if_else(fits, milliseconds, pa.scalar(None, pa.int64()))
    return pc.multiply(held, 1000).cast(pa.timestamp("us")).cast(kind)


def numbers(values: array[int], nulls: Iterable[int], kind: pa.DataType) -> pa.Array:
    """Return 64-bit numbers as an array of type `kind`, null at the rows `nulls`."""
    column = pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])
    gone = list(nulls)
    if gone:
        there = bytearray(b"\1" * len(values))
        for row in gone:
            there[row] = 0
        column = pc.if_else(flags(there), column, pa.scalar(None, pa.int64()))
    return column if kind == pa.int64() else column.cast(kind, safe=False)


def strings(values: ArrowStrings, kind: pa.DataType) -> pa.Array:
    """Return the collected byte strings as an array."""
    there = None if 0 not in values.there else flags(values.there).buffers()[1]
    buffers = [there, pa.py_buffer(values.ends), pa.py_buffer(values.data)]
    return pa.Array.from_buffers(kind, len(values), buffers)


def header_lists(values: ArrowLists, kind: pa.DataType) -> pa.Array:
    """Return the collected record headers as an array of lists of {key, value}."""
    struct = kind.value_type
    pairs = pa.StructArray.from_arrays(
        [strings(values.keys, struct.field(0).type), strings(values.values, struct.field(1).type)],
        fields=[struct.field(0), struct.field(1)],
    )
    return pa.Array.from_buffers(kind, len(values.ends) - 1, [None, pa.py_buffer(values.ends)], children=[pairs])


def flags(values: bytearray) -> pa.Array:
    """Convert bytes that are 0 or 1 to booleans."""
    return pa.Array.from_buffers(pa.uint8(), len(values), [None, pa.py_buffer(values)]).cast(pa.bool_())


class Rows:
    """Collects rows, as values by column name, and converts them to record batches."""

    BATCH_ROWS = 4096

    def __init__(self, table: SparkTable, schema: pa.Schema) -> None:
        self.schema = schema
        self.columns: list[SparkColumn] = [table.column(name) for name in schema.names]
        self.rows: list[dict[str, Any]] = []

    def add(self, row: dict[str, Any]) -> bool:
        """Add a row. Returns True if the rows should be taken now."""
        self.rows.append(row)
        return len(self.rows) >= self.BATCH_ROWS

    def take(self) -> Iterable[pa.RecordBatch]:
        """Yield the collected rows as one record batch, if there are any."""
        if self.rows:
            arrays = [self._array(column, self.schema.field(n).type) for n, column in enumerate(self.columns)]
            self.rows = []
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _array(self, column: SparkColumn, kind: pa.DataType) -> pa.Array:
        if column.of:
            return times(plain([row.get(column.of) for row in self.rows], pa.int64()), kind)
        return plain([row.get(column.name) for row in self.rows], kind)
