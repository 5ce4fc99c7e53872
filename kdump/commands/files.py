"""The files of a showing command: found, opened, and what is to be said of them on stderr."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import click

from kdump.format.counted import many
from kdump.log.errors import SourceError, is_gone
from kdump.log.kinds import BATCHES, INDEXES, PRODUCER_SNAPSHOT, TXN_INDEX, Kind, by_content
from kdump.log.paths import Target, targets
from kdump.log.scan import Scan
from kdump.log.source import FileSource
from kdump.log.window import Window
from kdump.render.escape import path_text, printable
from kdump.render.output import Output

COMPLAINED = "kdump.commands.files.complained"
"""Key of click's context: whether this run has written a line to stderr."""


def complain(text: str) -> None:
    """One line on stderr."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[COMPLAINED] = True
    click.echo(f"kdump: {printable(path_text(text))}", err=True)


GONE = "kdump.commands.files.gone"
"""Key of click's context: how many files and directories went away in this run."""
MOST_GONE = 5
"""So many are named."""


def note_gone(error: SourceError) -> None:
    """One line on stderr for what went away meanwhile; of many, for the first few."""
    context = click.get_current_context(silent=True)
    count = 1 if context is None else context.meta.get(GONE, 0) + 1
    if context is not None:
        context.meta[GONE] = count
    if count <= MOST_GONE:
        complain(str(error))


def sum_up_gone() -> None:
    """At the end: how many more went away."""
    context = click.get_current_context(silent=True)
    more = (0 if context is None else context.meta.pop(GONE, 0)) - MOST_GONE
    if more > 0:
        complain(f"{many(more, 'more file')} went away while this ran, as retention or compaction does")


UNREAD = "kdump.commands.files"
"""Key of click's context: what could not be read in this run."""


def refuse(error: SourceError) -> bool:
    """One line on stderr for what could not be read; the first line of the answer will say so, too. Return False for
    what went away meanwhile, which is no more than noted."""
    if is_gone(error):
        note_gone(error)
        return False
    complain(str(error))
    note_unread(str(error))
    return True


def note_unread(text: str) -> None:
    """As `refuse`, of what has been reported."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta.setdefault(UNREAD, []).append(text)


def output_for(options: dict[str, Any]) -> Output:
    """Standard output for an answer to people: its first line says what was not read, if that is known by then. (JSON
    has objects for that, and stderr has a line.)"""
    output = Output()
    if not options.get("as_json"):
        context = click.get_current_context()

        def headline() -> str:
            unread: list[str] = context.meta.get(UNREAD, [])
            if not unread:
                return ""
            more = f", and {len(unread) - 1:,} more" if len(unread) > 1 else ""
            return f"NOT ALL WAS READ: {printable(path_text(unread[0]))}{more}"

        output.headline = headline
    return output


class Files:
    """The files that paths mean. `failed` tells whether one could not be read; `follow`, that growth is expected."""

    def __init__(self, paths: tuple[str, ...], kind: Kind | None, scan: Scan, *, follow: bool) -> None:
        self.paths = paths
        self.kind = kind
        self.scan = scan
        self.follow = follow
        self.failed = False
        self.named: list[int] = []
        """The base offsets in the names of segments, of those outside the offsets asked for too."""

    def __iter__(self) -> Iterator[Target]:
        """Every file that is to be read; a path that cannot be is complained about, and the others go on."""
        for path in self.paths:
            try:
                yield from self._in_range(list(targets(path, self.kind, self.refused)))
            except SourceError as error:
                self.refused(error)

    def _in_range(self, files: list[Target]) -> list[Target]:
        """Without the segments that the names of their neighbours put outside the offsets asked for."""
        offsets = self.scan.selection.offsets
        self.named += [at.name_offset for at in files if at.kind in BATCHES and at.name_offset is not None]
        if offsets is None:
            return files
        chosen = []
        for at, following in zip(files, [*files[1:], None]):
            end = None
            if following is not None and os.path.dirname(following.path) == os.path.dirname(at.path):
                end = following.name_offset
            if end is not None and at.name_offset is not None and end <= at.name_offset:
                end = None  # two copies of one segment, as a tier keeps them
            below = end is not None and offsets.first is not None and end <= offsets.first
            above = at.name_offset is not None and offsets.last is not None and at.name_offset > offsets.last
            if not (below or above):
                chosen.append(at)
        return chosen

    def open(self, at: Target, *, keep: bool = False) -> tuple[Window, Kind] | None:
        """The file and what kind it is, by its name or its bytes; None, and a line on stderr, if it cannot be read."""
        try:
            window = self.scan.open(at, keep=keep)
            kind = at.kind or by_content(window)
        except SourceError as error:
            self.refused(error)
            return None
        if kind is PRODUCER_SNAPSHOT:
            window.source.keep = True
        if kind in INDEXES and at.name_offset is None and kind is not TXN_INDEX:
            complain(f"{path_text(at.path)}: no base offset in its name: offsets are relative")
        return window, kind

    def refused(self, error: SourceError) -> None:
        """A path, or a device, that could not be read: it is complained about, and the others go on."""
        if is_gone(error):
            note_gone(error)
        else:
            complain(str(error))
            self.failed = True

    def ended(self, at: Target, window: Window, kind: Kind, found: int) -> None:
        """What is to be said of a file once it has been read, with so many batches, or entries and what is none."""
        source = window.source
        name = path_text(at.path)
        if source.error:
            complain(source.error)
            self.failed = True
        if isinstance(source, FileSource) and not self.follow:
            grown = source.grown()
            if grown > 0:
                complain(f"{name}: grew by {grown} bytes while it was read, which are not shown; --follow goes on")
            elif grown < 0:
                complain(f"{name}: was cut by {-grown} bytes while it was read")
        if source.size == 0:
            complain(f"{name}: is empty")
        elif not found and self.scan.selection.is_all:
            no_batch = f"no record batch in {source.size} bytes: is it a segment? --as KIND insists on another kind"
            complain(f"{name}: {no_batch if kind in BATCHES else 'no entries'}")

    def notes(self) -> None:
        """What is to be said at the end."""
        scan = self.scan
        if scan.unshown:
            regions = "region" if scan.unshown == 1 else "regions"
            complain(
                f"{scan.unshown} {regions} of {scan.unshown_bytes} bytes hold no readable batch and are not shown;"
                " without a filter they are"
            )
