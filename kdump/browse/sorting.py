"""Sorts the rows of a listing by a column. All rows are read before the first one is shown, so that the order is never
that of a part; of a long listing, only the first rows of the order are kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from kdump.browse.row_listings import (
    BrowseRow,
    CountedListing,
    FullListing,
    Listing,
    ListingSlice,
    NumberedListing,
)
from kdump.browse.segment_pages import Pages
from kdump.format.count_text import count_text
from kdump.log.entries import Entry
from kdump.log.paths import natural
from kdump.log.region import Batch, Problem
from kdump.log.run import Run
from kdump.render.table import Column

MAX_SORTED = 10_000
"""Maximum number of rows of a sorted listing that is read in parts."""
COMPARED = 256
"""Maximum length of a key, value or text that is compared."""
NUMBER, TEXT = 0, 1
FIELDS = {"offsets": "baseOffset", "producer": "producerId", "sequences": "baseSequence"}
"""What columns that combine several fields of a batch are sorted by."""


class SortOrder(NamedTuple):
    """A column, by its name, and the direction."""

    column: str
    descending: bool

    @property
    def text(self) -> str:
        return f"sorted by {self.column}, {'descending' if self.descending else 'ascending'}"


class Sortable(NamedTuple):
    """A row while it is sorted: `value` compares with those of other rows, None comes last. `item` is None if it is
    read again to be shown."""

    value: Any
    key: Any
    item: Any


def chosen_order(text: str, columns: list[Column]) -> SortOrder:
    """Return the order that is typed: a column, and asc or desc; a minus before the name stands for desc. Numbers are
    sorted from the largest by default. Raises ValueError."""
    from difflib import get_close_matches

    words = text.split()
    name, direction = words[0], words[1:]
    descending = name.startswith("-") or direction == ["desc"]
    if direction not in ([], ["asc"], ["desc"]):
        raise ValueError(f"{' '.join(direction)!r} is not a direction; use asc or desc")
    name = name.removeprefix("-")
    names = {alias: column for column in reversed(columns) for alias in (column.label.lower(), column.name.lower())}
    if name.lower() not in names:
        similar = get_close_matches(name.lower(), names, 1, 0.5)
        hint = f"did you mean {names[similar[0]].name}? " if similar else ""
        raise ValueError(f"no column {name!r}; {hint}columns are {', '.join(column.name for column in columns)}")
    column = names[name.lower()]
    return SortOrder(column.name, descending or (not direction and column.right))


def sort_value(column: Column, item: Any, long: list[bool]) -> Any:
    """Return what an item is compared by: a number, or text; None if it does not have the column. A text that is longer
    than COMPARED is noted in `long`."""
    if isinstance(item, Problem) or (hasattr(item, "kind") and not isinstance(item, Batch)):
        return None
    if isinstance(item, Entry):
        value = item.values.get(column.name)
    else:
        value = getattr(item, FIELDS.get(column.name, column.name), None)
        if isinstance(value, (list, tuple)) or not hasattr(item, FIELDS.get(column.name, column.name)):
            value = column.cell(item) or None
    if isinstance(value, (bool, int, float)):
        return NUMBER, value
    if isinstance(value, str):
        number = _number(value)
        if number is not None:
            return NUMBER, number
        value = value.encode("utf-8", "surrogateescape")
    if isinstance(value, (bytes, bytearray, memoryview)):
        long[0] |= len(value) > COMPARED
        return TEXT, bytes(value[:COMPARED])
    return None if value is None else (TEXT, str(value)[:COMPARED].encode())


def _number(text: str) -> int | None:
    return int(text) if text.removeprefix("-").isdecimal() and len(text) < 30 else None


class _Best:
    """The first MAX_SORTED rows of an order, with bounded memory. Rows with equal values keep their order."""

    def __init__(self, descending: bool, limit: int) -> None:
        self.descending = descending
        self.limit = limit
        self.total = 0
        self._rows: list[Sortable] = []
        self._last: list[Sortable] = []

    def add(self, row: Sortable) -> None:
        self.total += 1
        if row.value is None:
            if len(self._last) < self.limit:
                self._last.append(row)
            return
        self._rows.append(row)
        if len(self._rows) >= 2 * self.limit:
            self._cut()

    def _cut(self) -> None:
        self._rows.sort(key=lambda row: row.value, reverse=self.descending)
        del self._rows[self.limit :]

    def rows(self) -> list[Sortable]:
        self._cut()
        return [*self._rows, *self._last][: self.limit]


def sorted_listing(listing: Listing, order: SortOrder, run: Run) -> FullListing | SortedListing:
    """Return the listing in that order, after reading all of it. Raises SourceError, and Cancelled from
    `run.at`."""
    column = next(column for column in listing.columns if column.name == order.column)
    long = [False]
    if isinstance(listing, FullListing):
        return FullListing(_sorted_rows(listing.rows, column, order, long), listing.columns)
    assert isinstance(listing, (Pages, CountedListing))
    best = _Best(order.descending, MAX_SORTED)
    head: list[Sortable] = []
    for key, item in listing.each(run):
        kept = item if listing.may_keep(item) else None
        if isinstance(listing, CountedListing) and isinstance(item, Batch):
            head.append(Sortable(None, key, kept))  # the header of the batch stays above its records
            continue
        best.add(Sortable(sort_value(column, item, long), key, kept))
    return SortedListing(listing, [*head, *best.rows()], best.total + len(head), order, long[0])


def _sorted_rows(rows: Iterable[BrowseRow], column: Column, order: SortOrder, long: list[bool]) -> list[BrowseRow]:
    def value(row: BrowseRow) -> Any:
        if row.facts is not None and column.name == "name":
            return TEXT, natural(row.facts.name)
        return sort_value(column, row.item if row.facts is None else row.facts, long)

    valued = [(value(row), row) for row in rows]
    found = sorted((each for each in valued if each[0] is not None), key=lambda each: each[0], reverse=order.descending)
    return [row for _, row in found] + [row for value_, row in valued if value_ is None]


class SortedListing(NumberedListing):
    """The first rows of an order; they are read again when they are shown. The rows have the keys that they have in
    `source`, the listing in the order of the file. `total`: number of its rows."""

    def __init__(
        self, source: Pages | CountedListing, rows: list[Sortable], total: int, order: SortOrder, has_long: bool
    ) -> None:
        self.source = source
        self.columns = source.columns
        self.total = total
        self._rows = rows
        self._places = {row.key: number for number, row in enumerate(rows)}
        self.about = f"{order.text}; all {count_text(total, 'row')} read"
        if total > len(rows):
            self.about = f"{order.text}: the first {len(rows)} of {count_text(total, 'row')}"
        if has_long:
            self.about += f"; compared by their first {COMPARED} bytes"

    def number(self, row: BrowseRow) -> int:
        return self._places.get(row.key, len(self._rows))

    def tail(self, count: int, run: Run) -> ListingSlice:
        return self.part(max(0, len(self._rows) - count), count, run)

    def around(self, row: BrowseRow | None, count: int, run: Run) -> ListingSlice:
        """Return rows before and after a row of the source; the first ones if it is not listed."""
        place = self._places.get(row.key, 0) if row is not None else 0
        return self.part(max(0, place - count // 2), count, run)

    def part(self, start: int, count: int, run: Run) -> ListingSlice:
        chosen = self._rows[start : start + count]
        missing = [each.key for each in chosen if each.item is None]
        read = self.source.rows_at(missing, run) if missing else {}
        rows = list(self._made(chosen, read))
        is_last = start + count >= len(self._rows)
        if is_last and self.total > len(self._rows):
            text = f"… {self.total - len(self._rows)} more rows are not listed; S sorts the other way round"
            rows.append(BrowseRow("note", MORE, None, "…", (), text, "dim"))
        return ListingSlice(rows, start == 0, is_last)

    def _made(self, chosen: list[Sortable], read: dict[Any, BrowseRow]) -> Iterator[BrowseRow]:
        for each in chosen:
            if each.item is not None:
                yield self.source.row_of(each.key, each.item)
            elif each.key in read:  # the file may have been truncated since
                yield read[each.key]


MORE = "more"
"""Key of the row after the last one that is listed."""
