"""Where a command's answers go: JSON Lines, CSV, nowhere, or a report or tables for people. A command adds its answers
to a sink, and does not know which it is. CSV is as in RFC 4180, but lines end with LF."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from kdump import jsonl
from kdump.answer import Object, answer_keys, answer_object, answer_type, is_problem
from kdump.render.escape import printable
from kdump.render.stdout import Output
from kdump.render.table import OtherColumns, check_names

_NEEDS_QUOTES = re.compile('[",\r\n]|^[ \t]|[ \t]$')
TYPE = "type"


def csv_columns(types: Iterable[type], names: list[str] | None = None) -> list[str]:
    """Return the names of the columns for answers of these classes: their keys in declared order, after `type` if there
    are several classes; or `names`. Raises UnknownColumn."""
    classes = list(types)
    keys = dict.fromkeys(key.name for cls in classes for key in answer_keys(cls))
    every = [*([TYPE] if len(classes) > 1 else []), *keys]
    check_names([name for name in names or () if name != TYPE], every)
    return every if names is None else names


class CsvWriter:
    """Writes objects as lines; the header comes first, also if there are no lines."""

    def __init__(self, output: Output, columns: list[str]) -> None:
        self.output, self.columns = output, columns
        self._line([csv_cell(name) for name in columns])

    def write(self, value: Object) -> None:
        """Write one object: keys without a column are left out; absent keys are empty, like null."""
        self.row(map(value.get, self.columns))

    def row(self, values: Iterable[Any]) -> None:
        """Write the values of all columns."""
        self._line([csv_cell(value) for value in values])

    def _line(self, cells: list[str]) -> None:
        line = ",".join(cells) or '""'  # a blank line would not be a row
        self.output.line(printable(line) if self.output.terminal else line)


def csv_cell(value: Any) -> str:
    """Return the text of a value: nothing for null, "" for an empty text; nested values as JSON."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else jsonl.line(value)
    return '"' + text.replace('"', '""') + '"' if not text or _NEEDS_QUOTES.search(text) else text


T = TypeVar("T", contravariant=True)
Objects = Callable[[Any], Iterable[Any]]
"""Returns what is written of what a sink takes: answers, or JSON objects."""


class Sink(Generic[T]):
    """Takes the answers of one run, in order. The reports in kdump.render derive from it."""

    streams = False
    """Whether each answer is written as it comes; if not, a progress bar shows that something is being done."""
    is_complete = False
    """Whether the answers are all there are, if no option selects some: programs select for themselves."""
    shows_unread = False
    """Whether the output lists what could not be read, so that stderr need not."""

    def part(self, name: str, *, was_named: bool = False) -> None:
        """Begin the answers about one file, partition or directory; `was_named`: it is one of the given paths."""

    def add(self, answer: T) -> None:
        """Take the next answer."""
        raise NotImplementedError

    def note(self, source: str, message: str) -> None:
        """Take a note, which is also on stderr."""

    def tick(self) -> None:
        """Called now and then while there is nothing to add."""

    def end(self) -> None:
        """Write what has waited for the end."""


class Silent(Sink[Any]):
    """Writes nothing (--quiet)."""

    def add(self, answer: Any) -> None:
        pass


def objects_of(answer: Any) -> Iterable[Any]:
    """Return the answer as what is written of it."""
    return (answer,)


def as_object(value: Any) -> Object:
    """Return the JSON object of an answer, or the object itself if it is one already."""
    return value if isinstance(value, dict) else answer_object(value)


class JsonLines(Sink[Any]):
    """JSON Lines: one object per line. `objects` returns what is written of what is added."""

    streams = True
    is_complete = True

    def __init__(self, output: Output, objects: Objects = objects_of) -> None:
        self.output, self.objects = output, objects

    def add(self, answer: Any) -> None:
        for value in self.objects(answer):
            self.output.line(jsonl.line(as_object(value)))

    def note(self, source: str, message: str) -> None:
        from kdump.answer import Note

        self.output.line(jsonl.line(answer_object(Note(source, message))))

    def tick(self) -> None:
        self.output.tick()


class CsvRows(Sink[Any]):
    """CSV of the answers of the classes `rows`, with the same values as in JSON. The first row decides which class the
    rows are of, unless they are all in one table (`together`). Counts the findings and other problems that are left
    out, and passes their number to `on_left_out` at the end. Raises UnknownColumn and, for a row of another class,
    OtherColumns."""

    streams = True

    def __init__(
        self,
        output: Output,
        rows: tuple[type, ...],
        names: list[str] | None,
        on_left_out: Callable[[int], None],
        objects: Objects = objects_of,
        *,
        together: bool = False,
    ) -> None:
        self.output, self.names, self.objects, self.on_left_out = output, names, objects, on_left_out
        self._classes = {answer_type(cls): cls for cls in rows}
        self._writer: CsvWriter | None = None
        self._types: set[str] = set()
        self._problems = 0
        self.is_empty = True
        """Whether there has been no row so far; the header does not count."""
        if together or len(rows) == 1:
            self._begin(rows)
        else:
            csv_columns(rows, names)

    def _begin(self, rows: tuple[type, ...]) -> CsvWriter:
        self._types = {answer_type(cls) for cls in rows}
        self._writer = CsvWriter(self.output, csv_columns(rows, self.names))
        return self._writer

    def add(self, answer: Any) -> None:
        for each in self.objects(answer):
            value = as_object(each)
            cls = self._classes.get(value["type"])
            if cls is None:
                self._problems += is_problem(each)
                continue
            writer = self._writer or self._begin((cls,))
            if value["type"] not in self._types:
                raise OtherColumns(
                    f"{value['type']} has other columns than {', '.join(self._types)}, and CSV has one table"
                )
            writer.write(value)
            self.is_empty = False

    def tick(self) -> None:
        self.output.tick()

    def end(self) -> None:
        if self._writer is None:
            self._begin(tuple(self._classes.values())[:1])
        if self._problems:
            self.on_left_out(self._problems)
