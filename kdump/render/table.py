"""A table that streams: the first rows determine the column widths, the others are written as they come."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from kdump.answer import NAME, PATH, TEXT, VALUE
from kdump.format.count_text import plain_count
from kdump.render.escape import printable, without_end
from kdump.render.stdout import Output
from kdump.render.style import cut, cut_middle, cut_start, painter, width

GAP = "  "
SAMPLE = 100
"""Number of rows that are collected before the first is written."""
LARGE_SAMPLE = 1 << 20
"""Number of characters in cells after which no more rows are collected."""
FEW_NAMES = 12
"""Number of columns up to which the error for an unknown one lists them all."""
SIMILAR_NAMES = 4
"""Maximum number of similar names that it lists otherwise."""
GAP_IN_ROWS, MAX_WAIT = 0.5, 2.0
"""On a terminal: seconds since the last row, and since the first, after which rows are written without waiting for
more. Not elsewhere, so that a table has the same widths on every run."""


class UnknownColumn(ValueError):
    """Raised for a name that the table does not have; the message lists its names, or the most similar ones."""


class OtherColumns(ValueError):
    """Raised for a row that does not have the columns of the CSV so far."""


def check_names(names: Iterable[str], known: Collection[str]) -> None:
    """Raise UnknownColumn for the first name that is not one of the `known` columns."""
    for name in names:
        if name not in known:
            raise _unknown_column(name, known)


def _unknown_column(name: str, known: Iterable[str]) -> UnknownColumn:
    """Return the error for a name; its message is one line, however many columns there are."""
    import difflib  # only for this error

    names = list(dict.fromkeys(known))
    if len(names) <= FEW_NAMES:
        return UnknownColumn(f"unknown column {printable(name)!r}; known are {', '.join(names)}")
    by_letters = {_letters(column): column for column in names}
    typed = _letters(name)
    similar = [column for letters, column in by_letters.items() if len(typed) > 2 and typed in letters]
    similar += [by_letters[column] for column in difflib.get_close_matches(typed, by_letters, FEW_NAMES, 0.5)]
    hints = list(dict.fromkeys(similar))[:SIMILAR_NAMES]
    hint = f"similar: {', '.join(hints)}; " if hints else ""
    return UnknownColumn(
        f"unknown column {printable(name)!r}; {hint}the {plain_count(len(names), 'column')} are the keys of --json"
    )


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def problem_line(code: str, position: int | None, message: str) -> str:
    """Return the line of a table for a finding about the row before it; `position` is a byte of the file."""
    return f"  ! {code} at byte {position}: {message}"


CUTS: dict[str, tuple[Callable[[str, int], str], ...]] = {NAME: (cut_middle, cut_start), PATH: (cut_start, cut_middle)}
"""How names are shortened: the first way in which those of the first rows stay different."""
EXPENDABLE = 6
"""Columns with a lower rank are left out rather than that a name is shortened."""
WIDEST_NAME = 48
"""Width up to which they are."""
MAX_SHORTENED = 4096
"""Shortened names of a column that are remembered, to notice two that look alike: at most 1 MiB. Further ones are not
shortened."""


class Column(NamedTuple):
    """A column. `cell` returns the text for a row's item. On a narrow terminal the columns with the lowest `rank` are
    left out first (rank 9 never). Columns with `least` share the remaining room, are at least that wide, and are
    shortened to fit, as `cuts` states."""

    name: str
    label: str
    cell: Callable[[Any], str]
    right: bool = False
    rank: int = 9
    least: int | None = None
    cuts: str = VALUE


class TableRow(NamedTuple):
    cells: list[str]
    style: str


class SizedColumns(NamedTuple):
    """Layout of a table: its columns with their widths, and those that have been empty in all rows so far."""

    shown: list[tuple[Column, int]]
    hidden: list[Column]


class Table:
    """Writes rows and, between them, lines of text.

    Nothing is truncated in a pipe or with `full`. `chosen` columns are all shown, whatever the width."""

    def __init__(self, columns: list[Column], output: Output, *, full: bool = False, chosen: bool = False) -> None:
        self.columns, self.output = columns, output
        self.room = None if full else output.width
        self.chosen = chosen
        self.paint = painter(output.colour)
        self._waiting: list[TableRow | tuple[str, str]] = []
        self._since = self._latest = 0.0
        self._sampled = 0
        self._widths: list[int] | None = None
        self._shown: list[int] = []
        self._hidden: list[int] = []
        self._line = ""
        """Format of a line with the cells that are shown, all of them ASCII."""
        self._free = 0
        """Columns of the terminal that no column of the table needed so far."""
        self._shorten: dict[int, Callable[[str, int], str]] = {}
        self._shortened: dict[int, dict[str, int]] = {}
        """By column: hashes of the names, by what is shown of them."""
        self.title = ""
        """Line to write before the first one; a table without rows has none."""
        self.placed: SizedColumns | None = None
        """None until the first rows are written, and if cells are truncated."""

    def add(self, item: Any, style: str = "") -> None:
        row = TableRow([column.cell(item) for column in self.columns], style)
        if self._widths is None:
            self._wait(row)
            return
        if self._would_hide(row):
            # A column that was left out because it was empty is needed now: new header for the rows from here on.
            self._layout([row])
            self.output.line("")
            self._head()
        self._write(row)

    def add_long(self, item: Any, long: dict[int, Iterator[str]], style: str = "") -> None:
        """Write a row in which the cells of `long`, by column number, come in pieces and are not padded. Not possible
        if cells are truncated."""
        row = TableRow(["…" if i in long else column.cell(item) for i, column in enumerate(self.columns)], style)
        if self._widths is None:
            self.flush([row])
        elif self._would_hide(row):
            self._layout([row])
            self.output.line("")
            self._head()
        for piece in without_end(self._in_pieces(row, long)):
            line = self.paint(piece, style) if style else piece
            self.output.write(line.encode("utf-8", "backslashreplace"))
        self.output.line("")

    def _in_pieces(self, row: TableRow, long: dict[int, Iterator[str]]) -> Iterator[str]:
        before = ""
        for i in self._shown:
            if i in long:
                yield before
                yield from long[i]
                before = GAP
            else:
                before += self._pad(i, row.cells[i]) + GAP
        yield before

    def line(self, text: str, style: str = "") -> None:
        """Write a line of text between rows."""
        if self._widths is None and self._waiting:
            self._wait((text, style))
        else:
            self._write_text(text, style)

    @property
    def has_rows(self) -> bool:
        """Whether there has been a row so far."""
        return self._widths is not None or bool(self._waiting)

    def tick(self) -> None:
        """Called while there are no rows to add: on a terminal, writes rows that have waited long enough."""
        if self._waiting and self.output.terminal:
            now = time.monotonic()
            if now - self._latest > GAP_IN_ROWS or now - self._since > MAX_WAIT:
                self.flush()
        self.output.tick()

    def flush(self, more: Sequence[TableRow] = ()) -> None:
        """Write the rows that wait for column widths; `more` rows come next."""
        if not self._waiting and not more:
            return
        waiting, self._waiting = self._waiting, []
        self._layout([*(row for row in waiting if isinstance(row, TableRow)), *more])
        self._head()
        for item in waiting:
            if isinstance(item, TableRow):
                self._write(item)
            else:
                self._write_text(*item)

    def _wait(self, item: TableRow | tuple[str, str]) -> None:
        if not self._waiting:
            self._since = self._latest = time.monotonic()
        self._waiting.append(item)
        self._sampled += sum(map(len, item.cells if isinstance(item, TableRow) else item))
        if len(self._waiting) >= SAMPLE or self._sampled >= LARGE_SAMPLE:
            self.flush()
        else:
            self.tick()
            self._latest = time.monotonic()

    def _layout(self, rows: list[TableRow]) -> None:
        shown = list(range(len(self.columns)))
        widths = [
            max([width(column.label), *(width(row.cells[i]) for row in rows)]) for i, column in enumerate(self.columns)
        ]
        if not self.chosen:
            kept = set(self._shown)
            shown = [i for i in shown if i in kept or self.columns[i].rank == 9 or any(row.cells[i] for row in rows)]
        if self.room is not None:
            if not self.chosen:
                wanted = list(shown)
                self._leave_out(shown, widths, WIDEST_NAME, EXPENDABLE)
                self._leave_out(shown, widths, 0, 9)
                self.output.left_out |= dict.fromkeys(self.columns[i].label for i in wanted if i not in shown)
            self._share(shown, widths, self.room)
            self._free = self.room - sum(widths[i] for i in shown) - len(GAP) * (len(shown) - 1)
            self._choose_cuts(shown, widths, rows)
        elif shown and not self.columns[shown[-1]].right:
            widths[shown[-1]] = width(self.columns[shown[-1]].label)  # nothing follows it
        self._shown, self._widths = shown, widths
        self._hidden = [i for i in range(len(self.columns)) if i not in shown]
        self._line = GAP.join(f"{{:{'>' if self.columns[i].right else '<'}{widths[i]}}}" for i in shown)
        if self.room is None:
            hidden = [self.columns[i] for i in self._hidden]
            self.placed = SizedColumns([(self.columns[i], widths[i]) for i in shown], hidden)

    def _leave_out(self, shown: list[int], widths: list[int], name: int, rank: int) -> None:
        """Leave out columns below that rank until the others fit, with names of up to `name` characters complete."""
        assert self.room is not None
        while self._least(shown, widths, name) > self.room:
            lowest = min(shown, key=lambda i: self.columns[i].rank)
            if self.columns[lowest].rank >= rank:
                break
            shown.remove(lowest)

    def _least(self, shown: list[int], widths: list[int], name: int = 0) -> int:
        """Return the terminal columns that are needed even if cells are shortened; names only beyond `name`."""
        needed = len(GAP) * (len(shown) - 1)
        for i in shown:
            least = self.columns[i].least or widths[i]
            needed += min(widths[i], max(least, name) if self.columns[i].cuts in CUTS else least)
        return needed

    def _choose_cuts(self, shown: list[int], widths: list[int], rows: list[TableRow]) -> None:
        """Choose how to shorten each column of names, so that those of these rows stay different."""
        for i in shown:
            ways = CUTS.get(self.columns[i].cuts, ())
            names = {row.cells[i] for row in rows} if ways else set()
            different = [way for way in ways if len({way(name, widths[i]) for name in names}) == len(names)]
            for way in (*different, *ways)[:1]:
                self._shorten[i] = way
            self._shortened[i] = {}

    def _share(self, shown: list[int], widths: list[int], room: int) -> None:
        """Give the flexible columns the room that the others leave: narrow ones and names all they need, wide ones an
        equal part."""
        flexible = sorted((i for i in shown if self.columns[i].least), key=lambda i: widths[i])
        left = room - len(GAP) * (len(shown) - 1) - sum(widths[i] for i in shown if i not in flexible)
        for count, i in zip(range(len(flexible), 0, -1), flexible):
            if count > 1:
                others = sum(min(widths[j], self.columns[j].least or 0) for j in flexible[-count + 1 :])
                least = min(widths[i], self.columns[i].least or 0)
                is_name = self.columns[i].cuts in CUTS and widths[i] <= WIDEST_NAME
                widths[i] = max(least, min(widths[i], left if is_name else left // count, left - others))
            else:
                widths[i] = min(widths[i], max(left, self.columns[i].least or 0))
            left -= widths[i]
        if left > 0 and shown and self.columns[shown[-1]].least and not self.columns[shown[-1]].right:
            widths[shown[-1]] += left  # it is not padded, and later rows may be longer

    def _would_hide(self, row: TableRow) -> bool:
        if self.chosen or self.room is not None:
            hidden = [i for i in self._hidden if row.cells[i]]
            return bool(hidden) and not self.chosen and self._fits(hidden)
        return any(row.cells[i] for i in self._hidden)

    def _fits(self, hidden: list[int]) -> bool:
        assert self._widths is not None
        assert self.room is not None
        widths = [max(w, width(column.label)) for w, column in zip(self._widths, self.columns)]
        return any(self._least(sorted([*self._shown, i]), widths) <= self.room for i in hidden)

    def _begin(self) -> None:
        if self.title:
            self.output.line(self.paint(self.title, "head"))
            self.title = ""

    def _head(self) -> None:
        assert self._widths is not None
        self._begin()
        labels = [self._pad(i, self.columns[i].label) for i in self._shown]
        self.output.line(self.paint(GAP.join(labels).rstrip(), "head"))

    def _write(self, row: TableRow) -> None:
        if self.room is None:
            self._write_line([row.cells[i] for i in self._shown], row.style)
            return
        cells = self._fitted(row)
        for number in range(max(map(len, cells), default=1)):
            self._write_line([cell[number] if number < len(cell) else "" for cell in cells], row.style)

    def _write_line(self, cells: list[str], style: str) -> None:
        line = self._line.format(*cells)
        if not line.isascii():
            line = GAP.join([self._pad(i, cell) for i, cell in zip(self._shown, cells)])
        line = line.rstrip()
        self.output.line(self.paint(line, style) if style else line)

    def _fitted(self, row: TableRow) -> list[list[str]]:
        """Return the lines of each cell that is shown."""
        assert self._widths is not None
        free = self._free
        cells = []
        for i in self._shown:
            text, room = row.cells[i], self._widths[i]
            over = width(text) - room if self.columns[i].least else 0
            if over <= 0:
                cells.append([text])
            elif self.columns[i].cuts == TEXT:
                from kdump.render.wrap import wrapped  # most tables have no such text

                cells.append(wrapped(text, max(room, self.columns[i].least or 1)))
            elif self.columns[i].cuts == VALUE:
                cells.append([cut(text, room)])
            elif over <= free:
                free -= over
                cells.append([text])
            else:
                cells.append([self._short_name(i, text, room)])
        return cells

    def _short_name(self, i: int, text: str, room: int) -> str:
        """Return the name shortened to `room`, or the complete name if an earlier one would look the same."""
        short, shortened = self._shorten[i](text, room), self._shortened[i]
        if short not in shortened and len(shortened) < MAX_SHORTENED:
            shortened[short] = hash(text)
        return short if shortened.get(short) == hash(text) else text

    def _write_text(self, text: str, style: str) -> None:
        self._begin()
        indent = len(text) - len(text.lstrip()) + 2
        for line in [text] if self.room is None else self.output.wrapped(text, indent):
            self.output.line(self.paint(line, style))

    def _pad(self, i: int, text: str) -> str:
        assert self._widths is not None
        fill = " " * (self._widths[i] - width(text))
        return fill + text if self.columns[i].right else text + fill
