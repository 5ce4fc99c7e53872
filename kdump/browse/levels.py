"""Where one is: levels entered one into the other. What reads is called in a thread of its own, changes nothing that is
shown, and gives back levels; `settle` takes them."""

from __future__ import annotations

import os
from contextlib import closing
from threading import RLock

from kdump.browse.dump import Dump
from kdump.browse.files import OpenFile
from kdump.browse.make import Maker
from kdump.browse.pages import Pages
from kdump.browse.places import Level, Places
from kdump.browse.rows import Counted, Met, Part, Row, Whole
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.log.region import Batch, Limits
from kdump.log.scan import Scan
from kdump.log.select import Range, Selection
from kdump.state.partition_log import open_window

ROWS = 64
"""Rows that are read at once."""
MOST = 3 * ROWS
"""Rows of a listing that are kept; those furthest from where one stands go."""


class NotThere(Exception):
    """What was looked for is not there; the message says it to a person."""


class Levels:
    """The levels from the top to where one stands. `depth` is the level that the table shows; deeper ones may be open
    in the tree."""

    def __init__(self, path: str, maker: Maker | None = None, limits: Limits | None = None) -> None:
        self.places = Places(path, maker or Maker(), limits)
        self.levels: list[Level] = []
        self.depth = 0
        self.lock = RLock()
        """Held while anything of the levels' files is read."""
        self._left: list[OpenFile] = []

    @property
    def level(self) -> Level:
        return self.levels[self.depth]

    def settle(self, levels: list[Level], depth: int | None = None) -> None:
        """Be there from now on. Files of levels that are left are closed once nobody reads them."""
        kept = {id(level.file) for level in levels}
        self._left += [level.file for level in self.levels if level.file is not None and id(level.file) not in kept]
        self.levels = levels
        self.depth = len(levels) - 1 if depth is None else depth

    def close_left(self) -> None:
        """Close the files that nobody looks at any more."""
        with self.lock:
            while self._left:
                self._left.pop().close()

    def dump(self, row: Row, level: Level, width: int, *, full: bool, met: Met) -> Dump:
        """The annotated bytes of a row. Raises SourceError."""
        with self.lock:
            met(0)
            self.close_left()
            return self.places.dump(row, level, width, full=full)

    def renewed(self, row: Row) -> Row:
        """The row of a batch after it was looked at: now its checksum is known."""
        return self.places.maker.region(row.item) if row.type == "batch" else row

    def open(self, met: Met) -> list[Level]:
        """The top, and what is in it where that is a single thing. Raises SourceError."""
        with self.lock:
            level = self.places.top()
            return [level.put(level.listing.head(ROWS, met))]

    def enter(self, depth: int, row: Row, met: Met) -> list[Level] | None:
        """What is in a row of the level at `depth`; None if nothing is. Raises SourceError."""
        with self.lock:
            above = self.levels[: depth + 1]
            level = self.places.into(row, above[-1])
            if level is None:
                return None
            part = level.listing.head(ROWS, met)
            return [*above, level.put(part, 1 if row.type == "batch" and len(part.rows) > 1 else 0)]

    def more(self, level: Level, *, down: bool, count: int, met: Met) -> Part:
        """Rows behind the last that is at hand, or before the first. Raises SourceError."""
        with self.lock:
            if down:
                return level.listing.after(level.rows[-1], max(count, ROWS), met)
            return level.listing.before(level.rows[0], max(count, ROWS), met)

    @staticmethod
    def grow(level: Level, part: Part, *, down: bool) -> None:
        """Add what `more` has read, and let go of what is far from it."""
        if down:
            level.rows, level.last = [*level.rows, *part.rows], part.last
            over = max(0, len(level.rows) - MOST)
            level.rows, level.cursor = level.rows[over:], max(0, level.cursor - over)
            level.first = level.first and not over
        else:
            level.rows, level.first = [*part.rows, *level.rows], part.first
            level.cursor += len(part.rows)
            level.last = level.last and len(level.rows) <= MOST
            level.rows = level.rows[:MOST]
            level.cursor = min(level.cursor, len(level.rows) - 1)

    def end(self, level: Level, *, down: bool, met: Met) -> Part:
        """The last rows of a listing, or the first. Raises SourceError."""
        with self.lock:
            return level.listing.tail(ROWS, met) if down else level.listing.head(ROWS, met)

    def again(self, met: Met) -> list[Level]:
        """The same place, read anew: the filter is another, or a broker has written. Raises SourceError."""
        with self.lock:
            if not any(isinstance(level.listing, Pages) for level in self.levels):
                return self.reach(self._path(), met=met) if self.level.rows and self.depth else self.open(met)
            position, index = 0, None
            for level in self.levels[: self.depth + 1]:
                row = level.row
                if row is not None and row.type in ("batch", "region"):
                    position = row.item.position
                elif row is not None and row.type == "record":
                    index = row.item.index
            return self.reach(self.level.path, position=position, index=index, met=met)

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
        met: Met,
    ) -> list[Level]:
        """The levels down to a file, or directory; to the batch or entry at `position` or with `offset` in it; and to
        the record of that offset, or that index in its batch. Raises SourceError, and NotThere."""
        with self.lock:
            levels = [self.places.top()]
            wanted = os.path.abspath(path) if "://" not in path else path
            while isinstance(whole := levels[-1].listing, Whole):
                level, rows = levels[-1], whole.rows
                number = next((n for n, row in enumerate(rows) if _holds(row.key, wanted)), None)
                if number is None:
                    if len(levels) > 1 and level.path and _holds(level.path, wanted):
                        level.put(level.listing.head(ROWS, met))
                        return levels
                    raise NotThere(f"{path}: no longer there")
                part = level.listing.head(len(rows), met)
                level.put(part, number)
                if os.path.abspath(rows[number].key) == wanted and position is None and offset is None:
                    return levels
                inside = self.places.into(rows[number], level)
                if inside is None:
                    return levels
                levels.append(inside)
            self._inside(levels, position, offset, index, met)
            return levels

    def _inside(
        self, levels: list[Level], position: int | None, offset: int | None, index: int | None, met: Met
    ) -> None:
        """Into a file, to where it is asked for."""
        level = levels[-1]
        listing = level.listing
        if isinstance(listing, Counted):
            part = listing.head(ROWS, met)
            number = 0
            while position is not None:
                at = [n for n, row in enumerate(part.rows) if getattr(row.item, "position", 0) <= position]
                number = at[-1] if at else 0
                if part.last or not part.rows or (at and at[-1] < len(part.rows) - 1):
                    break
                part = listing.after(part.rows[-1], ROWS, met)
            level.put(part, number)
            return
        assert isinstance(listing, Pages)
        if position is None and offset is None:
            level.put(listing.head(ROWS, met))
            return
        if position is None:
            assert level.file is not None
            position = self._position_of(level.file.at, Selection(offsets=Range(offset, None)), met)
            if position is None:
                raise NotThere(f"offset {offset} is behind the last of {os.path.basename(level.path)}")
        level.put(listing.at(position, ROWS, met))
        level.cursor = sum(row.item.position <= position for row in level.rows) - 1 if level.rows else 0
        level.cursor = max(0, level.cursor)
        row = level.row
        if row is None or row.type != "batch" or (offset is None and (index is None or row.key != position)):
            return
        records = self.places.into(row, level)
        assert records is not None
        assert isinstance(records.listing, Counted)
        for number, item in enumerate(records.listing.items(met)):
            if isinstance(item, Record) and (
                item.index == index if index is not None else (item.offset or 0) >= (offset or 0)
            ):
                before = min(number, ROWS // 2)
                levels.append(records.put(records.listing.from_number(number - before, ROWS, met), before))
                return

    def _position_of(self, at: Target, selection: Selection, met: Met) -> int | None:
        """Where the first batch begins that a selection chooses."""
        window = open_window(at)
        with closing(window.source):
            scan = Scan(selection, self.places.limits)
            scan.met = met
            return next((each.position for each in scan.chosen(at, window) if isinstance(each, Batch)), None)


def _holds(path: str, wanted: str) -> bool:
    """Whether `wanted` is that path, or lies below it."""
    own = path.rstrip("/") if "://" in path else os.path.abspath(path)
    return wanted == own or wanted.startswith(own.rstrip("/") + "/")
