"""One run of a command: what it has printed and selected so far, and its messages about what could not be read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import click

from kdump.format.count_text import count_text
from kdump.io.errors import NOT_KNOWN, NotKnown, SourceError, is_gone, same_failure, whole_path
from kdump.io.unreadable_paths import failures
from kdump.render.escape import path_text, printable

if TYPE_CHECKING:
    from kdump.log.pseudonyms import Pseudonyms
    from kdump.render.metrics import Metrics
    from kdump.render.stdout import Output

MAX_DELETED_LISTED = 5
"""Maximum number of deleted files and directories that are listed by name."""
MAX_FAILURES_LISTED = 20
"""Maximum number of failures that are listed by name at the end of a run."""


class NameSelection(Protocol):
    """The values of an option that selects by name. `is_named`: whether any existing name has been seen."""

    @property
    def is_named(self) -> bool: ...

    def unmatched(self) -> Iterator[str]:
        """Yield a line for each value of the option that has matched no name so far."""
        ...


@dataclass
class CommandRun:
    """`names`: what replaces the names in errors; `output`: the one whose first line states what was not read;
    `options`: those of the command; `old_format`: the value of --format, if it has the meaning that it had before it
    selected the output."""

    has_complained: bool = False
    """Whether it has written a line to stderr."""
    names: Pseudonyms | None = None
    deleted: int = 0
    """Number of files and directories that were deleted during the run."""
    reported: dict[tuple[str, str], str] = field(default_factory=dict)
    """The errors reported about what could not be read, by `same_failure`."""
    output: Output | None = None
    outputs: list[Output] = field(default_factory=list)
    old_format: str | None = None
    options: Any = None
    selections: list[NameSelection] = field(default_factory=list)
    metrics: Metrics | None = None


def this_run() -> CommandRun:
    """Return the run of the current command; outside of one, as in a program that uses kdump as a library, a new
    one."""
    context = click.get_current_context(silent=True)
    return CommandRun() if context is None else context.ensure_object(CommandRun)


def print_error(text: str) -> None:
    """Print one line to stderr."""
    this_run().has_complained = True
    click.echo(f"kdump: {printable(path_text(text))}", err=True)


def replace_names(names: Pseudonyms) -> None:
    """Print what could not be read without names: the path with replacements, and no reason that may have one."""
    this_run().names = names


def without_names(error: str) -> str:
    """Return the text of an error as it is printed."""
    names = this_run().names
    return error if names is None else names.located(error)


def note_deleted(error: SourceError) -> None:
    """Print a line to stderr for a file or directory that was deleted during the run, for the first MAX_DELETED_LISTED
    of them."""
    run = this_run()
    run.deleted += 1
    if run.deleted <= MAX_DELETED_LISTED:
        print_error(without_names(str(error)))


def print_deleted_total() -> None:
    """Print how many more were deleted; for the end of the run."""
    more = this_run().deleted - MAX_DELETED_LISTED
    if more > 0:
        print_error(f"{count_text(more, 'more file')} went away while this ran, deleted by retention or compaction")


def report_unreadable(error: SourceError) -> bool:
    """Print a line to stderr for input that could not be read, and mention it in the first line of the output, too.
    Return False if it was deleted during the run, which is only noted."""
    if is_gone(error):
        note_deleted(error)
        return False
    # Both the search and the directory report what cannot be listed.
    if same_failure(str(error)) not in this_run().reported:
        print_error(without_names(str(error)))
    add_unreadable(str(error))
    return True


def add_unreadable(text: str) -> None:
    """Like `report_unreadable`, for an error that has been printed already."""
    this_run().reported.setdefault(same_failure(text), text)


def unreadable() -> list[str]:
    """Return what could not be read in this run: the errors that the command has reported, then the failures that
    nothing has reported yet (kdump.io.unreadable_paths)."""
    return [*this_run().reported.values(), *_unreported()]


def _unreported() -> list[str]:
    """Return the failures to read a file or directory whose path is in no error that the command has reported."""
    paths = set(map(whole_path, this_run().reported.values()))
    return [message for path, message in failures().items() if path not in paths]


def unreadable_line() -> str:
    """Return the first line of output for people, if something could not be read; else an empty string."""
    problems = unreadable()
    if not problems:
        return ""
    more = f", and {len(problems) - 1:,} more" if len(problems) > 1 else ""
    head = NOT_KNOWN if all(isinstance(problem, NotKnown) for problem in problems) else "NOT ALL WAS READ"
    return f"{head}: {printable(path_text(without_names(problems[0])))}{more}"


def print_left_out(command: click.Command) -> None:
    """End the tables of a run of the command with the columns for which the terminal had no room."""
    outputs = [output for output in this_run().outputs if output.left_out]
    columns = dict.fromkeys(column for output in outputs for column in output.left_out)
    if columns:
        more = "1 column more" if len(columns) == 1 else f"{len(columns)} columns more"
        how = "--full" if any("--full" in param.opts for param in command.params) else "--format csv"
        outputs[0].text(f"{more} ({', '.join(columns)}): {how}, or a wider terminal", style="dim")
        outputs[0].flush()


def print_unreadable() -> bool:
    """End an answer whose first line states what was not read: print the failures that the command itself did not
    report; if it has no other output, write the first line alone. Return True if a file or directory could not be
    read."""
    run = this_run()
    if run.output is None:
        return False
    if failures() or any(isinstance(reported, NotKnown) for reported in run.reported.values()):
        run.output.finish()
    return print_unreported()


def print_unreported() -> bool:
    """Print the failures to read a file or directory that the command itself did not report. Return True if a file or
    directory could not be read."""
    messages = _unreported()
    for message in messages[:MAX_FAILURES_LISTED]:
        print_error(without_names(message))
    if len(messages) > MAX_FAILURES_LISTED:
        print_error(f"… and {len(messages) - MAX_FAILURES_LISTED:,} more files that could not be read")
    return bool(failures())
