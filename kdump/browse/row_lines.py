"""Rows as lines that fit the width: table columns, by the rules of kdump.render.table, and the tree."""

from __future__ import annotations

from operator import itemgetter

from kdump.browse.hexdump_lines import CapturedLines, HexLine
from kdump.browse.level import Level
from kdump.browse.row_listings import BrowseRow
from kdump.render.style import cut
from kdump.render.style import width as width_of
from kdump.render.style_marks import mark_style
from kdump.render.table import TEXT, VALUE, Column, Table
from kdump.render.table import TableRow as TableRow


class _TableLayout(Table):
    """A table that waits for all rows, so that all of them determine the column widths."""

    def _wait(self, row: TableRow | tuple[str, str]) -> None:
        self._waiting.append(row)

    def tick(self) -> None:
        pass


def table(columns: list[Column], rows: list[BrowseRow], width: int) -> tuple[HexLine, list[HexLine]]:
    """Return the header line and one line per row, fitted to `width` terminal columns."""
    output = CapturedLines(width)
    kinds = [VALUE if column.cuts == TEXT else column.cuts for column in columns]  # one line per row
    columns = [column._replace(cell=itemgetter(n), cuts=kinds[n]) for n, column in enumerate(columns)]
    laid = _TableLayout(columns, output)
    laid.paint = mark_style
    for row in rows:
        if not row.text:
            laid.add(row.cells, row.style)
    laid.flush()
    head, *made = output.lines or [HexLine(())]
    ready = iter(made)
    lines = [HexLine(((cut(row.text, width), row.style),)) if row.text else next(ready) for row in rows]
    return head, lines


def tree(levels: list[Level], title: str, width: int) -> tuple[list[HexLine], list[tuple[int, int]]]:
    """Return the lines of the tree, and the level and row number of each. An ellipsis has a number outside the level's
    rows; the top line has (-1, 0)."""
    lines, places = [HexLine(((cut(title, width), "head"),))], [(-1, 0)]
    _branch(levels, 0, width, lines, places)
    return lines, places


def _branch(levels: list[Level], depth: int, width: int, lines: list[HexLine], places: list[tuple[int, int]]) -> None:
    level = levels[depth]
    inner = depth + 1 < len(levels)
    indent = " " * (depth + 1)
    if not level.first:
        lines.append(HexLine(((f"{indent}  …", "dim"),)))
        places.append((depth, -1))
    for number, row in enumerate(level.rows):
        is_open = inner and number == level.cursor
        mark = "▾ " if is_open else "  " if row.type in LEAVES else "▸ "
        lines.append(HexLine(((cut(f"{indent}{mark}{row.label}", width), row.style),)))
        places.append((depth, number))
        if is_open:
            _branch(levels, depth + 1, width, lines, places)
    if not level.last:
        lines.append(HexLine(((f"{indent}  …", "dim"),)))
        places.append((depth, len(level.rows)))


LEAVES = ("field", "note")


def wrapped(text: str, width: int) -> list[str]:
    """Break text into lines at any column, so that joining the lines restores it: for JSON and commands."""
    found = []
    for line in text.split("\n"):
        start = used = 0
        if line.isascii():
            start = max(0, len(line) - 1) // width * width
            found += [line[at : at + width] for at in range(0, start, width)]
        else:
            for at, letter in enumerate(line):
                own = width_of(letter)
                if used + own > width and at > start:
                    found.append(line[start:at])
                    start, used = at, 0
                used += own
        found.append(line[start:])
    return found
