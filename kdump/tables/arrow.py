"""Arrow types of the tables, which follow from their DDL, and arrays of these types, in buffers of kdump's own: they
need neither pyarrow nor Spark. Whoever reads them gets them by Arrow's C data interface (kdump.tables.c_data)."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cache
from typing import Any, NamedTuple

from kdump.core.arrow_buffers import ArrowLists, ArrowStrings, bits, scaled_within, taken_numbers, taken_strings
from kdump.format.numbers import int64
from kdump.tables.declarations import SparkColumn, SparkTable

Buffer = bytearray | array  # type: ignore[type-arg]


class ArrowType(NamedTuple):
    """A type: its format string in the C data interface, and the fields in it."""

    format: str
    children: tuple[ArrowField, ...] = ()


class ArrowField(NamedTuple):
    """A column, or a part of a nested type."""

    name: str
    type: ArrowType


ArrowSchema = tuple[ArrowField, ...]

INT32, INT64, DOUBLE, STRING, BINARY, BOOLEAN = map(ArrowType, "ilguzb")
TIMES = {1: ArrowType("tsm:UTC"), 1000: ArrowType("tsu:UTC")}
"""Types of timestamps, by how many of their units are a millisecond."""
PLAIN_TYPES = {
    "int": INT32,
    "bigint": INT64,
    "string": STRING,
    "binary": BINARY,
    "boolean": BOOLEAN,
    "double": DOUBLE,
    "timestamp_us": TIMES[1000],
}


@cache
def arrow_type(ddl: str, per_ms: int = 1) -> ArrowType:
    """Return the type for one in Spark's DDL. `per_ms`: units of a timestamp in a millisecond, 1 or 1000."""
    if ddl in PLAIN_TYPES:
        return PLAIN_TYPES[ddl]
    if ddl == "timestamp":
        return TIMES[per_ms]
    outer, _, inner = ddl.removesuffix(">").partition("<")
    if outer == "array":
        return ArrowType("+l", (ArrowField("element", arrow_type(inner, per_ms)),))
    fields = (field.partition(":") for field in _fields(inner))
    return ArrowType("+s", tuple(ArrowField(name, arrow_type(kind, per_ms)) for name, _, kind in fields))


def _fields(inner: str) -> Iterator[str]:
    """Yield the fields of a struct, which may have fields themselves."""
    depth = start = 0
    for position, letter in enumerate(inner):
        depth += (letter == "<") - (letter == ">")
        if letter == "," and not depth:
            yield inner[start:position]
            start = position + 1
    yield inner[start:]


def arrow_schema(table: SparkTable, names: Iterable[str] | None = None, per_ms: int = 1) -> ArrowSchema:
    """Return the schema with the columns of these names, by default all but those on request. Raises KeyError."""
    columns = table.columns if names is None else [table.column(name) for name in names]
    return tuple(ArrowField(column.name, arrow_type(column.type, per_ms)) for column in columns)


class ArrowArray(NamedTuple):
    """An array. `buffers`: as in Arrow's columnar format, the validity bitmap first, None without nulls."""

    type: ArrowType
    length: int
    nulls: int
    buffers: tuple[Buffer | None, ...]
    children: tuple[ArrowArray, ...] = ()


@dataclass(frozen=True)
class ArrowBatch:
    """A record batch. `length`: its number of rows; the arrays may have more."""

    schema: ArrowSchema
    length: int
    arrays: tuple[ArrowArray, ...]

    @property
    def size(self) -> int:
        """Bytes of its buffers."""
        return sum(map(_size, self.arrays))


def batch_of(
    schema: ArrowSchema,
    columns: Sequence[SparkColumn],
    length: int,
    array_of: Callable[[str, ArrowType, bool], ArrowArray],
) -> ArrowBatch:
    """Return a record batch of arrays that `array_of` returns for the name of the values, the type, and whether they
    are epoch ms for a timestamp."""
    arrays = (array_of(column.of or column.name, field.type, bool(column.of)) for column, field in zip(columns, schema))
    return ArrowBatch(schema, length, tuple(arrays))


