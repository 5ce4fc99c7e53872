"""Where a command's answers go: JSON Lines, CSV, nowhere, or a report or tables for people. A command adds its answers
to a sink, and does not know which it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from kdump.answer import Object, answer_object
from kdump.render import jsonl
from kdump.render.csv_rows import CsvWriter, csv_columns, types_of
from kdump.render.output import Output

T = TypeVar("T", contravariant=True)
Objects = Callable[[Any], Iterable[Object]]
"""Returns the JSON objects of an answer."""
PROBLEMS = frozenset(("transactionDifference", "torn", "junk", "padding"))
"""Types of objects that report a problem, like findings that are not informational."""


class Sink(Generic[T]):
    """Takes the answers of one run, in order. The reports in kdump.render derive from it."""

    streams = False
    """Whether each answer is written as it comes; if not, a progress bar shows that something is being done."""
    shows_unread = False
    """Whether the output lists what could not be read, so that stderr need not."""

    def part(self, name: str) -> None:
        """Begin the answers about one file, partition or directory."""

    def add(self, found: T) -> None:
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

    def add(self, found: Any) -> None:
        pass


def objects_of(found: Any) -> Iterable[Object]:
    """Return the JSON object of an answer, or the object itself if it is one already."""
    return (found if isinstance(found, dict) else answer_object(found),)


class JsonLines(Sink[Any]):
    """JSON Lines: one object per line. `objects` turns what is added into objects."""

    streams = True

    def __init__(self, output: Output, objects: Objects = objects_of) -> None:
        self.output = output
        self.objects = objects

    def add(self, found: Any) -> None:
        for value in self.objects(found):
            self.output.line(jsonl.line(value))

    def note(self, source: str, message: str) -> None:
        from kdump.forensics.answers import Note

        self.output.line(jsonl.line(answer_object(Note(source, message))))

    def tick(self) -> None:
        self.output.tick()


class CsvRows(Sink[Any]):
    """CSV of the answers of the classes `rows`, with the same values as in JSON. Counts the findings and other problems
    that are left out, and passes their number to `left_out` at the end. Raises UnknownColumn."""

    streams = True

    def __init__(
        self,
        output: Output,
        rows: tuple[type, ...],
        names: list[str] | None,
        left_out: Callable[[int], None],
        objects: Objects = objects_of,
    ) -> None:
        self.output = output
        self.objects = objects
        self.left_out = left_out
        self._writer = CsvWriter(output, csv_columns(rows, names))
        self._types = types_of(rows)
        self._problems = 0

    def add(self, found: Any) -> None:
        for value in self.objects(found):
            if value["type"] in self._types:
                self._writer.write(value)
            else:
                self._problems += is_problem(value)

    def tick(self) -> None:
        self.output.tick()

    def end(self) -> None:
        if self._problems:
            self.left_out(self._problems)


def is_problem(value: Object) -> bool:
    """Return True if an object reports a problem, which output of other objects does not show."""
    return value["type"] in PROBLEMS or (value["type"] == "finding" and value["severity"] != "info")
