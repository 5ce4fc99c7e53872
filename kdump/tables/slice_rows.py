"""What reads slices of segments for the tables that have a row per batch or per record."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from kdump.io.window import Window
from kdump.log.paths import Target
from kdump.log.region import Region
from kdump.log.selection import Selection
from kdump.log.walk import RegionObserver, walk
from kdump.tables.arrow import ArrowBatch
from kdump.tables.read_options import ReadOptions
from kdump.tables.segment_split import SegmentSplit, own_regions


class SliceRows(RegionObserver):
    """Reads slices of segments. `common`: the columns that all rows of a segment share."""

    window: Window

    def __init__(self, options: ReadOptions, selection: Selection) -> None:
        self.limits, self.selection = options.limits, selection
        self.common: dict[str, Any] = {}

    def read(self, part: SegmentSplit, window: Window, common: dict[str, Any]) -> Iterator[ArrowBatch]:
        """Yield the rows of a slice. Raises SourceError."""
        self.begin(part.target, common, window)
        offsets = self.selection.offsets
        source = partial(own_regions, part, window, self.limits, first_offset=offsets.first if offsets else None)
        yield from walk(source, [self])

    def begin(self, target: Target, common: dict[str, Any], window: Window) -> None:
        """The regions that follow are of this segment; `common` has the other columns of its rows."""
        self.common, self.window = common, window

    def region(self, region: Region) -> Iterator[ArrowBatch]:
        raise NotImplementedError

    def rest(self) -> Iterator[ArrowBatch]:
        """Yield the rows that have been read but not yielded yet."""
        raise NotImplementedError
