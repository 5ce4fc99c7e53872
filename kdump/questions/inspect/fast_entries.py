"""Fast path of `inspect` for the entries of indexes: many rows of a table, or JSON objects, are formatted at once.

Its output is identical to that of TableView and JsonView, which writes the first rows of a table: they determine the
widths of its columns.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from kdump import jsonl
from kdump.answer import ANSWERS, answer_keys
from kdump.log.entries import EntryRun, FixedEntries
from kdump.log.paths import Target
from kdump.questions.inspect.views import TableView, View
from kdump.render.inspect_json import file_keys
from kdump.render.stdout import Output
from kdump.render.table import GAP, SizedColumns
from kdump.render.times import iso_many

ROWS = 4096
"""Number of rows that are formatted at once."""


class RowFormat:
    """Format of a row: `text` is a format string for the values of an entry, `times` are the numbers of those that are
    timestamps."""

    def __init__(self, text: str, times: tuple[int, ...] = ()) -> None:
        self.text = text
        self.times = times

    @cached_property
    def many(self) -> str:
        return self.text * ROWS

    def rows(self, entries: EntryRun) -> bytes:
        """Return the rows of at most ROWS entries."""
        values: list[Any] = entries.numbers()
        step = len(entries.fixed.names)
        for number in self.times:
            values[number::step] = iso_many(values[number::step])
        lines = (self.many if entries.rows == ROWS else self.text * entries.rows) % tuple(values)
        return lines.encode("utf-8", "backslashreplace")


def json_format(target: Target, fixed: FixedEntries) -> RowFormat:
    """Return the format of the JSON objects of a file's entries."""
    members = "".join(f',"{name}":%d' for name in fixed.names)
    start = jsonl.line({"type": fixed.type, **file_keys(target)})[:-1]
    return RowFormat(start.replace("%", "%%") + members + "}\n")


def table_format(placed: SizedColumns, fixed: FixedEntries) -> RowFormat | None:
    """Return the format of a table's rows; None if the table does not show every value in its own column."""
    if tuple(column.name for column, _ in placed.shown) != fixed.names:
        return None
    times = {key.name for key in answer_keys(ANSWERS[fixed.type]) if key.unit == "epoch ms"}
    cells = [
        f"%{'' if column.right else '-'}{width}{'s' if column.name in times else 'd'}" for column, width in placed.shown
    ]
    row = GAP.join(cells) + "\n"
    return RowFormat(row, tuple(i for i, name in enumerate(fixed.names) if name in times))


class FastEntries:
    """Writes runs of entries. `view` writes those for which there is no format."""

    def __init__(self, output: Output, view: View) -> None:
        self.output = output
        self.view = view
        self._of: object = None
        self._format: RowFormat | None = None

    def run(self, target: Target, entries: EntryRun) -> None:
        """Write what the view writes for each entry of the run."""
        row = 0
        while row < entries.rows:
            form = self._current(target, entries.fixed)
            stop = row + (1 if form is None else ROWS)
            part = entries.part(row, stop)
            if form is None:
                for entry in part.entries():
                    self.view.entry(target, entry)
            else:
                self.output.write(form.rows(part))
            row = stop

    def _current(self, target: Target, fixed: FixedEntries) -> RowFormat | None:
        """Return the current format; None if the view has to write the next row."""
        if isinstance(self.view, TableView):
            table = self.view.table if self.view.type == fixed.type else None
            placed = None if table is None else table.placed
            if placed is not self._of:
                self._of, self._format = placed, None if placed is None else table_format(placed, fixed)
        elif self._of != (target.path, fixed.type):
            self._of, self._format = (target.path, fixed.type), json_format(target, fixed)
        return self._format