def _size(values: ArrowArray) -> int:
    own = sum(memoryview(buffer).nbytes for buffer in values.buffers if buffer is not None)
    return own + sum(map(_size, values.children))


FIRST, LAST = -62_135_510_400_000, 253_402_127_999_999
"""Epoch ms of 0001-01-02 and of the end of 9999-12-29: the range that Python can represent in every time zone."""
EPOCH, MICROSECOND = datetime(1970, 1, 1, tzinfo=timezone.utc), timedelta(microseconds=1)
SMALLEST_INT, LARGEST_INT = -(1 << 31), (1 << 31) - 1
LOW_HALF = slice(0 if sys.byteorder == "little" else 1, None, 2)
"""The lower halves of 64-bit numbers, in an array of 32-bit numbers."""


def with_validity(
    kind: ArrowType, there: bytearray, *buffers: Buffer, children: Sequence[ArrowArray] = ()
) -> ArrowArray:
    """Return an array with these buffers, null where `there` has 0."""
    nulls = there.count(0)
    return ArrowArray(kind, len(there), nulls, (bits(there) if nulls else None, *buffers), tuple(children))


def _all_but(nulls: Iterable[int], count: int) -> bytearray:
    """Return `count` bytes that are 1, and 0 at the rows `nulls`."""
    there = bytearray(b"\1" * count)
    for row in nulls:
        there[row] = 0
    return there


def numbers(values: array[int], nulls: Iterable[int], kind: ArrowType) -> ArrowArray:
    """Return 64-bit numbers as an array of type `kind`, null at the rows `nulls`; if they are too large for it, their
    lower half."""
    there = _all_but(nulls, len(values))
    if kind == INT32:
        halves = array("i")
        halves.frombytes(memoryview(values).cast("B"))
        values = halves[LOW_HALF]
    return with_validity(kind, there, values)


def times(values: array[int], nulls: Iterable[int], kind: ArrowType) -> ArrowArray:
    """Convert epoch ms to timestamps; null at `nulls`, and for values that a timestamp cannot represent."""
    there = _all_but(nulls, len(values))
    return with_validity(kind, there, scaled_within(values, there, FIRST, LAST, _per_ms(kind)))


def _per_ms(kind: ArrowType) -> int:
    return next(factor for factor, known in TIMES.items() if known == kind)


def strings(values: ArrowStrings, kind: ArrowType) -> ArrowArray:
    """Return the collected byte strings as an array."""
    return with_validity(kind, values.there, values.ends, values.data)


def header_lists(values: ArrowLists, kind: ArrowType) -> ArrowArray:
    """Return the collected record headers as an array of lists of {key, value}."""
    pair = kind.children[0].type
    parts = [strings(part, field.type) for part, field in zip((values.keys, values.values), pair.children)]
    pairs = with_validity(pair, bytearray(b"\1" * len(values.keys)), children=parts)
    return ArrowArray(kind, len(values.ends) - 1, 0, (None, values.ends), (pairs,))


def flags(values: bytearray | bytes, there: bytearray | None = None) -> ArrowArray:
    """Convert bytes that are 0 or 1 to booleans, null where `there` has 0."""
    there = bytearray(b"\1" * len(values)) if there is None else there
    return with_validity(BOOLEAN, there, bits(bytearray(values)))


WIDTHS = {"i": 4, "u": 4, "z": 4, "+l": 4, "b": 0, "+s": 0}
"""Bytes of a row in the buffer after the validity bitmap; 8 for the other types."""


