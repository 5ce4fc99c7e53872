"""What a table, and the tree beside it, show a line each of; and lists of them that are read piece by piece."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple, Protocol

from kdump.render.table import Column

Met = Callable[[int], None]
"""Called with a position as reading goes on; it raises Cancelled when nobody waits for the answer any more."""


class Cancelled(Exception):
    """Somebody has gone elsewhere."""


class Row(NamedTuple):
    """A line. `type`: directory, partition, file, batch, region, header, record, entry, note or field; `key` tells it
    apart from others of its list; `cells` are its columns, empty where `text` stands in the place of all; `label` is
    what the tree calls it. All text has been escaped."""

    type: str
    key: Any
    item: Any
    label: str
    cells: tuple[str, ...] = ()
    text: str = ""
    style: str = ""


class Part(NamedTuple):
    """Rows that follow each other. `first` and `last`: whether the list begins, and ends, with them."""

    rows: list[Row]
    first: bool
    last: bool


class Listing(Protocol):
    """Rows in order, however many. `before` and `after` do not include the row that they are given."""

    columns: list[Column]

    def head(self, count: int, met: Met) -> Part: ...

    def tail(self, count: int, met: Met) -> Part: ...

    def after(self, row: Row, count: int, met: Met) -> Part: ...

    def before(self, row: Row, count: int, met: Met) -> Part: ...


class Whole:
    """Rows that are all there."""

    def __init__(self, rows: list[Row], columns: list[Column]) -> None:
        self.rows = rows
        self.columns = columns
        self._places = {row.key: number for number, row in enumerate(rows)}

    def head(self, count: int, met: Met) -> Part:
        return self._part(0, count)

    def tail(self, count: int, met: Met) -> Part:
        return self._part(max(0, len(self.rows) - count), count)

    def after(self, row: Row, count: int, met: Met) -> Part:
        return self._part(self._places[row.key] + 1, count)

    def before(self, row: Row, count: int, met: Met) -> Part:
        stop = self._places[row.key]
        start = max(0, stop - count)
        return self._part(start, stop - start)

    def _part(self, start: int, count: int) -> Part:
        return Part(self.rows[start : start + count], start == 0, start + count >= len(self.rows))


class Counted:
    """Rows made, by `row`, of the items of an iterator that can begin anew; the key of each is its number, from 0. One
    iterator is kept, so that going on costs no more than what is new."""

    def __init__(
        self, items: Callable[[Met], Iterator[Any]], row: Callable[[int, Any], Row], columns: list[Column]
    ) -> None:
        self.items = items
        self.columns = columns
        self._row = row
        self._stream: Iterator[Any] | None = None
        self._met: Met = lambda position: None
        self._at = 0

    def head(self, count: int, met: Met) -> Part:
        return self.from_number(0, count, met)

    def after(self, row: Row, count: int, met: Met) -> Part:
        return self.from_number(row.key + 1, count, met)

    def before(self, row: Row, count: int, met: Met) -> Part:
        start = max(0, row.key - count)
        found = self.from_number(start, row.key - start, met)
        return found._replace(last=False)

    def tail(self, count: int, met: Met) -> Part:
        kept = deque(enumerate(self.items(met)), maxlen=count)
        return Part([self._row(*each) for each in kept], not kept or kept[0][0] == 0, True)

    def from_number(self, start: int, count: int, met: Met) -> Part:
        """`count` rows from that number on."""
        self._met = met
        if self._stream is None or start < self._at:
            self._stream, self._at = self.items(lambda position: self._met(position)), 0
        stream = self._stream
        self._stream = None  # an error ends it
        for _ in islice(stream, start - self._at):
            pass
        rows = [self._row(number, item) for number, item in enumerate(islice(stream, count), start)]
        ahead = list(islice(stream, 1)) if len(rows) == count else []
        self._at = start + len(rows)
        if ahead:
            self._stream = chain(ahead, stream)
        return Part(rows, start == 0, not ahead)
