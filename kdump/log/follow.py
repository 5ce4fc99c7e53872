"""Reading a segment that is still being written."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

from kdump.log.paths import Target, segments_in, target
from kdump.log.reader import regions
from kdump.log.region import Batch, Limits, Region
from kdump.log.source import FileSource
from kdump.log.window import Window

POLL = 0.25
"""Seconds between two looks at a file that does not grow."""


def follow(
    at: Target, window: Window, start: int, limits: Limits, waiting: Callable[[], None], say: Callable[[str], None]
) -> Iterator[Region]:
    """The regions of a file that grows, without end; it ends when the partition has a newer segment, or the file is
    gone, and this one has nothing more. A tail that is torn, or zeros, is not yet written: it is handed out only once
    that is sure.

    `waiting` is called before each pause; `say` gets a line when the file is cut or deleted."""
    source = window.source
    assert isinstance(source, FileSource)
    position = start
    ended = False
    while True:
        state = source.state()
        # A preallocated segment is written in place, so nothing that was read ahead can be kept.
        window.forget()
        source.extend()
        if source.size is not None and source.size < position:
            say(f"was cut to {source.size} bytes; what is written from there on follows")
            position = source.size
        for region in regions(window, name_offset=at.name_offset, start=position, limits=limits):
            if not isinstance(region, Batch) and region.end == source.size and not ended:
                break
            position = region.end
            yield region
        if ended:
            return
        waiting()
        while not ended and source.state() == state:
            # What was written until it rolled, or was deleted, is read in one more turn.
            ended = newer(at) is not None or source.is_deleted()
            if not ended:
                time.sleep(POLL)
        if source.is_deleted() and newer(at) is None:
            say("was deleted; nothing more can come")


def newer(at: Target) -> Target | None:
    """The partition's next segment, None while this is the newest."""
    if at.name_offset is None:
        return None
    directory = os.path.dirname(at.path) or "."
    try:
        names = segments_in(directory)
    except OSError:
        return None
    for name in names:
        following = target(os.path.join(directory, name))
        if following.name_offset is not None and following.name_offset > at.name_offset:
            return following
    return None