def nulls(count: int, kind: ArrowType) -> ArrowArray:
    """Return an array of that many nulls."""
    own: list[Buffer] = [] if kind.format == "+s" else [bytearray(WIDTHS.get(kind.format, 8) * (count + 1) or count)]
    if kind in (STRING, BINARY):
        own.append(bytearray())
    children = tuple(nulls(count if kind.format == "+s" else 0, field.type) for field in kind.children)
    return ArrowArray(kind, count, count, (bytearray((count + 7) // 8), *own), children)


def plain(values: Sequence[Any], kind: ArrowType) -> ArrowArray:
    """Return the values as an array. Values that do not fit the type raise no error: 64-bit integers wrap as in Java,
    smaller integers become null, and text that is not valid Unicode is escaped."""
    if kind in (STRING, BINARY):
        return strings(_strings(values), kind)
    if kind == INT32:
        values = [value if value is not None and SMALLEST_INT <= value <= LARGEST_INT else None for value in values]
    there = bytearray(value is not None for value in values)
    if kind == BOOLEAN:
        return flags(bytearray(bool(value) for value in values), there)
    if kind == DOUBLE:
        return with_validity(kind, there, array("d", [value or 0 for value in values]))
    if kind.format == "+l":
        ends, end = array("i", [0]), 0
        for value in values:
            end += len(value or ())
            ends.append(end)
        items = plain([item for value in values if value for item in value], kind.children[0].type)
        return with_validity(kind, there, ends, children=[items])
    if kind.format == "+s":
        parts = [plain([value and value.get(name) for value in values], inner) for name, inner in kind.children]
        return with_validity(kind, there, children=parts)
    if any(isinstance(value, datetime) for value in values):
        micros = [value and (value - EPOCH) // MICROSECOND for value in values]
        return with_validity(kind, there, _longs([value and value // (1000 // _per_ms(kind)) for value in micros]))
    held = _longs(values)
    missing = [row for row, is_there in enumerate(there) if not is_there]
    return times(held, missing, kind) if kind.format.startswith("ts") else numbers(held, missing, kind)


def _longs(values: Sequence[int | None]) -> array[int]:
    try:
        return array("q", [value or 0 for value in values])
    except OverflowError:
        return array("q", [int64(value or 0) for value in values])


def _strings(values: Sequence[Any]) -> ArrowStrings:
    found = ArrowStrings()
    pieces = [value.encode("utf-8", "backslashreplace") if isinstance(value, str) else value or b"" for value in values]
    found.data = bytearray().join(pieces)
    found.there = bytearray(value is not None for value in values)
    end = 0
    for piece in pieces:
        end += len(piece)
        found.ends.append(end)
    return found


def taken(values: Sequence[Any], rows: array[int], kind: ArrowType) -> ArrowArray:
    """Return the values with the numbers `rows`, as an array like `plain` makes."""
    if kind in (STRING, BINARY):
        return strings(taken_strings(_strings(values), rows), kind)
    if kind not in (INT32, INT64, BOOLEAN):
        return plain([values[row] for row in rows], kind)
    missing = array("q", [value is None for value in values])
    gone = _where(taken_numbers(missing, rows)) if any(missing) else []
    if kind == BOOLEAN:
        return flags(low_bytes(taken_numbers(_longs(values), rows)), _all_but(gone, len(rows)))
    return numbers(taken_numbers(_longs(values), rows), gone, kind)


def _where(values: array[int]) -> list[int]:
    return [row for row, value in enumerate(values) if value]


def low_bytes(values: array[int]) -> bytes:
    """Return the lowest byte of each 64-bit number."""
    return values.tobytes()[0 if sys.byteorder == "little" else 7 :: 8]


class Rows:
    """Collects rows, as values by column name, and converts them to record batches."""

    BATCH_ROWS = 4096

    def __init__(self, table: SparkTable, schema: ArrowSchema) -> None:
        self.schema = schema
        self.columns: list[SparkColumn] = [table.column(field.name) for field in schema]
        self.rows: list[dict[str, Any]] = []

    def add(self, row: dict[str, Any]) -> bool:
        """Add a row. Returns True if the rows should be taken now."""
        self.rows.append(row)
        return self.is_full

    @property
    def is_full(self) -> bool:
        return len(self.rows) >= self.BATCH_ROWS

    def take(self) -> Iterator[ArrowBatch]:
        """Yield the collected rows as one record batch, if there are any."""
        if self.rows:
            rows, self.rows = self.rows, []
            yield batch_of(
                self.schema,
                self.columns,
                len(rows),
                lambda name, kind, is_time: plain([row.get(name) for row in rows], kind),
            )
