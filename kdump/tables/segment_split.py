"""Regions of a segment that belong to one split: those that begin within its bytes, the same as in a read of the whole
file.

Reading starts a few entries of the .index before the split. An entry is only a hint: there must be a valid batch at its
position. As long as every batch is valid, the result is that of a read from the beginning. At the first region that is
not a valid batch, the file is read again from its beginning, because how the reader interprets damage depends on what
it has read before."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from kdump.core.column_numbers import BATCH_END, BATCH_START, LAST_OFFSET
from kdump.io.fault_tolerant import careful_source
from kdump.io.run import Limits
from kdump.io.source import BYTES
from kdump.io.window import DEFAULT_SIZE, Window
from kdump.log.batch_validity import is_valid
from kdump.log.offset_index_lookup import IndexLookup, begins_batch, open_index_lookup
from kdump.log.paths import Target, reject_pipe
from kdump.log.region import Batch, BatchRun, Region
from kdump.log.region_reader import Depth, regions

BEFORE = 2
"""How many index entries before the split reading starts."""


class SegmentSplit(NamedTuple):
    """The regions of a file that begin at bytes start..stop-1; `stop` None: the end of the file."""

    target: Target
    start: int = 0
    stop: int | None = None

    @property
    def is_whole(self) -> bool:
        return not self.start and self.stop is None


def opened(target: Target, size: int = DEFAULT_SIZE) -> Window:
    """Open the file with the precautions for a live broker: reads past bad sectors, and leaves the page cache
    unchanged. Raises SourceError."""
    reject_pipe(target)
    return Window(careful_source(target.path), size)


def own_regions(
    part: SegmentSplit, window: Window, limits: Limits, depth: Depth = Depth.BATCHES, first_offset: int | None = None
) -> Iterator[Region]:
    """Yield the regions of the slice, in order. `depth` is that of kdump.log.region_reader. With `first_offset`,
    batches that end below it may be omitted. Raises SourceError."""
    target = part.target
    begin = _begin(part, window, first_offset)
    reached = part.start
    for region in regions(window, name_offset=target.name_offset, start=begin, limits=limits, depth=depth):
        if part.stop is not None and region.position >= part.stop:
            return
        if begin and _doubtful(region):
            break
        yield from _own(region, reached, part.stop)
        reached = max(reached, region.end)
    else:
        return
    for region in regions(window, name_offset=target.name_offset, limits=limits, depth=depth):
        if part.stop is not None and region.position >= part.stop:
            return
        yield from _own(region, reached, part.stop)


def _own(region: Region, start: int, stop: int | None) -> Iterator[Region]:
    """Yield the region, or individual batches of a batch run, if they begin in start..stop-1."""
    if isinstance(region, BatchRun) and (region.position < start or (stop is not None and region.end > stop)):
        for batch in region.batches():
            if batch.position >= start and (stop is None or batch.position < stop):
                yield batch
    elif region.position >= start:
        yield region


def _doubtful(region: Region) -> bool:
    """Return True if the result here may depend on earlier bytes."""
    if isinstance(region, BatchRun):
        return False
    return not isinstance(region, Batch) or not is_valid(region)


def _begin(part: SegmentSplit, window: Window, first_offset: int | None) -> int:
    """Return the position of a valid batch from which to read: by the index, or else by the headers; 0 if there is
    none."""
    if not part.start and first_offset is None:
        return 0
    hints = open_index_lookup(part.target.path, part.target.name_offset)
    if not hints.positions:
        return _by_headers(part, window, first_offset or 0)
    entry = bisect_left(hints.positions, part.start)
    if first_offset is not None:
        entry = max(entry, _by_offset(hints, first_offset))
    entry -= BEFORE
    if entry < 0 or not begins_batch(window, hints.positions[entry], hints.offsets[entry], part.target.name_offset):
        return 0
    return hints.positions[entry]


def _by_headers(part: SegmentSplit, window: Window, first_offset: int) -> int:
    if BYTES in window.source.lacks:
        return 0  # its regions need no reading
    begin = 0
    for region in regions(window, name_offset=part.target.name_offset, limits=Limits(), depth=Depth.HEADERS):
        if not isinstance(region, BatchRun):
            break
        if region.end > part.start and region.run.last_offset >= first_offset:
            heads = region.headers
            ends, lasts = heads.column(BATCH_END), heads.column(LAST_OFFSET)
            row = max(bisect_right(ends, part.start - heads.shift), bisect_left(lasts, first_offset))
            return heads.of(row, BATCH_START) + heads.shift
        begin = region.position
    return begin


def _by_offset(hints: IndexLookup, offset: int) -> int:
    return bisect_right(hints.offsets, offset)
