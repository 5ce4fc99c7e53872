"""`kdump inspect --follow`: the last file as it grows, and then what follows it."""

from __future__ import annotations

import click

from kdump.command_line.command_run import print_error
from kdump.io.errors import SourceError, is_gone
from kdump.io.source import FileSource
from kdump.log.follow import FollowedLog
from kdump.log.paths import Target
from kdump.questions.inspect.rows import Rows
from kdump.render.escape import path_text


def follow(rows: Rows, target: Target) -> None:
    """Show the file from its begin (after its last rows, if --last was given), and what is appended to its log. Raises
    UsageError for one that cannot grow."""
    scan, view = rows.files.scan, rows.view
    log = FollowedLog(target, scan.limits, view.end, lambda file, note: print_error(f"{path_text(file.path)}: {note}"))
    log.skim_previous()
    is_shown = bool(rows.files.options.last)
    while log.has_moved and log.target is not None:
        file = log.target
        try:
            window = scan.open(file)
        except SourceError as error:
            if not is_gone(error):
                raise
            log.resume()
            continue
        if not isinstance(window.source, FileSource):
            window.source.close()
            raise click.UsageError(f"--follow needs a file that can grow, which {path_text(target.path)} cannot")
        if is_shown:
            log.position, is_shown = log.skim(target, window), False
        elif log.position == 0:
            view.file(file)
        for region in scan.chosen(file, window, log.position, log.regions(window)):
            rows.item(file, region, window)
            view.tick()
        window.source.close()
