"""Rows of the table and the tree, and listings of rows that are read in parts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple, Protocol

from kdump.log.entries import Entry
from kdump.log.run import PLAIN_RUN, Run
from kdump.render.table import Column


class Cancelled(Exception):
    """Raised when the user has moved on and the result is no longer needed."""


class BrowseRow(NamedTuple):
    """A row. `type`: directory, partition, file, batch, region, header, record, entry, note or field (in lists: finding
    or transaction); `key` is unique in its listing; `cells` are its columns, empty if `text` replaces all of them;
    `label` is its text in the tree. `facts`: what the columns show, if not the item. All text is escaped."""

    type: str
    key: Any
    item: Any
    label: str
    cells: tuple[str, ...] = ()
    text: str = ""
    style: str = ""
    facts: Any = None


class ListingSlice(NamedTuple):
    """Consecutive rows. `first` and `last`: whether they contain the first, or last, row of the listing."""

    rows: list[BrowseRow]
    first: bool
    last: bool


class Listing(Protocol):
    """Any number of rows, in order. `before` and `after` do not include the given row. `run.at` is called while
    reading, and raises Cancelled if the result is no longer needed."""

    columns: list[Column]

    def head(self, count: int, run: Run) -> ListingSlice: ...

    def tail(self, count: int, run: Run) -> ListingSlice: ...

    def after(self, row: BrowseRow, count: int, run: Run) -> ListingSlice: ...

    def before(self, row: BrowseRow, count: int, run: Run) -> ListingSlice: ...


class NumberedListing:
    """A listing whose rows have numbers, from 0 on."""

    columns: list[Column]

    def number(self, row: BrowseRow) -> int:
        """Return the number of a row."""
        raise NotImplementedError

    def part(self, start: int, count: int, run: Run) -> ListingSlice:
        """Return `count` rows from that number on."""
        raise NotImplementedError

    def head(self, count: int, run: Run) -> ListingSlice:
        return self.part(0, count, run)

    def after(self, row: BrowseRow, count: int, run: Run) -> ListingSlice:
        return self.part(self.number(row) + 1, count, run)

    def before(self, row: BrowseRow, count: int, run: Run) -> ListingSlice:
        stop = self.number(row)
        start = max(0, stop - count)
        return self.part(start, stop - start, run)


class FullListing(NumberedListing):
    """A listing whose rows are all in memory."""

    def __init__(self, rows: list[BrowseRow], columns: list[Column]) -> None:
        self.rows = rows
        self.columns = columns
        self._places = {row.key: number for number, row in enumerate(rows)}

    def number(self, row: BrowseRow) -> int:
        return self._places[row.key]

    def part(self, start: int, count: int, run: Run) -> ListingSlice:
        return ListingSlice(self.rows[start : start + count], start == 0, start + count >= len(self.rows))

    def tail(self, count: int, run: Run) -> ListingSlice:
        return self.part(max(0, len(self.rows) - count), count, run)


class CountedListing(NumberedListing):
    """A listing built by `row` from the items of an iterator that can be restarted; the key of a row is its number,
    from 0. The current iterator is kept, so that reading further does not repeat earlier items."""

    def __init__(
        self, items: Callable[[Run], Iterator[Any]], row: Callable[[int, Any], BrowseRow], columns: list[Column]
    ) -> None:
        self.items = items
        self.columns = columns
        self._row = row
        self._stream: Iterator[Any] | None = None
        self._run = PLAIN_RUN
        self._at = 0

    def number(self, row: BrowseRow) -> int:
        return int(row.key)

    def tail(self, count: int, run: Run) -> ListingSlice:
        kept = deque(enumerate(self.items(run)), maxlen=count)
        return ListingSlice([self._row(*each) for each in kept], not kept or kept[0][0] == 0, True)

    def each(self, run: Run) -> Iterator[tuple[Any, Any]]:
        """Yield the keys and items of all rows."""
        yield from enumerate(self.items(run))

    def may_keep(self, item: Any) -> bool:
        """Return True if an item is small, so that thousands of them may be kept in memory."""
        return isinstance(item, Entry)

    def row_of(self, key: Any, item: Any) -> BrowseRow:
        return self._row(key, item)

    def rows_at(self, keys: list[Any], run: Run) -> dict[Any, BrowseRow]:
        """Return the rows with these keys, by key, in one pass."""
        requested = set(keys)
        last = max(requested)
        items = islice(enumerate(self.items(run)), last + 1)
        return {number: self._row(number, item) for number, item in items if number in requested}

    def part(self, start: int, count: int, run: Run) -> ListingSlice:
        self._run = run
        if self._stream is None or start < self._at:
            self._stream, self._at = self.items(Run(at=lambda position, size: self._run.at(position, size))), 0
        stream = self._stream
        self._stream = None  # not reused if reading raises an error
        for _ in islice(stream, start - self._at):
            pass
        rows = [self._row(number, item) for number, item in enumerate(islice(stream, count), start)]
        ahead = list(islice(stream, 1)) if len(rows) == count else []
        self._at = start + len(rows)
        if ahead:
            self._stream = chain(ahead, stream)
        return ListingSlice(rows, start == 0, not ahead)
