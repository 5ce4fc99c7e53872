"""Rows of the table and the tree, listings of rows that are read in parts, in the order of the file or sorted, and the
levels of the browser, which show a part of a listing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from heapq import nlargest, nsmallest
from itertools import chain, islice
from operator import itemgetter
from typing import Any, NamedTuple

from kdump.format.count_text import count_text, plain_count
from kdump.io.errors import SourceError
from kdump.io.partly_readable import PartlyReadable
from kdump.io.run import PLAIN_RUN, Run
from kdump.io.source import FileSource
from kdump.io.window import LARGE, Window
from kdump.log.entries import Entry
from kdump.log.file_contents import by_content
from kdump.log.file_kinds import PRODUCER_SNAPSHOT, FileKind
from kdump.log.live_files import open_window
from kdump.log.paths import Target, natural
from kdump.log.region import Batch, Defect
from kdump.render.table import Column

MAX_KEPT_ROWS = 192
"""Maximum rows of a listing to keep; those farthest from the cursor are dropped."""
MAX_SORTED = 10_000
"""Maximum number of rows of a sorted listing that is read in parts."""
COMPARED = 256
"""Maximum length of a key, value or text that is compared."""
NUMBER, TEXT = 0, 1
FIELDS = {"offsets": "baseOffset", "producer": "producerId", "sequences": "baseSequence"}
"""What columns that combine several fields of a batch are sorted by."""
MORE = "more"
"""Key of the row after the last one that is listed."""


class Cancelled(Exception):
    """Raised when the user has moved on and the result is no longer needed."""


class BrowseRow(NamedTuple):
    """A row. `type`: directory, partition, file, batch, region, header, record, entry, note or field (in lists: that of
    what is listed); `key` is unique in its listing; `cells` are its columns, empty if `text` replaces all of them;
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


class Listing:
    """Any number of rows, in order. `before` and `after` do not include the given row. `run.at` is called while
    reading, and raises Cancelled if the result is no longer needed. Here, rows have numbers from 0 on: `number` is that
    of a row, `part` returns `count` rows from one on."""

    columns: list[Column]
    about = ""
    """What the status line says of all rows."""

    def number(self, row: BrowseRow) -> int:
        raise NotImplementedError

    def part(self, start: int, count: int, run: Run) -> ListingSlice:
        raise NotImplementedError

    def tail(self, count: int, run: Run) -> ListingSlice:
        raise NotImplementedError

    def head(self, count: int, run: Run) -> ListingSlice:
        return self.part(0, count, run)

    def after(self, row: BrowseRow, count: int, run: Run) -> ListingSlice:
        return self.part(self.number(row) + 1, count, run)

    def before(self, row: BrowseRow, count: int, run: Run) -> ListingSlice:
        stop = self.number(row)
        start = max(0, stop - count)
        return self.part(start, stop - start, run)


class LongListing(Listing):
    """A listing whose rows are read again whenever they are shown."""

    def each(self, run: Run) -> Iterator[tuple[Any, Any]]:
        """Yield the keys and items of all rows."""
        raise NotImplementedError

    def may_keep(self, item: Any) -> bool:
        """Return True if an item is small, so that thousands of them may be kept in memory."""
        raise NotImplementedError

    def row_of(self, key: Any, item: Any) -> BrowseRow:
        raise NotImplementedError

    def rows_at(self, keys: list[Any], run: Run) -> dict[Any, BrowseRow]:
        """Return the rows with these keys, by key."""
        raise NotImplementedError


class FullListing(Listing):
    """A listing whose rows are all in memory."""

    def __init__(self, rows: list[BrowseRow], columns: list[Column]) -> None:
        self.rows, self.columns = rows, columns
        self._places = {row.key: number for number, row in enumerate(rows)}

    def number(self, row: BrowseRow) -> int:
        return self._places[row.key]

    def part(self, start: int, count: int, run: Run) -> ListingSlice:
        return ListingSlice(self.rows[start : start + count], start == 0, start + count >= len(self.rows))

    def tail(self, count: int, run: Run) -> ListingSlice:
        return self.part(max(0, len(self.rows) - count), count, run)


