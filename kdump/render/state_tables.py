"""Tables of JSON objects, as their answers declare columns, cells and the styles of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timezone, tzinfo
from operator import itemgetter, methodcaller
from typing import Any

from kdump.answer import (
    ANSWERS,
    Key,
    Object,
    Shown,
    answer_keys,
    answer_object,
    answer_type,
    is_problem,
    row_style,
    shown_fields,
    shown_keys,
)
from kdump.render.escape import path_text, printable
from kdump.render.sink import Sink, objects_of
from kdump.render.stdout import Output
from kdump.render.table import Column, Table, check_names
from kdump.render.times import iso
from kdump.state.value_texts import or_plain
from kdump.text import plain_text


def cell_text(key: Key, zone: tzinfo) -> Callable[[Any], str]:
    """Return what formats the values of a key, empty for None. The text contains nothing that could change how a
    terminal shows the rest."""
    if key.unit == "epoch ms":
        return lambda value: "" if value is None else iso(value, zone)
    if key.cell.text is not None:
        write = or_plain(key.cell.text)
        return lambda value: "" if value is None else printable(write(value))

    def text(value: Any) -> str:
        if isinstance(value, str):
            return printable(value)
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, int):
            return str(value)
        return printable(plain_text(value))

    return text


def columns(kind: str, zone: tzinfo, names: list[str] | None = None, without: tuple[str, ...] = ()) -> list[Column]:
    """Return the columns of a table of such objects: the default ones, or those in `names`. Raises UnknownColumn."""
    keys = {key.name: key for key in answer_keys(ANSWERS[kind])}
    if names is None:
        return [_column(key, zone) for key in shown_keys(ANSWERS[kind]) if key.name not in without]
    check_names(names, keys)
    return [_column(keys[name], zone) for name in names]


def answer_columns(
    cls: type, zone: tzinfo = timezone.utc, without: tuple[str, ...] = (), sorted_by: str = ""
) -> list[Column]:
    """Return the columns of the table that answers of this class, or what has its fields, declare."""
    return [_column(key, zone, get) for key, get in shown_fields(cls, sorted_by) if key.name not in without]


def write_answers(
    output: Output,
    answers: Sequence[Any],
    *,
    full: bool = False,
    style: Callable[[Any], str] = lambda answer: "",
    without: tuple[str, ...] = (),
) -> None:
    """Write answers of one class as the table that it declares, or nothing if there are none."""
    if answers:
        table = Table(answer_columns(type(answers[0]), without=without), output, full=full)
        for answer in answers:
            table.add(answer, style(answer))
        table.flush()


def _column(key: Key, zone: tzinfo, get: Callable[[Any], Any] | None = None) -> Column:
    """Return the column of a key. `get` returns its value of an answer; without it, rows are JSON objects."""
    shown = key.shown or Shown()
    right = key.type.startswith("number") and key.unit != "epoch ms" if shown.right is None else shown.right
    get = get or (methodcaller("get", key.name) if key.optional else itemgetter(key.name))
    label = key.name if shown.label == "" else shown.label.rstrip()
    return Column(key.name, label, _text(key, zone, get), right, shown.rank, shown.least, shown.cuts)


def _text(key: Key, zone: tzinfo, get: Callable[[Any], Any]) -> Callable[[Any], str]:
    """Return what formats the cells of a key: of hundreds of thousands of rows."""
    show, (_, before, none) = cell_text(key, zone), key.cell
    blank, cell = (None, None) if key.shown is None else (key.shown.blank, key.shown.cell)
    if cell is not None:
        return lambda item: printable(path_text(cell(item)))
    if before is not None:
        return lambda item: before(item) + show(get(item))
    if none:
        return lambda item: show(get(item)) or none
    if blank is not None:
        return lambda item: "" if (value := get(item)) == blank else show(value)
    return lambda item: show(get(item))


class StateTables:
    """Writes tables of objects to an output, one after the other. Raises UnknownColumn."""

    def __init__(self, output: Output, zone: tzinfo, names: list[str] | None, full: bool) -> None:
        self.output, self.zone, self.names, self.full = output, zone, names, full

    def open(self, kind: str, without: tuple[str, ...] = ()) -> Table:
        """Return a table for such objects, without the default columns in `without`."""
        shown = columns(kind, self.zone, self.names, without)
        return Table(shown, self.output, full=self.full, chosen=self.names is not None)

    def write_summary(self, kind: str, values: Sequence[Object]) -> None:
        """Write a whole table of partitions; their source is a column only if there are several."""
        several = len({value["source"] for value in values}) > 1
        self.write(kind, values, () if several else ("source",))

    def write(self, kind: str, values: Iterable[Object], without: tuple[str, ...] = ()) -> int:
        """Write a whole table, or nothing if there are no rows. Return the number of rows."""
        table = self.open(kind, without)
        rows = 0
        for value in values:
            table.add(value, row_style(value))
            rows += 1
        if rows:
            table.flush()
        return rows


class TableRows(Sink[Any]):
    """Writes tables, each for adjacent answers of one type."""

    def __init__(self, output: Output, tables: StateTables) -> None:
        self.output, self.tables = output, tables
        self.written = False
        """Whether something has been written that a blank line separates from the next table."""
        self._table: Table | None = None
        self._type = ""

    def add(self, answer: Any) -> None:
        for value in objects_of(answer):
            if self._table is None or value["type"] != self._type:
                self.end()
                if self.written:
                    self.output.line("")
                self._table, self._type, self.written = self.tables.open(value["type"]), value["type"], True
            self._table.add(value, row_style(value))

    def tick(self) -> None:
        if self._table is not None:
            self._table.tick()

    def end(self) -> None:
        if self._table is not None:
            self._table.flush()
            self._table = None


class HeadedTables(TableRows):
    """The same for several logs, each below a heading with its path."""

    def __init__(self, output: Output, tables: StateTables) -> None:
        super().__init__(output, tables)
        self._begun = False

    def part(self, name: str, *, was_named: bool = False) -> None:
        self.end()
        head = self.output.paint(printable(path_text(name)) + ":", "head")
        self.output.line(("\n" if self._begun else "") + head)
        self._begun, self.written = True, False


class OneTable(Sink[Any]):
    """Writes a single table of all answers of one class. Counts the findings and other problems that are left out, and
    passes their number to `on_left_out` at the end. Raises UnknownColumn."""

    def __init__(self, tables: StateTables, row: type, on_left_out: Callable[[int], None]) -> None:
        self.row, self.on_left_out = row, on_left_out
        self._table = tables.open(answer_type(row))
        self._problems = 0

    def add(self, answer: Any) -> None:
        value = answer_object(answer)
        if isinstance(answer, self.row):
            self._table.add(value, row_style(value))
        else:
            self._problems += is_problem(value)

    def end(self) -> None:
        self._table.flush()
        if self._problems:
            self.on_left_out(self._problems)
