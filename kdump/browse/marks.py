"""Marks: places in the files that the user has given a letter, for the time of the session."""

from __future__ import annotations

import string
from typing import NamedTuple

from kdump.browse.browser import Browser
from kdump.browse.level import Level
from kdump.log.run import Run

LETTERS = string.ascii_letters + string.digits
LAST = "'"
"""The mark that is set by every jump: where it began."""


class Mark(NamedTuple):
    """A place. `path`: the file, or the directory of a row; within a file, the byte `position` of the batch or entry,
    and the `record_index` of the record in its batch. `offset`: of the record or batch, to see whether it is still
    there. `label`: the names of the rows down to it, escaped."""

    path: str
    position: int | None
    record_index: int | None
    offset: int | None
    label: str


def mark_of(browser: Browser) -> Mark | None:
    """Return the mark of the selected row; of a field, that of its record or batch. None if nothing is selected."""
    levels = browser.levels[: browser.depth + 1]
    if not levels or levels[-1].row is None:
        return None
    if levels[-1].row.type == "field":
        levels = levels[:-1]
    level, row = levels[-1], levels[-1].row
    if row is None:
        return None
    label = " › ".join(each.row.label for each in levels if each.row is not None)
    if level.file is None:
        return Mark(str(row.key), None, None, None, label)
    if row.type == "record":
        return Mark(level.path, row.item.batch.position, row.item.index, row.item.offset, label)
    if row.type in ("header", "note") and level.owner is not None and level.owner.type == "batch":
        return Mark(level.path, level.owner.item.position, None, level.owner.item.baseOffset, label)
    position = getattr(row.item, "position", None)
    return Mark(level.path, position, None, getattr(row.item, "baseOffset", None), label)


def to_mark(browser: Browser, mark: Mark, run: Run) -> tuple[list[Level], str]:
    """Return the levels down to a mark, and a note if the bytes there have changed. Raises SourceError and NotFound."""
    levels = browser.reach(mark.path, position=mark.position, index=mark.record_index, run=run)
    row = levels[-1].row
    if mark.offset is None or row is None:
        return levels, ""
    offset = row.item.offset if row.type == "record" else getattr(row.item, "baseOffset", None)
    if offset == mark.offset and (row.type == "record") == (mark.record_index is not None):
        return levels, ""
    return levels, f"the file has changed: offset {mark.offset} is no longer at byte {mark.position}"
