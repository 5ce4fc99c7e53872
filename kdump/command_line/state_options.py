"""Options that the commands about the state of a cluster or of a log share, and their notes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import tzinfo
from itertools import groupby
from typing import Any, NoReturn, Protocol

import click

from kdump.answer import Note
from kdump.command_line.command_run import add_unreadable, print_error, report_unreadable
from kdump.command_line.exit_status import exit_with
from kdump.command_line.output_options import OutputOptions, output_options
from kdump.command_line.params import MILLISECONDS, LimitOptions
from kdump.command_line.reading_options import low_impact_options
from kdump.command_line.typed_options import declared
from kdump.format.parse_time import parse_time
from kdump.io.errors import SourceError, Unread
from kdump.query import CommandOptions, F, add_options, added, flag, option
from kdump.render.escape import path_text
from kdump.render.sink import Sink
from kdump.render.stdout import Output
from kdump.render.table import UnknownColumn
from kdump.render.times import iso
from kdump.state.as_of import AsOf

MAX_NOTES = 20
"""Maximum number of notes on stderr; the others are only counted."""
AS_OF = "Show the state as of this offset or time, inclusive (ISO-8601, epoch ms, -2h)."


def _limits(command: F) -> F:
    """Add the options of `low_impact_options`, and those of LimitOptions."""
    return add_options(command, low_impact_options, *declared(LimitOptions))


@dataclass(frozen=True)
class StateOptions(CommandOptions):
    """The options that `cluster`, `groups` and `registry` share."""

    as_of: str | None = option("--as-of", metavar="OFFSET|TIME", help=AS_OF)
    history: bool = flag("--history", help="Show which record changed what and when, with old and new values.")
    output: OutputOptions = added(output_options())
    reading: LimitOptions = added(_limits)


def parse_as_of(typed: str | None, zone: tzinfo) -> AsOf:
    """Parse --as-of: up to 12 digits are an offset, 13 or more epoch ms; else a time, inclusive to the ms. Prints it on
    stderr. Raises click.UsageError."""
    if typed is None:
        return AsOf()
    if re.fullmatch(r"[0-9]{1,12}", typed):
        print_error(f"as of offset {int(typed)}")
        return AsOf(offset=int(typed))
    try:
        now = round(time.time() * 1000)
        moment = int(typed) if MILLISECONDS.fullmatch(typed) else parse_time(typed, zone, end=True, now=now)
    except (ValueError, OverflowError) as error:
        raise click.UsageError(f"--as-of: not an offset, and {error}") from None
    print_error(f"as of {iso(moment, zone)}")
    return AsOf(time=moment)


class Notes:
    """Prints notes to stderr, and passes them to the sink. `failed`: an input could not be read."""

    def __init__(self, sink: Sink[Any]) -> None:
        self.sink = sink
        self.failed = False

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
