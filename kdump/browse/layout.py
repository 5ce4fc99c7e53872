"""Rows as lines that fit: the columns of a table, by the rules of kdump.render.table; and the tree."""

from __future__ import annotations

from operator import itemgetter

from kdump.browse.dump import Captured, Line
from kdump.browse.places import Level
from kdump.browse.rows import Row
from kdump.render.painted import paint
from kdump.render.style import cut
from kdump.render.style import width as width_of
from kdump.render.table import Column, Table
from kdump.render.table import Row as TableRow


class _Laid(Table):
    """A table whose rows are all at hand, so that all of them decide how wide a column is."""

    def _wait(self, row: TableRow | tuple[str, str]) -> None:
        self._waiting.append(row)

    def tick(self) -> None:
        pass


def table(columns: list[Column], rows: list[Row], width: int) -> tuple[Line, list[Line]]:
    """The head and a line a row, in `width` columns of the terminal."""
    output = Captured(width)
    laid = _Laid([column._replace(cell=itemgetter(n)) for n, column in enumerate(columns)], output)
    laid.paint = paint
    for row in rows:
        if not row.text:
            laid.add(row.cells, row.style)
    laid.flush()
    head, *made = output.lines or [Line(())]
    ready = iter(made)
    lines = [Line(((cut(row.text, width), row.style),)) if row.text else next(ready) for row in rows]
    return head, lines


def tree(levels: list[Level], title: str, width: int) -> tuple[list[Line], list[tuple[int, int]]]:
    """The tree as lines, and for each which level it is of and its number there, beyond its rows for an ellipsis;
    (-1, 0) is the top."""
    lines, places = [Line(((cut(title, width), "head"),))], [(-1, 0)]
    _branch(levels, 0, width, lines, places)
    return lines, places


def _branch(levels: list[Level], depth: int, width: int, lines: list[Line], places: list[tuple[int, int]]) -> None:
    level = levels[depth]
    inner = depth + 1 < len(levels)
    indent = " " * (depth + 1)
    if not level.first:
        lines.append(Line(((f"{indent}  …", "dim"),)))
        places.append((depth, -1))
    for number, row in enumerate(level.rows):
        is_open = inner and number == level.cursor
        mark = "▾ " if is_open else "  " if row.type in LEAVES else "▸ "
        lines.append(Line(((cut(f"{indent}{mark}{row.label}", width), row.style),)))
        places.append((depth, number))
        if is_open:
            _branch(levels, depth + 1, width, lines, places)
    if not level.last:
        lines.append(Line(((f"{indent}  …", "dim"),)))
        places.append((depth, len(level.rows)))


LEAVES = ("field", "note")


def wrapped(text: str, width: int) -> list[str]:
    """A text cut into lines at whatever column, so that it can be put together again: JSON, commands."""
    found = []
    for line in text.split("\n"):
        while width_of(line) > width:
            part = line[:width]
            while width_of(part) > width:
                part = part[:-1]
            found.append(part)
            line = line[len(part) :]
        found.append(line)
    return found
