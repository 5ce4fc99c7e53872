"""The regions of a segment that belong to one split: those that begin in its bytes, as a reading of the whole file has
them.

A walk begins at an entry of the .index some batches before the split, which is no more than a hint: a sound batch has
to be there. As long as each batch is beyond doubt, this is what a walk from the beginning gives. From the first bytes
that are not, the file is walked again from its beginning, for what the reader makes of damage depends on what it has
seen before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from kdump.log.careful import careful
from kdump.log.index import Hints, begins_batch, read_hints
from kdump.log.paths import Target, refuse_pipe
from kdump.log.reader import regions
from kdump.log.region import Batch, Limits, Region, Stretch
from kdump.log.source import open_source
from kdump.log.window import DEFAULT_SIZE, Window

BEFORE = 2
"""Entries of the index that a walk begins before the split."""


class Slice(NamedTuple):
    """The regions of a file that begin at bytes start..stop-1; `stop` None is its end."""

    at: Target
    start: int = 0
    stop: int | None = None

    @property
    def is_whole(self) -> bool:
        return not self.start and self.stop is None


def opened(at: Target, size: int = DEFAULT_SIZE) -> Window:
    """The file, read as under a live broker: past bad sectors, the page cache left as it was. Raises SourceError."""
    refuse_pipe(at)
    return Window(open_source(at.path, wrap=careful), size)


def own_regions(
    part: Slice, window: Window, limits: Limits, stretches: str = "", first_offset: int | None = None
) -> Iterator[Region]:
    """The regions of the slice, in order. `stretches` as the reader has it; with `first_offset`, batches that end below
    it may be left out. Raises SourceError."""
    at = part.at
    begin = _begin(part, window, first_offset)
    reached = part.start
    for region in regions(window, name_offset=at.name_offset, start=begin, limits=limits, stretches=stretches):
        if part.stop is not None and region.position >= part.stop:
            return
        if begin and _doubtful(region):
            break
        yield from _own(region, reached, part.stop)
        reached = max(reached, region.end)
    else:
        return
    for region in regions(window, name_offset=at.name_offset, limits=limits, stretches=stretches):
        if part.stop is not None and region.position >= part.stop:
            return
        yield from _own(region, reached, part.stop)


def _own(region: Region, start: int, stop: int | None) -> Iterator[Region]:
    """The region, or those batches of a stretch, if they begin in start..stop-1."""
    if isinstance(region, Stretch) and (region.position < start or (stop is not None and region.end > stop)):
        for batch in region.batches():
            if batch.position >= start and (stop is None or batch.position < stop):
                yield batch
    elif region.position >= start:
        yield region


def _doubtful(region: Region) -> bool:
    """Whether what stands here may depend on what came before."""
    if isinstance(region, Stretch):
        return False
    return not isinstance(region, Batch) or bool(region.problems) or not region.crcValid


def _begin(part: Slice, window: Window, first_offset: int | None) -> int:
    """Where a sound batch begins from which the walk can start: 0 if nothing says so."""
    if not part.start and first_offset is None:
        return 0
    hints = read_hints(part.at.path, part.at.name_offset)
    entry = bisect_left(hints.positions, part.start)
    if first_offset is not None:
        entry = max(entry, _by_offset(hints, first_offset))
    entry -= BEFORE
    if entry < 0 or not begins_batch(window, hints.positions[entry], hints.offsets[entry], part.at.name_offset):
        return 0
    return hints.positions[entry]


def _by_offset(hints: Hints, offset: int) -> int:
    return bisect_right(hints.offsets, offset)
