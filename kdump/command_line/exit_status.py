"""Ends the run of a command: messages and exit status."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

import click

from kdump.command_line.command_run import (
    add_unreadable,
    print_deleted_total,
    print_error,
    print_left_out,
    print_unreadable,
    this_run,
)
from kdump.command_line.metrics_option import metrics_of_run
from kdump.command_line.name_options import left_out, unmatched
from kdump.io.errors import SourceError, is_gone
from kdump.render.progress import Progress

if TYPE_CHECKING:
    from kdump.render.metrics import Metrics


def exit_with(run: Callable[[], int], *trouble: type[Exception], if_unread: int = 2) -> NoReturn:
    """Exit with the status that `run` returns; with 130 if it is interrupted; with 2, and a line on stderr, for a path
    that cannot be read (0 if it was deleted during the run) and for the errors in `trouble`. If `run` returns 0, the
    status is still 2 if a pattern of an option matched nothing. If any file could not be read, the status is at least
    `if_unread`."""
    errors: tuple[type[Exception], ...] = (SourceError, *trouble)
    context = click.get_current_context()
    metrics = None
    try:
        metrics = metrics_of_run()
        with Progress(context.info_name or "kdump", counts_reads=True):
            status = run()
        print_left_out(context.command)
    except KeyboardInterrupt:
        sys.exit(130)
    except errors as error:
        print_error(str(error))
        add_unreadable(str(error))
        print_unreadable()
        sys.exit(_written(metrics, 0 if isinstance(error, SourceError) and is_gone(error) else 2))
    print_deleted_total()
    if print_unreadable():
        status = max(status, if_unread)
    for note in unmatched(is_answered=status != 2 or not this_run().has_complained):
        print_error(note)
        status = status or 2
    for note in left_out():
        print_error(note)
    sys.exit(_written(metrics, status))


def _written(metrics: Metrics | None, status: int) -> int:
    """Write the metrics of a run with this exit status. Returns the status: 2, after a message, if that fails."""
    if metrics is None:
        return status
    from kdump.log.output_directory import OutputError

    try:
        metrics.write(status)
    except OutputError as error:
        print_error(str(error))
        return 2
    return status
