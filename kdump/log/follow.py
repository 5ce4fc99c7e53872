"""Reads a segment that is still being written."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

from kdump.io.run import Limits
from kdump.io.source import FileSource
from kdump.io.window import Window
from kdump.log.paths import Target, target
from kdump.log.region import Batch, BatchRun, Region
from kdump.log.region_reader import Depth, regions
from kdump.log.served_files import segments_in

POLL = 0.25
"""Seconds between two checks of whether a file has grown."""


def follow(
    target: Target,
    window: Window,
    start: int,
    limits: Limits,
    on_wait: Callable[[], None],
    on_note: Callable[[str], None],
) -> Iterator[Region]:
    """Yield the regions of a growing file, until the partition has a newer segment or the file is deleted, and all of
    it has been read. A last region that is not a batch may still be being written, so it is yielded only at that end.

    `on_wait` is called before each pause; `on_note` is called with a message if the file is truncated or deleted."""
    source = window.source
    assert isinstance(source, FileSource)
    position = start
    ended = False
    while True:
        state = source.state()
        # A preallocated segment is written in place, so discard whatever was read ahead.
        window.forget()
        source.extend()
        if source.size is not None and source.size < position:
            on_note(f"was truncated to {source.size} bytes; continuing from there")
            position = source.size
        for region in regions(window, name_offset=target.name_offset, start=position, limits=limits):
            if not isinstance(region, Batch) and region.end == source.size and not ended:
                break
            position = region.end
            yield region
        if ended:
            return
        on_wait()
        while not ended and source.state() == state:
            # One more iteration reads what was written before the segment was rolled or deleted.
            ended = newer(target) is not None or source.is_deleted()
            if not ended:
                time.sleep(POLL)
        if source.is_deleted() and newer(target) is None:
            on_note("was deleted; there is nothing more to read")


def newer(current: Target) -> Target | None:
    """Return the partition's next segment, None if this is the newest."""
    if current.name_offset is None:
        return None
    directory = os.path.dirname(current.path) or "."
    try:
        names = segments_in(directory)
    except OSError:
        return None
    for name in names:
        following = target(os.path.join(directory, name))
        if following.name_offset is not None and following.name_offset > current.name_offset:
            return following
    return None


def complete_end(target: Target, window: Window, start: int, limits: Limits) -> int:
    """Return where the batches from byte `start` on end: that of the file, or where bytes begin at its end that are not
    a batch, because one may still be being written there."""
    end = start
    for region in regions(window, name_offset=target.name_offset, start=start, limits=limits, depth=Depth.HEADERS):
        if isinstance(region, (Batch, BatchRun)) or region.end != window.source.size:
            end = region.end
    return end
