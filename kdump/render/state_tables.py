"""Tables of answers, as these declare columns, cells and the styles of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timezone, tzinfo
from typing import Any

from kdump.answer import Key, Shown, answer_keys, is_problem, row_style, shown_fields, values_of
from kdump.render.escape import path_text, printable
from kdump.render.sink import Sink
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


def table_columns(
    cls: type,
    zone: tzinfo = timezone.utc,
    names: list[str] | None = None,
    without: tuple[str, ...] = (),
    sorted_by: str = "",
) -> list[Column]:
    """Return the columns of the table of answers of this class: those that it declares, or the keys in `names`. Raises
    UnknownColumn."""
    if names is None:
        return [column_of(key, zone, get) for key, get in shown_fields(cls, sorted_by) if key.name not in without]
    keys, values = {key.name: key for key in answer_keys(cls)}, values_of(cls)
    check_names(names, keys)
    return [column_of(keys[name], zone, values[name]) for name in names]


def known_columns(
    cls: type, zone: tzinfo, cells: dict[str, Callable[[Any], str]], *more: Column, sorted_by: str = ""
) -> tuple[list[str], dict[str, Column]]:
    """Return the names of the default columns of a table in which others than keys can be chosen, too, and all columns:
    the keys, those that the class declares, and `more`. Its own `cells` replace those of its columns; null is "-"."""
    values, shown = values_of(cls), shown_fields(cls, sorted_by)
    columns = [column_of(key, zone, values[key.name], "-", right=True) for key in answer_keys(cls)]
    columns += [*(column_of(key, zone, get, "-") for key, get in shown), *more]
    known = {column.name: column._replace(cell=cells.get(column.name, column.cell)) for column in columns}
    return [key.name for key, _ in shown], known


def named(names: list[str] | None, default: list[str], known: dict[str, Column]) -> list[Column]:
    """Return the columns of these names, or the default ones. Raises UnknownColumn."""
    names = default if names is None else names
    check_names(names, known)
    return [known[name] for name in names]


def write_answers(
    output: Output,
    answers: Sequence[Any],
    *,
    full: bool = False,
    style: Callable[[Any], str] = row_style,
) -> None:
    """Write answers of one class as the table that it declares, or nothing if there are none."""
    if answers:
        table = Table(table_columns(type(answers[0])), output, full=full)
        for answer in answers:
            table.add(answer, style(answer))
        table.flush()


def column_of(key: Key, zone: tzinfo, get: Callable[[Any], Any], none: str = "", *, right: bool = False) -> Column:
    """Return the column of a key; `get` returns its value of an answer. `none`: what stands for an empty value, if the
    key does not state it; `right`: times are aligned like numbers."""
    shown = key.shown or Shown()
    is_right = key.type.startswith("number") and (right or key.unit != "epoch ms")
    label = key.name if shown.label == "" else shown.label.rstrip()
    right = is_right if shown.right is None else shown.right
    return Column(key.name, label, _text(key, zone, get, none), right, shown.rank, shown.least, shown.cuts)


def _text(key: Key, zone: tzinfo, get: Callable[[Any], Any], none: str) -> Callable[[Any], str]:
    """Return what formats the cells of a key: of hundreds of thousands of rows."""
    show, before = cell_text(key, zone), key.cell.before
    none = none if key.cell.none is None else key.cell.none
    blank, cell = (None, None) if key.shown is None else (key.shown.blank, key.shown.cell)
    if cell is not None:
        return lambda item: printable(path_text(cell(get(item))))
    if before is not None:
        return lambda item: before(item) + show(get(item))
    if none:
        return lambda item: show(get(item)) or none
    if blank is not None:
        return lambda item: "" if (value := get(item)) == blank else show(value)
    return lambda item: show(get(item))


class StateTables:
    """Writes tables of answers to an output, one after the other. Raises UnknownColumn."""

    def __init__(self, output: Output, zone: tzinfo, names: list[str] | None, full: bool) -> None:
        self.output, self.zone, self.names, self.full = output, zone, names, full

    def open(self, cls: type, without: tuple[str, ...] = ()) -> Table:
        """Return a table for such answers, without the default columns in `without`."""
        shown = table_columns(cls, self.zone, self.names, without)
        return Table(shown, self.output, full=self.full, chosen=self.names is not None)

    def write_summary(self, answers: Sequence[Any]) -> None:
        """Write a whole table of partitions; their source is a column only if there are several."""
        several = len({answer.source for answer in answers}) > 1
        self.write(answers, () if several else ("source",))

    def write(self, answers: Sequence[Any], without: tuple[str, ...] = ()) -> None:
        """Write a whole table, or nothing if there are no rows."""
        if answers:
            table = self.open(type(answers[0]), without)
            for answer in answers:
                table.add(answer, row_style(answer))
            table.flush()


class TableRows(Sink[Any]):
    """Writes tables, each for adjacent answers of one class."""

    def __init__(self, output: Output, tables: StateTables) -> None:
        self.output, self.tables = output, tables
        self.written = False
        """Whether something has been written that a blank line separates from the next table."""
        self._table: Table | None = None
        self._class: type = object

    def add(self, answer: Any) -> None:
        if self._table is None or type(answer) is not self._class:
            self.end()
            if self.written:
                self.output.line("")
            self._class, self.written = type(answer), True
            self._table = self.tables.open(self._class)
        self._table.add(answer, row_style(answer))

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
        self._table = tables.open(row)
        self._problems = 0

    def add(self, answer: Any) -> None:
        if isinstance(answer, self.row):
            self._table.add(answer, row_style(answer))
        else:
            self._problems += is_problem(answer)

    def end(self) -> None:
        self._table.flush()
        if self._problems:
            self.on_left_out(self._problems)