class CountedListing(LongListing):
    """A listing built by `row` from the items of an iterator that can be restarted; the key of a row is its number,
    from 0. The current iterator is kept, so that reading further does not repeat earlier items."""

    def __init__(
        self, items: Callable[[Run], Iterator[Any]], row: Callable[[int, Any], BrowseRow], columns: list[Column]
    ) -> None:
        self.items = items
        self.columns = columns
        self.row_of = row  # type: ignore[method-assign,assignment]
        self._stream: Iterator[Any] | None = None
        self._run = PLAIN_RUN
        self._at = 0

    def number(self, row: BrowseRow) -> int:
        return int(row.key)

    def tail(self, count: int, run: Run) -> ListingSlice:
        kept = deque(enumerate(self.items(run)), maxlen=count)
        return ListingSlice([self.row_of(*numbered) for numbered in kept], not kept or kept[0][0] == 0, True)

    def each(self, run: Run) -> Iterator[tuple[Any, Any]]:
        yield from enumerate(self.items(run))

    def may_keep(self, item: Any) -> bool:
        return isinstance(item, Entry)

    def rows_at(self, keys: list[Any], run: Run) -> dict[Any, BrowseRow]:
        items = islice(enumerate(self.items(run)), max(keys) + 1)
        requested = set(keys)
        return {number: self.row_of(number, item) for number, item in items if number in requested}

    def part(self, start: int, count: int, run: Run) -> ListingSlice:
        self._run = run
        if self._stream is None or start < self._at:
            self._stream, self._at = self.items(Run(at=lambda position, size: self._run.at(position, size))), 0
        stream = self._stream
        self._stream = None  # not reused if reading raises an error
        for _ in islice(stream, start - self._at):
            pass
        rows = [self.row_of(number, item) for number, item in enumerate(islice(stream, count), start)]
        ahead = list(islice(stream, 1)) if len(rows) == count else []
        self._at = start + len(rows)
        if ahead:
            self._stream = chain(ahead, stream)
        return ListingSlice(rows, start == 0, not ahead)


# -- sorted: all rows are read before the first one is shown, so that the order is never that of a part


class SortOrder(NamedTuple):
    """A column, by its name, and the direction."""

    column: str
    descending: bool

    @property
    def direction(self) -> str:
        return "descending" if self.descending else "ascending"

    @property
    def text(self) -> str:
        return f"sorted by {self.column}, {self.direction}"


