"""The current place in the browser, as nested levels. Methods that read are called in a separate thread, do not change
what is displayed, and return new levels; `settle` makes them current."""

from __future__ import annotations

import os
from contextlib import closing
from threading import RLock

from kdump.browse.hexdump_lines import HexDump
from kdump.browse.hierarchy import Places
from kdump.browse.level import Level
from kdump.browse.open_file import OpenFile
from kdump.browse.row_factory import RowFactory
from kdump.browse.row_listings import BrowseRow, CountedListing, FullListing, ListingSlice, OnProgress
from kdump.browse.segment_pages import Pages
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.log.region import Batch, Limits
from kdump.log.region_scan import RegionScan
from kdump.log.selection import Range, Selection
from kdump.state.partition_summary import open_window

ROWS = 64
"""Rows to read at a time."""
MAX_KEPT_ROWS = 3 * ROWS
"""Maximum rows of a listing to keep; those farthest from the cursor are dropped."""


class NotFound(Exception):
    """Raised if the target does not exist. The message is shown to the user."""


class Levels:
    """The levels from the top to the current place. `depth` is the level that the table shows; the tree may also show
    deeper ones."""

    def __init__(self, path: str, maker: RowFactory | None = None, limits: Limits | None = None) -> None:
        self.places = Places(path, maker or RowFactory(), limits)
        self.levels: list[Level] = []
        self.depth = 0
        self.lock = RLock()
        """Held while files of the levels are read."""
        self._left: list[OpenFile] = []

    @property
    def level(self) -> Level:
        return self.levels[self.depth]

    def settle(self, levels: list[Level], depth: int | None = None) -> None:
        """Make `levels` current. Files of the levels that were left are closed later, by `close_left`."""
        kept = {id(level.file) for level in levels}
        self._left += [level.file for level in self.levels if level.file is not None and id(level.file) not in kept]
        self.levels = levels
        self.depth = len(levels) - 1 if depth is None else depth

    def close_left(self) -> None:
        """Close the files of levels that were left."""
        with self.lock:
            while self._left:
                self._left.pop().close()

    def dump(self, row: BrowseRow, level: Level, width: int, *, full: bool, on_progress: OnProgress) -> HexDump:
        """Return the annotated bytes of a row. Raises SourceError."""
        with self.lock:
            on_progress(0)
            self.close_left()
            return self.places.dump(row, level, width, full=full)

    def renewed(self, row: BrowseRow) -> BrowseRow:
        """Return the row of a batch with its checksum, after its bytes have been read; other rows unchanged."""
        return self.places.maker.region(row.item) if row.type == "batch" else row

    def open(self, on_progress: OnProgress) -> list[Level]:
        """Return the top level with its first rows. Raises SourceError."""
        with self.lock:
            level = self.places.top()
            return [level.put(level.listing.head(ROWS, on_progress))]

    def enter(self, depth: int, row: BrowseRow, on_progress: OnProgress) -> list[Level] | None:
        """Return the levels down to the contents of a row of the level at `depth`; None if empty. Raises
        SourceError."""
        with self.lock:
            above = self.levels[: depth + 1]
            level = self.places.into(row, above[-1])
            if level is None:
                return None
            part = level.listing.head(ROWS, on_progress)
            return [*above, level.put(part, 1 if row.type == "batch" and len(part.rows) > 1 else 0)]

    def more(self, level: Level, *, down: bool, count: int, on_progress: OnProgress) -> ListingSlice:
        """Read rows after the last one loaded, or before the first. Raises SourceError."""
        with self.lock:
            if down:
                return level.listing.after(level.rows[-1], max(count, ROWS), on_progress)
            return level.listing.before(level.rows[0], max(count, ROWS), on_progress)

    @staticmethod
    def grow(level: Level, part: ListingSlice, *, down: bool) -> None:
        """Add the rows that `more` has read, and drop those farthest from them."""
        if down:
            level.rows, level.last = [*level.rows, *part.rows], part.last
            over = max(0, len(level.rows) - MAX_KEPT_ROWS)
            level.rows, level.cursor = level.rows[over:], max(0, level.cursor - over)
            level.first = level.first and not over
        else:
            level.rows, level.first = [*part.rows, *level.rows], part.first
            level.cursor += len(part.rows)
            level.last = level.last and len(level.rows) <= MAX_KEPT_ROWS
            level.rows = level.rows[:MAX_KEPT_ROWS]
            level.cursor = min(level.cursor, len(level.rows) - 1)

    def end(self, level: Level, *, down: bool, on_progress: OnProgress) -> ListingSlice:
        """Read the last rows of a listing, or the first. Raises SourceError."""
        with self.lock:
            return level.listing.tail(ROWS, on_progress) if down else level.listing.head(ROWS, on_progress)

    def again(self, on_progress: OnProgress) -> list[Level]:
        """Read the current place again, because the filter has changed or a broker may have written. Raises SourceError
        and NotFound."""
        with self.lock:
            if not any(isinstance(level.source, Pages) for level in self.levels):
                return (
                    self.reach(self._path(), on_progress=on_progress)
                    if self.level.rows and self.depth
                    else self.open(on_progress)
                )
            position, index = 0, None
            for level in self.levels[: self.depth + 1]:
                row = level.row
                if row is not None and row.type in ("batch", "region"):
                    position = row.item.position
                elif row is not None and row.type == "record":
                    index = row.item.index
            return self.reach(self.level.path, position=position, index=index, on_progress=on_progress)

    def _path(self) -> str:
        row = self.level.row
        return row.key if row is not None and isinstance(row.key, str) else self.level.path

    def reach(
        self,
        path: str,
        *,
        position: int | None = None,
        offset: int | None = None,
        index: int | None = None,
        on_progress: OnProgress,
    ) -> list[Level]:
        """Return the levels down to a file or directory; within a file, down to the batch or entry at `position` or
        with `offset`, and to the record with that offset or with that `index` in the batch. Raises SourceError and
        NotFound."""
        with self.lock:
            levels = [self.places.top()]
            requested = os.path.abspath(path) if "://" not in path else path
            while isinstance(whole := levels[-1].listing, FullListing):
                level, rows = levels[-1], whole.rows
                number = next((n for n, row in enumerate(rows) if _holds(row.key, requested)), None)
                if number is None:
                    if len(levels) > 1 and level.path and _holds(level.path, requested):
                        level.put(level.listing.head(ROWS, on_progress))
                        return levels
                    raise NotFound(f"{path}: no longer exists")
                part = level.listing.head(len(rows), on_progress)
                level.put(part, number)
                if os.path.abspath(rows[number].key) == requested and position is None and offset is None:
                    return levels
                inside = self.places.into(rows[number], level)
                if inside is None:
                    return levels
                levels.append(inside)
            self._inside(levels, position, offset, index, on_progress)
            return levels

    def _inside(
        self, levels: list[Level], position: int | None, offset: int | None, index: int | None, on_progress: OnProgress
    ) -> None:
        """Extend `levels` within a file, down to the requested position, offset or index."""
        level = levels[-1]
        listing = level.listing
        if isinstance(listing, CountedListing):
            part = listing.head(ROWS, on_progress)
            number = 0
            while position is not None:
                at = [n for n, row in enumerate(part.rows) if getattr(row.item, "position", 0) <= position]
                number = at[-1] if at else 0
                if part.last or not part.rows or (at and at[-1] < len(part.rows) - 1):
                    break
                part = listing.after(part.rows[-1], ROWS, on_progress)
            level.put(part, number)
            return
        assert isinstance(listing, Pages)
        if position is None and offset is None:
            level.put(listing.head(ROWS, on_progress))
            return
        if position is None:
            assert level.file is not None
            position = self._position_of(level.file.target, Selection(offsets=Range(offset, None)), on_progress)
            if position is None:
                raise NotFound(f"offset {offset} is after the last offset of {os.path.basename(level.path)}")
        level.put(listing.at(position, ROWS, on_progress))
        level.cursor = sum(row.item.position <= position for row in level.rows) - 1 if level.rows else 0
        level.cursor = max(0, level.cursor)
        row = level.row
        if row is None or row.type != "batch" or (offset is None and (index is None or row.key != position)):
            return
        records = self.places.into(row, level)
        assert records is not None
        assert isinstance(records.listing, CountedListing)
        for number, item in enumerate(records.listing.items(on_progress)):
            if isinstance(item, Record) and (
                item.index == index if index is not None else (item.offset or 0) >= (offset or 0)
            ):
                before = min(number, ROWS // 2)
                levels.append(records.put(records.listing.from_number(number - before, ROWS, on_progress), before))
                return

    def _position_of(self, target: Target, selection: Selection, on_progress: OnProgress) -> int | None:
        """Return the position of the first batch that matches `selection`; None if there is none."""
        window = open_window(target)
        with closing(window.source):
            scan = RegionScan(selection, self.places.limits)
            scan.on_progress = on_progress
            return next((each.position for each in scan.chosen(target, window) if isinstance(each, Batch)), None)


def _holds(path: str, requested: str) -> bool:
    """Return True if `requested` is `path`, or lies below it."""
    own = path.rstrip("/") if "://" in path else os.path.abspath(path)
    return requested == own or requested.startswith(own.rstrip("/") + "/")
