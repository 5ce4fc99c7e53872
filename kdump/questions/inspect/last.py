"""`kdump inspect --last`: the last rows of all files together, found by reading backward from the end."""

from __future__ import annotations

from collections import deque
from functools import partial

from kdump.io.errors import SourceError
from kdump.io.run import Run
from kdump.io.window import Window
from kdump.log.entries import Entry, Item
from kdump.log.file_kinds import BATCHES
from kdump.log.paths import Target
from kdump.log.region import Region
from kdump.questions.inspect.rows import Rows
from kdump.questions.inspect.selected_files import SelectedFiles
from kdump.render.progress import Progress

Counted = list[tuple[Item, int]]
"""Items, each with its number of rows."""


def show_last(rows: Rows, count: int) -> None:
    """Show the last `count` rows of all files."""
    files = rows.files
    found: list[tuple[Target, Window, Counted]] = []
    total = 0
    for file in reversed(files.listed):
        opened = files.open(file, keep=True)
        if opened is None:
            continue
        target, window = opened
        try:
            with Progress(target.path) as progress:
                files.scan.run = Run(at=partial(_furthest, progress))
                items = _last_of(files, target, window, count - total)
        except SourceError as error:
            files.report_unreadable(error)
            continue
        files.ended(target, window, sum(not isinstance(item, Entry) or bool(item.type) for item, _ in items))
        total += sum(number for _, number in items)
        found.append((target, window, items))
        if total >= count:
            break
    skip = max(0, total - count)
    for target, window, items in reversed(found):
        if items:
            rows.view.file(target)
        for item, number in items:
            tail = isinstance(item, Region) and not number and item.end == window.source.size
            if not (files.options.follow and tail):  # a broker may still be writing it
                rows.item(target, item, window, skip if number else 0)
            skip = 0 if number else skip
        window.source.close()


def _furthest(progress: Progress, position: int, size: int | None) -> None:
    """Positions decrease where the last rows are read again."""
    progress.at(max(position, progress.done), size)


def _last_of(files: SelectedFiles, target: Target, window: Window, count: int) -> Counted:
    """Return the items with the last `count` rows of one file."""
    if target.kind in BATCHES:
        return list(files.scan.last(target, window, count))
    kept: deque[tuple[Item, int]] = deque()
    total = 0
    for item in files.items(target, window):
        rows = int(isinstance(item, Entry) and bool(item.type))
        kept.append((item, rows))
        total += rows
        while kept and total - kept[0][1] >= count:
            total -= kept.popleft()[1]
    return list(kept)
