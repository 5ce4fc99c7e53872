"""Lists in the index of a bundle that may be long, such as the blocks of a segment: what does not fit into the entry of
the file is in frames of their own (docs/bundle.md). Checked when they are read: they come from another host."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from kdump.format.container import ContainerReader, ContainerWriter, Frame
from kdump.format.errors import DecodeError
from kdump.io.untrusted_json import natural

STRUCT = "BundleRows"
TABLE = 16 << 10
"""Bytes of rows after which they are written to a table."""
MAX_TABLE = 4 * TABLE
MAX_TABLES = 2048
"""Maximum number of tables of a list, which is then some hundred thousand rows long."""


class Positioned(Protocol):
    """A row: something of a segment, from a position on."""

    @property
    def position(self) -> int: ...


class Located(NamedTuple):
    """A frame that has something of a segment from a position on."""

    position: int
    frame: Frame


class StoredRows(NamedTuple):
    """A list of rows whose positions rise. `tables`: frames of lines with a row each, with the position of the first;
    `rest`: the rows after them."""

    tables: tuple[Located, ...] = ()
    rest: tuple[Any, ...] = ()


class TooManyRows(Exception):
    """Raised for a list with more than MAX_TABLES tables."""


class RowsWriter:
    """Writes a list of rows. Raises TooManyRows."""

    def __init__(self, container: ContainerWriter) -> None:
        self._container = container
        self._tables: list[Located] = []
        self._rows: list[Positioned] = []
        self._size = 0

    def add(self, row: Positioned) -> None:
        """Add a row, which is written as JSON."""
        self._size += len(json.dumps(row, separators=(",", ":"))) + 1
        self._rows.append(row)
        if self._size >= TABLE:
            if len(self._tables) == MAX_TABLES:
                raise TooManyRows
            lines = "\n".join(json.dumps(each, separators=(",", ":")) for each in self._rows)
            self._tables.append(Located(self._rows[0].position, self._container.add(lines.encode())))
            self._rows, self._size = [], 0

    def end(self) -> StoredRows:
        """Return what the entry of the file has to have."""
        return StoredRows(tuple(self._tables), tuple(self._rows))


Row = TypeVar("Row", bound=Positioned)


class RowsReader(Generic[Row]):
    """Reads a list of rows, which `parse` returns for objects of JSON's types. Holds one table at a time. Raises
    DecodeError."""

    def __init__(self, container: ContainerReader, stored: StoredRows, parse: Callable[[Any], Row]) -> None:
        self._container = container
        self._stored = stored
        self._parse = parse
        self._firsts = [located.position for located in (*stored.tables, *stored.rest[:1])]
        self._held: tuple[int, Sequence[Row]] = (-1, ())

    def find(self, position: int) -> Row | None:
        """Return the last row that begins at a position or before; None if there is none."""
        number = bisect_right(self._firsts, position) - 1
        if number < 0:
            return None
        rows = self._table(number)
        return rows[bisect_right([row.position for row in rows], position) - 1]

    def after(self, position: int) -> Iterator[Row]:
        """Yield the rows from the one on that `find` returns, or else all."""
        first = self.find(position)
        for number in range(max(0, bisect_right(self._firsts, position) - 1), len(self._firsts)):
            for row in self._table(number):
                if first is None or row.position >= first.position:
                    yield row

    def _table(self, number: int) -> Sequence[Row]:
        if number == self._held[0]:
            return self._held[1]
        rows: Sequence[Row] = self._stored.rest
        if number < len(self._stored.tables):
            rows = self._read(self._stored.tables[number])
            if number + 1 < len(self._firsts) and rows[-1].position >= self._firsts[number + 1]:
                raise DecodeError(STRUCT, "position", number, f"byte {rows[-1].position} is in the next table, too")
        self._held = number, rows
        return rows

    def _read(self, table: Located) -> list[Row]:
        data = self._container.read(table.frame, MAX_TABLE)
        try:
            rows = [self._parse(json.loads(line)) for line in data.split(b"\n")]
            if rows[0].position != table.position:
                raise ValueError(f"a table from byte {rows[0].position}, expected {table.position}")
            _must_rise(rows)
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
            raise DecodeError(STRUCT, "", 0, f"{type(error).__name__}: {error}") from error
        return rows


def _must_rise(rows: Sequence[Positioned]) -> None:
    """Raise ValueError for positions that do not rise."""
    if any(one.position >= other.position for one, other in pairwise(rows)):
        raise ValueError("positions that do not rise")


def frame_of(row: Any) -> Frame:
    """Raises TypeError or ValueError."""
    return Frame(*map(natural, row))


def located_of(row: Any) -> Located:
    """Raises TypeError or ValueError."""
    position, frame = row
    return Located(natural(position), frame_of(frame))


def rows_of(value: Any, parse: Callable[[Any], Positioned]) -> StoredRows:
    """Return a list of rows; the tables are checked when they are read. Raises TypeError or ValueError."""
    tables, rest = value
    stored = StoredRows(tuple(map(located_of, tables)), tuple(map(parse, rest)))
    _must_rise((*stored.tables, *stored.rest[:1]))
    _must_rise(stored.rest)
    if len(stored.tables) > MAX_TABLES:
        raise ValueError(f"{len(stored.tables)} tables")
    return stored
