"""Input files of the commands that show them: finds and opens them, and prints notes on them to stderr."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from kdump.format.count_text import count_text
from kdump.io.errors import NOT_KNOWN, NotKnown, SourceError, is_gone
from kdump.io.unreadable_paths import failures, same_failure
from kdump.render.escape import path_text, printable

if TYPE_CHECKING:  # only inspect has them
    from kdump.log.pseudonyms import Pseudonyms

COMPLAINED = "kdump.command_line.input_files.complained"
"""Key in click's context: whether this run has written a line to stderr."""


def print_error(text: str) -> None:
    """Print one line to stderr."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[COMPLAINED] = True
    click.echo(f"kdump: {printable(path_text(text))}", err=True)


NAMES = "kdump.command_line.input_files.names"
"""Key in click's context: what replaces the names in the errors of this run."""


def replace_names(names: Pseudonyms) -> None:
    """Print what could not be read without names: the path with replacements, and no reason that may have one."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[NAMES] = names


def without_names(error: str) -> str:
    """Return the text of an error as it is printed."""
    context = click.get_current_context(silent=True)
    names: Pseudonyms | None = None if context is None else context.meta.get(NAMES)
    return error if names is None else names.located(error)


GONE = "kdump.command_line.input_files.gone"
"""Key in click's context: number of files and directories that were deleted during this run."""
MAX_DELETED_LISTED = 5
"""Maximum number of them that are listed by name."""


def note_deleted(error: SourceError) -> None:
    """Print a line to stderr for a file or directory that was deleted during the run, for the first MAX_DELETED_LISTED
    of them."""
    context = click.get_current_context(silent=True)
    count = 1 if context is None else context.meta.get(GONE, 0) + 1
    if context is not None:
        context.meta[GONE] = count
    if count <= MAX_DELETED_LISTED:
        print_error(without_names(str(error)))


def print_deleted_total() -> None:
    """Print how many more were deleted; for the end of the run."""
    context = click.get_current_context(silent=True)
    more = (0 if context is None else context.meta.pop(GONE, 0)) - MAX_DELETED_LISTED
    if more > 0:
        print_error(f"{count_text(more, 'more file')} went away while this ran, deleted by retention or compaction")


UNREAD = "kdump.command_line.input_files"
"""Key in click's context: the errors reported in this run about what could not be read, each once."""


def report_unreadable(error: SourceError) -> bool:
    """Print a line to stderr for input that could not be read, and mention it in the first line of the output, too.
    Return False if it was deleted during the run, which is only noted."""
    if is_gone(error):
        note_deleted(error)
        return False
    if same_failure(str(error)) not in _reported():  # both the search and the directory report what cannot be listed
        print_error(without_names(str(error)))
    add_unreadable(str(error))
    return True


def add_unreadable(text: str) -> None:
    """Like `report_unreadable`, for an error that has been printed already."""
    _reported().setdefault(same_failure(text), text)


def _reported() -> dict[str, str]:
    """Return the errors of this run by `same_failure`."""
    context = click.get_current_context(silent=True)
    reported: dict[str, str] = {} if context is None else context.meta.setdefault(UNREAD, {})
    return reported


def unreadable() -> list[str]:
    """Return what could not be read in this run: the errors that the command has reported, then the failures that
    nothing has reported yet (kdump.io.unreadable_paths)."""
    return [*_reported().values(), *_unreported()]


def _unreported() -> list[str]:
    """Return the failures to read a file or directory whose path is in no error that the command has reported."""
    paths = {os.path.abspath(part) for message in _reported().values() for part in message.split(": ")}
    return [message for path, message in failures().items() if path not in paths]


OUTPUT = "kdump.command_line.input_files.output"
"""Key in click's context: the output whose first line states what was not read."""
MAX_FAILURES_LISTED = 20
"""Maximum number of failures that are listed by name at the end of a run."""


def unreadable_line() -> str:
    """Return the first line of output for people, if something could not be read; else an empty string."""
    problems = unreadable()
    if not problems:
        return ""
    more = f", and {len(problems) - 1:,} more" if len(problems) > 1 else ""
    head = NOT_KNOWN if all(isinstance(problem, NotKnown) for problem in problems) else "NOT ALL WAS READ"
    return f"{head}: {printable(path_text(without_names(problems[0])))}{more}"


def print_unreadable() -> bool:
    """End an answer whose first line states what was not read: print the failures that the command itself did not
    report; if it has no other output, write the first line alone. Return True if a file or directory could not be
    read."""
    output = click.get_current_context().meta.get(OUTPUT)
    if output is None:
        return False
    if failures() or any(isinstance(reported, NotKnown) for reported in _reported().values()):
        output.finish()
    if not failures():
        return False
    messages = _unreported()
    for message in messages[:MAX_FAILURES_LISTED]:
        print_error(without_names(message))
    if len(messages) > MAX_FAILURES_LISTED:
        print_error(f"… and {len(messages) - MAX_FAILURES_LISTED:,} more files that could not be read")
    return True
