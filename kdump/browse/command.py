"""Browse partitions, batches, records and annotated bytes in the terminal."""

from __future__ import annotations

import fcntl
import os
import shlex
import struct
import sys
import termios
from dataclasses import dataclass
from datetime import tzinfo
from functools import partial
from typing import Any

import click

from kdump.command_line.command_run import print_error
from kdump.command_line.help_page import HelpPage
from kdump.command_line.params import time_range, zone_option
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.typed_options import fill, option_types, takes
from kdump.extras import how_to_install
from kdump.io import file_system
from kdump.io.run import QUIET_RUN
from kdump.log.selection import Selection
from kdump.query import CommandOptions, added, argument
from kdump.signals import Terminated

EXAMPLES = """
\b
Examples:
  kdump browse /var/lib/kafka
  kdump browse payments-0/00000000000000000000.log
  kdump browse --tz local payments-0

\b
Keys: arrows, Enter and Backspace; press ? for all of them, and : to type a command.

\b
Exit status: 0 on success, 2 for a usage error, or if nothing could be read.
"""


@dataclass(frozen=True)
class BrowseOptions(CommandOptions):
    """The options of the command."""

    path: str = argument(metavar="PATH")
    zone: tzinfo = zone_option()
    reading: ReadingOptions = added(reading_options)


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("disk", 3))
@takes(BrowseOptions)
def command(options: BrowseOptions) -> None:
    """Browse partitions, segments, batches, records and fields in the terminal: a tree, a table and annotated bytes,
    kept in sync. PATH is a log directory, a partition directory, a file, or a parent directory.
    Reads only what is displayed, and writes nothing but the files that you save."""
    if options.path == "-":
        raise click.UsageError("browse cannot read a pipe; use kdump inspect, or browse a file")
    try:
        from kdump.browse.app import BrowseApp
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        print_error(f"browse needs textual, which is not installed: {how_to_install('browse')}")
        sys.exit(2)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print_error("browse needs a terminal; to write to a pipe or a file, use kdump ls or kdump inspect")
        sys.exit(2)
    if (
        0 in os.get_terminal_size()
    ):  # unknown, as on a serial line: Textual would lay out 24 and 25 lines in turn, forever
        fcntl.ioctl(sys.stdout, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    app = BrowseApp(browser(options), prompt_parsers(options.zone))
    app.run(mouse=False)
    if app.ended_by:
        raise Terminated(app.ended_by)
    if app.return_code:
        sys.exit(app.return_code)


def browser(options: BrowseOptions) -> Any:
    """Return the model of the browser. Prints one line and exits with 2 if the path does not exist."""
    from kdump.browse.browser import Browser
    from kdump.browse.places import RowFactory
    from kdump.io.errors import SourceError
    from kdump.log.find_directories import find_directories
    from kdump.log.paths import Target

    path = options.path
    try:
        place = next(find_directories(path, QUIET_RUN), None)
        if isinstance(place, Target) and "://" not in path:
            file_system.stat(path)
    except SourceError as error:
        print_error(str(error))
        sys.exit(2)
    except OSError as error:
        print_error(f"{path}: {error.strerror}")
        sys.exit(2)
    return Browser(path, RowFactory(options.zone), options.reading.limits)


def prompt_parsers(zone: tzinfo) -> Any:
    """Return what parses the text that is typed into the browser."""
    from kdump.browse.prompt import PromptParsers

    names = sorted(_option_names(_filter_params()))
    return PromptParsers(partial(typed_selection, zone=zone), partial(typed_time, zone=zone), names)


def _filter_params() -> list[click.Parameter]:
    """Return the options of inspect that restrict batches and records."""
    from kdump.command_line.filter_options import FilterOptions
    from kdump.questions.inspect.command import command as inspect

    filters = option_types(FilterOptions)
    return [param for param in inspect.params if param.name in filters]


def _option_names(params: list[click.Parameter]) -> list[str]:
    return [name for param in params for name in param.opts if name.startswith("--")]


def typed_selection(typed: str, zone: tzinfo) -> Selection:
    """Parse inspect's options, as typed into a prompt, into a selection. Raises ValueError."""
    from kdump.command_line.filter_options import FilterOptions, selection_of

    params = _filter_params()
    asks = click.Command("filter", params=params, add_help_option=False)
    try:
        words = shlex.split(typed)
        with asks.make_context("filter", words) as context:
            return selection_of(fill(FilterOptions, context.params), zone)
    except click.NoSuchOption as error:
        names = ", ".join(_option_names(params))
        raise ValueError(f"{error.option_name} is not a filter option; use {names}") from None
    except click.ClickException as error:
        raise ValueError(error.format_message()) from None


def typed_time(typed: str, zone: tzinfo) -> int:
    """Parse a time, in the syntax of --time, into the epoch ms of its beginning. Raises ValueError."""
    try:
        first = time_range(typed, zone).first
    except click.ClickException as error:
        reason = error.format_message().removeprefix("--time: ")
        raise ValueError(f"{reason}; for an offset, type a number; for a byte position, @ and a number") from None
    if first is None:
        raise ValueError(f"{typed}: this range has no start to go to")
    return first