def chosen_order(typed: str, columns: list[Column]) -> SortOrder:
    """Return the order that is typed: a column, and asc or desc; a minus before the name stands for desc. Numbers are
    sorted from the largest by default. Raises ValueError."""
    from difflib import get_close_matches

    name, *direction = typed.split()
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
    if isinstance(item, Defect) or (hasattr(item, "kind") and not isinstance(item, Batch)):
        return None
    if isinstance(item, Entry):
        value = item.values.get(column.name)
    else:
        value = getattr(item, FIELDS.get(column.name, column.name), None)
        if isinstance(value, (list, tuple)) or not hasattr(item, FIELDS.get(column.name, column.name)):
            value = column.cell(item) or None
    if isinstance(value, str):
        if value.removeprefix("-").isdecimal() and len(value) < 30:
            return NUMBER, int(value)
        value = value.encode("utf-8", "surrogateescape")
    if value is None or isinstance(value, (bool, int, float)):
        return None if value is None else (NUMBER, value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        long[0] |= len(value) > COMPARED
        return TEXT, bytes(value[:COMPARED])
    return TEXT, str(value)[:COMPARED].encode()


def sorted_listing(listing: Listing, order: SortOrder, run: Run) -> Listing:
    """Return the listing in that order, after reading all of it. Of a long one, only the first rows of the order are
    kept; those without the column come last. Raises SourceError, and Cancelled from `run.at`."""
    column = next(column for column in listing.columns if column.name == order.column)
    long = [False]
    if isinstance(listing, FullListing):
        valued = [(_row_value(column, row, long), row) for row in listing.rows]
        found = sorted((each for each in valued if each[0]), key=itemgetter(0), reverse=order.descending)
        return FullListing([row for _, row in [*found, *(each for each in valued if not each[0])]], listing.columns)
    assert isinstance(listing, LongListing)
    head: list[tuple[Any, Any, Any]] = []
    without: list[tuple[Any, Any, Any]] = []
    total = 0

    def with_value() -> Iterator[tuple[Any, Any, Any]]:
        nonlocal total
        for key, item in listing.each(run):
            total += 1
            kept = item if listing.may_keep(item) else None
            if isinstance(listing, CountedListing) and isinstance(item, Batch):
                head.append((None, key, kept))  # the header of the batch stays above its records
            elif (value := sort_value(column, item, long)) is not None:
                yield value, key, kept
            elif len(without) < MAX_SORTED:
                without.append((None, key, kept))

    best = (nlargest if order.descending else nsmallest)(MAX_SORTED, with_value(), key=itemgetter(0))
    rows = [*head, *[*best, *without][:MAX_SORTED]]
    return SortedListing(listing, [each[1:] for each in rows], total, order, long[0])


def _row_value(column: Column, row: BrowseRow, long: list[bool]) -> Any:
    if row.facts is not None and column.name == "name":
        return TEXT, natural(row.facts.name)
    return sort_value(column, row.item if row.facts is None else row.facts, long)


class SortedListing(Listing):
    """The first rows of an order, by the keys and items that they have in `source`, the listing in the order of the
    file; without an item, they are read again when they are shown. `total`: number of its rows."""

    def __init__(
        self, source: LongListing, rows: list[tuple[Any, Any]], total: int, order: SortOrder, has_long: bool
    ) -> None:
        self.source = source
        self.columns = source.columns
        self.total, self._rows = total, rows
        self._places = {key: number for number, (key, _) in enumerate(rows)}
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
        missing = [key for key, item in chosen if item is None]
        made = self.source.rows_at(missing, run) if missing else {}
        made |= {key: self.source.row_of(key, item) for key, item in chosen if item is not None}
        rows = [made[key] for key, _ in chosen if key in made]  # the file may have been truncated since
        is_last = start + count >= len(self._rows)
        if is_last and self.total > len(self._rows):
            note = f"… {self.total - len(self._rows)} more rows are not listed; S sorts the other way round"
            rows.append(BrowseRow("note", MORE, None, "…", (), note, "dim"))
        return ListingSlice(rows, start == 0, is_last)


# -- levels


class OpenFile:
    """A window over a file, opened on first use: read with the precautions for a live broker, never used after it is
    closed."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._window: Window | None = None
        self._kind: FileKind | None = target.kind
        self._closed = False

    @property
    def window(self) -> Window:
        """The window. Raises SourceError if the file cannot be opened, or has been closed."""
        if self._closed:
            raise SourceError.at(self.target.path, "closed")
        if self._window is None:
            self._window = open_window(self.target)
            self._window.source.keep = True  # compressed files: the browser also moves backward in them
            self._window.seek_headers(LARGE)
        return self._window

    @property
    def kind(self) -> FileKind:
        """The file kind by its name, or else by its content. Raises SourceError."""
        if self._kind is None:
            self._kind = by_content(self.window)
            self.target = self.target._replace(kind=self._kind)
        if self._kind is PRODUCER_SNAPSHOT:
            self.window.source.keep = True
        return self._kind

    @property
    def size(self) -> int | None:
        """Size in bytes; None for a compressed file that has not been read to its end."""
        return self.window.source.size

    @property
    def length(self) -> int | None:
        """Like `size`, but without reading anything: None if the file has not been opened yet."""
        return None if self._window is None else self._window.source.size

    def close(self) -> None:
        if self._window is not None and not self._closed:
            self._window.source.close()
        self._closed = True

    def remark(self) -> str:
        """Return a note on unreadable bytes or on changes since the file was opened; empty if there are none."""
        source = None if self._closed or self._window is None else self._window.source
        if source is None:
            return ""
        if source.error:
            return source.error
        if isinstance(source, PartlyReadable) and source.unreadable:
            return f"{len(source.unreadable)} byte ranges cannot be read ({source.fault}) and are shown as zeros"
        if isinstance(source, FileSource):
            grown = source.grown()
            if source.is_deleted():
                return "this file has been deleted; what is still readable is shown"
            if grown:
                how = "grew" if grown > 0 else "was truncated"
                return f"{how} by {plain_count(abs(grown), 'byte')} since it was opened; r reads it again"
        return ""


@dataclass
class Level:
    """A listing, its loaded rows, and the cursor. `file`: the file that is listed, or that contains what is listed;
    `owner`: the row that was entered, None at the top."""

    listing: Listing
    owner: BrowseRow | None
    file: OpenFile | None = None
    rows: list[BrowseRow] = field(default_factory=list)
    first: bool = True
    last: bool = True
    cursor: int = 0
    order: SortOrder | None = None
    unsorted: Listing | None = None
    """The listing in the order of the file, if it is sorted."""
    path: str = ""
    about: str = ""
    """Summary of a log directory, for the status line."""
    is_partition: bool = False
    """Whether this is the level of a partition directory."""

    def put(self, part: ListingSlice, cursor: int = 0) -> Level:
        self.rows, self.first, self.last = part.rows, part.first, part.last
        self.cursor = max(0, min(cursor, len(self.rows) - 1))
        return self

    def grow(self, part: ListingSlice, *, down: bool) -> None:
        """Add rows after the loaded ones, or before them, and drop those farthest from them."""
        if down:
            self.rows, self.last = [*self.rows, *part.rows], part.last
            over = max(0, len(self.rows) - MAX_KEPT_ROWS)
            self.rows, self.cursor = self.rows[over:], max(0, self.cursor - over)
            self.first = self.first and not over
        else:
            self.rows, self.first = [*part.rows, *self.rows], part.first
            self.cursor += len(part.rows)
            self.last = self.last and len(self.rows) <= MAX_KEPT_ROWS
            self.rows = self.rows[:MAX_KEPT_ROWS]
            self.cursor = min(self.cursor, len(self.rows) - 1)

    def sorted(self, order: SortOrder, run: Run) -> Level:
        """Return the same level in that order, still without its rows. Reads all of them. Raises SourceError."""
        return replace(self, listing=sorted_listing(self.source, order, run), order=order, unsorted=self.source)

    @property
    def source(self) -> Listing:
        """The listing in the order of the file."""
        return self.listing if self.unsorted is None else self.unsorted

    @property
    def row(self) -> BrowseRow | None:
        return self.rows[self.cursor] if 0 <= self.cursor < len(self.rows) else None

    def select(self, key: Any) -> None:
        """Select the row with that key, if it is loaded."""
        self.cursor = next((n for n, row in enumerate(self.rows) if row.key == key and row.type != "note"), self.cursor)
