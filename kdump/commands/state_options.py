"""What the commands that show state have in common: options, and how they tell what they met."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import tzinfo
from typing import Any, NoReturn, Protocol, TypeVar

import click

from kdump.commands.exits import exit_with
from kdump.commands.files import complain, note_unread, refuse
from kdump.commands.params import SizeParam, ZoneParam, moment
from kdump.forensics.answers import Note
from kdump.log.errors import SourceError, Unread
from kdump.log.region import DEFAULT_MAX_DECOMPRESSED
from kdump.render import jsonl
from kdump.render.columns import UnknownColumn
from kdump.render.escape import path_text
from kdump.render.forensic_objects import answer_line
from kdump.render.output import Output
from kdump.render.times import iso
from kdump.state.moment import Moment

MOST_TOLD = 20
"""Notes on stderr, beyond which they are counted."""
MILLISECONDS = re.compile(r"[0-9]{13,19}")
"""A number of so many digits is a time: no log has as many records."""
F = TypeVar("F", bound=Callable[..., Any])

AS_OF = "As it was then: with all records up to this offset, or this time (ISO-8601, epoch ms, -2h)."


def shown(command: F) -> F:
    """The options of how it is shown, and how far a batch is believed, that all commands of state have."""
    return _options(
        command,
        click.option("--json", "as_json", is_flag=True, help="JSON Lines."),
        click.option("--columns", metavar="NAME,…", help="Columns of the table, in order, by their JSON names."),
        click.option("--full", is_flag=True, help="Cut nothing short."),
        click.option("--tz", "zone", type=ZoneParam(), default="UTC", help="Time zone of tables.  [UTC]"),
    )


def common(command: F) -> F:
    """The options that both commands have."""
    command = _options(
        command,
        click.option("--max-batch-size", type=SizeParam(), help="Believe no batch length above this.  [16M, the most]"),
        click.option(
            "--max-decompressed-size",
            type=SizeParam(),
            default=DEFAULT_MAX_DECOMPRESSED,
            help="Decompress no more of a batch than this.  [16M, the most]",
        ),
    )
    return _options(
        shown(command),
        click.option("--as-of", "as_of", metavar="OFFSET|TIME", help=AS_OF),
        click.option("--history", is_flag=True, help="Which record changed what, and when: old and new."),
    )


def _options(command: F, *options: Callable[[F], F]) -> F:
    for option in reversed(options):
        command = option(command)
    return command


def clock(text: str | None, zone: tzinfo) -> int | None:
    """--now: epoch ms, told on stderr; None for the clock. Raises click.UsageError."""
    if text is None:
        return None
    try:
        now = round(time.time() * 1000)
        at = int(text) if MILLISECONDS.fullmatch(text) else moment(text, zone, end=False, now=now)
    except (ValueError, OverflowError) as error:
        raise click.UsageError(f"--now: {error}") from None
    complain(f"ages as of {iso(at, zone)}")
    return at


def as_of(text: str | None, zone: tzinfo) -> Moment:
    """The moment: a number is an offset, one of 13 digits or more epoch ms; else a time, whose last ms counts. Tells it
    on stderr. Raises click.UsageError."""
    if text is None:
        return Moment()
    if re.fullmatch(r"[0-9]{1,12}", text):
        complain(f"as of offset {int(text)}")
        return Moment(offset=int(text))
    try:
        now = round(time.time() * 1000)
        at = int(text) if MILLISECONDS.fullmatch(text) else moment(text, zone, end=True, now=now)
    except (ValueError, OverflowError) as error:
        raise click.UsageError(f"--as-of: {error}, and no offset") from None
    complain(f"as of {iso(at, zone)}")
    return Moment(time=at)


class Teller:
    """JSON objects to an output, and notes: on stderr, and as objects where there is JSON. `failed`: a path could not
    be read."""

    def __init__(self, output: Output, as_json: bool) -> None:
        self.output = output
        self.as_json = as_json
        self.failed = False

    def json(self, value: dict[str, Any]) -> None:
        self.output.line(jsonl.line(value))

    def notes(self, source: str, problems: list[str]) -> None:
        """What could not be read: the first few on stderr."""
        for number, problem in enumerate(problems):
            self.note(source, problem, quiet=number >= MOST_TOLD)
            if isinstance(problem, Unread):
                note_unread(problem)
                self.failed = True
        if len(problems) > MOST_TOLD:
            complain(f"… {len(problems) - MOST_TOLD} such notes more: --json has them, verify looks at all")

    def note(self, source: str, message: str, quiet: bool = False) -> None:
        if not quiet:
            complain(f"{path_text(source)}: {message}" if source else message)
        if self.as_json:
            self.output.line(answer_line(Note(source, message)))

    def refuse(self, error: SourceError) -> None:
        self.failed |= refuse(error)


def column_names(text: str | None, as_json: bool) -> list[str] | None:
    """What --columns lists. Raises click.UsageError."""
    if text is None:
        return None
    if as_json:
        raise click.UsageError("--columns is for tables")
    return [name.strip() for name in text.split(",")]


class Run(Protocol):
    """One run of a command; `run` gives the exit status, if that is not 0."""

    teller: Teller

    def run(self, paths: tuple[str, ...]) -> int | None: ...


def carry_out(run: Run, paths: tuple[str, ...], output: Output) -> NoReturn:
    """The run, to its exit status: what it gives, and 2 where something could not be read."""

    def status() -> int:
        try:
            found = run.run(paths)
        except UnknownColumn as error:
            raise click.UsageError(str(error)) from None
        output.flush()
        return 2 if run.teller.failed else found or 0

    exit_with(status)
