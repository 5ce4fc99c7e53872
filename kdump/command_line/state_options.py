"""Options that the commands about the state of a cluster or of a log share, and their notes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any, NoReturn, Protocol

import click

from kdump.answer import Note
from kdump.command_line.command_run import add_unreadable, print_error, report_unreadable
from kdump.command_line.exit_status import exit_with
from kdump.command_line.reading_options import low_impact_options
from kdump.command_line.typed_options import declared
from kdump.io.errors import SourceError, Unread
from kdump.log.partition_directory import PartitionDirectory
from kdump.query import F, LimitOptions, add_options
from kdump.render.escape import path_text
from kdump.render.sink import Sink
from kdump.render.stdout import Output
from kdump.render.table import UnknownColumn

MAX_NOTES = 20
"""Maximum number of notes on stderr; the others are only counted."""


def limit_options(command: F) -> F:
    """Add the options of `low_impact_options`, and those of LimitOptions."""
    return add_options(command, low_impact_options, *declared(LimitOptions))


class Place(Protocol):
    """A partition that is read."""

    partition: PartitionDirectory
    was_named: bool


class Notes:
    """Prints notes to stderr, and passes them to the sink. `failed`: an input could not be read; `seen`: number of
    partitions that have begun."""

    def __init__(self, sink: Sink[Any]) -> None:
        self.sink = sink
        self.failed = False
        self.seen = 0

    def begin(self, place: Place) -> None:
        """Begin a partition."""
        self.seen += 1
        self.sink.part(place.partition.path, was_named=place.was_named)

    def all(self, source: str, problems: list[str]) -> None:
        """Print what could not be read; at most MAX_NOTES notes on stderr."""
        for number, problem in enumerate(problems):
            self.add(source, problem, quiet=number >= MAX_NOTES)
        if len(problems) > MAX_NOTES:
            more = len(problems) - MAX_NOTES
            print_error(f"… and {more} more such notes; use --json to show all, or kdump verify to check everything")

    def add_all(self, answers: Iterable[Any], add: Callable[[Any], object]) -> None:
        """Call `add` with each answer, and take those that are Notes."""
        for source, group in groupby(answers, lambda note: note.source if isinstance(note, Note) else None):
            if source is None:
                for note in group:
                    add(note)
            else:
                self.all(source, [note.message for note in group])

    def add(self, source: str, message: str, quiet: bool = False) -> None:
        """Print a note. An Unread is also mentioned in the first line of the output."""
        if isinstance(message, Unread):
            add_unreadable(message)
            self.failed = True
        if not quiet:
            print_error(f"{path_text(source)}: {message}" if source else message)
        self.sink.note(source, message)

    def add_unreadable(self, error: SourceError) -> None:
        self.failed |= report_unreadable(error)


class Command(Protocol):
    """A command to run. `run` returns the exit status; None is 0."""

    output: Output
    notes: Notes

    def run(self) -> int | None: ...


def run_command(command: Command) -> NoReturn:
    """Run the command and exit with its status, or with 2 if an input could not be read."""

    def status() -> int:
        try:
            found = command.run()
        except UnknownColumn as error:
            raise click.UsageError(str(error)) from None
        command.output.flush()
        return 2 if command.notes.failed else found or 0

    exit_with(status)
