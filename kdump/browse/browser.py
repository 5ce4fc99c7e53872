"""The model of the browser: the current place as nested levels, and how to get to another one. Methods that read are
called in a separate thread, do not change what is displayed, and return new levels; `settle` makes them current."""

from __future__ import annotations

import os
import re
import string
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from threading import RLock
from typing import NamedTuple

from kdump.browse.lines import HexDump
from kdump.browse.listings import (
    BrowseRow,
    CountedListing,
    FullListing,
    Level,
    ListingSlice,
    OpenFile,
    SortedListing,
    SortOrder,
)
from kdump.browse.places import Places, RowFactory
from kdump.browse.segment_pages import Pages
from kdump.format.count_text import plain_count
from kdump.format.number_range import Range
from kdump.io import file_system
from kdump.io.errors import SourceError
from kdump.io.fault_tolerant import read_problem
from kdump.io.run import Limits, Run
from kdump.log.file_kinds import BATCHES, TIME_INDEX
from kdump.log.live_files import open_window
from kdump.log.offset_index_lookup import last_entry
from kdump.log.partition_directory import partition
from kdump.log.paths import Target, short_name
from kdump.log.record import Record
from kdump.log.region import Batch
from kdump.log.region_scan import RegionScan
from kdump.log.search_coverage import SearchCoverage
from kdump.log.selection import Selection

ROWS = 64
"""Rows to read at a time."""
LETTERS = string.ascii_letters + string.digits
"""Names of marks: places in the files, for the time of the session."""
LAST = "'"
"""The mark that is set by every jump: where it began."""


class NotFound(Exception):
    """Raised if the target does not exist. The message is shown to the user."""


class Browser:
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

    def settle(self, levels: list[Level]) -> None:
        """Make `levels` current. Files of the levels that were left are closed later, by `close_left`."""
        kept = {id(level.file) for level in levels}
        self._left += [level.file for level in self.levels if level.file is not None and id(level.file) not in kept]
        self.levels = levels
        self.depth = len(levels) - 1

    def drop_deeper(self) -> None:
        """Drop the levels below the one that the table shows."""
        self.settle(self.levels[: self.depth + 1])

    def close_left(self) -> None:
        """Close the files of levels that were left."""
        with self.lock:
            while self._left:
                self._left.pop().close()

    def dump(self, row: BrowseRow, level: Level, width: int, *, full: bool, run: Run) -> HexDump:
        """Return the annotated bytes of a row. Raises SourceError."""
        with self.lock:
            run.at(0, None)
            self.close_left()
            return self.places.dump(row, level, width, full=full)

    def open(self, run: Run) -> list[Level]:
        """Return the top level with its first rows. Raises SourceError."""
        with self.lock:
            level = self.places.top()
            return [level.put(level.listing.head(ROWS, run))]

    def enter(self, depth: int, row: BrowseRow, run: Run) -> list[Level] | None:
        """Return the levels down to the contents of a row of the level at `depth`; None if empty. Raises
        SourceError."""
        with self.lock:
            above = self.levels[: depth + 1]
            level = self.places.into(row, above[-1])
            if level is None:
                return None
            part = level.listing.head(ROWS, run)
            return [*above, level.put(part, 1 if row.type == "batch" and len(part.rows) > 1 else 0)]

    def more(self, level: Level, *, down: bool, count: int, run: Run) -> ListingSlice:
        """Read rows after the last one loaded, or before the first. Raises SourceError."""
        with self.lock:
            if down:
                return level.listing.after(level.rows[-1], max(count, ROWS), run)
            return level.listing.before(level.rows[0], max(count, ROWS), run)

    def end(self, level: Level, *, down: bool, run: Run) -> ListingSlice:
        """Read the last rows of a listing, or the first. Raises SourceError."""
        with self.lock:
            return level.listing.tail(ROWS, run) if down else level.listing.head(ROWS, run)

    def again(self, run: Run) -> list[Level]:
        """Read the current place again, because the filter has changed or a broker may have written; a sorted table is
        sorted again. Raises SourceError and NotFound."""
        with self.lock:
            order = self.level.order
            levels = self._again(run)
            level = levels[-1]
            if order is None or level.order is not None or len(levels) != self.depth + 1:
                return levels
            names = [column.name for column in level.listing.columns]
            if order.column in names and isinstance(level.listing, (Pages, CountedListing)):
                made = level.sorted(order, run)
                assert isinstance(made.listing, SortedListing)
                levels[-1] = made.put(made.listing.around(level.row, ROWS, run))
                if level.row is not None:
                    made.select(level.row.key)
            return levels

    def _again(self, run: Run) -> list[Level]:
        if not any(isinstance(level.source, Pages) for level in self.levels):
            if not self.level.rows or not self.depth:
                return self.open(run)
            row = self.level.row
            path = row.key if row is not None and isinstance(row.key, str) else self.level.path
            return self.reach(path, run=run)
        position, index = 0, None
        for level in self.levels[: self.depth + 1]:
            row = level.row
            if row is not None and row.type in ("batch", "region"):
                position = row.item.position
            elif row is not None and row.type == "record":
                index = row.item.index
        return self.reach(self.level.path, position=position, index=index, run=run)

    def reach(
        self, path: str, *, position: int | None = None, offset: int | None = None, index: int | None = None, run: Run
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
                        level.put(level.listing.head(ROWS, run))
                        return levels
                    raise NotFound(f"{path}: no longer exists")
                part = level.listing.head(len(rows), run)
                level.put(part, number)
                if os.path.abspath(rows[number].key) == requested and position is None and offset is None:
                    return levels
                inside = self.places.into(rows[number], level)
                if inside is None:
                    return levels
                levels.append(inside)
            self._inside(levels, position, offset, index, run)
            return levels

    def _inside(
        self, levels: list[Level], position: int | None, offset: int | None, index: int | None, run: Run
    ) -> None:
        """Extend `levels` within a file, down to the requested position, offset or index."""
        level = levels[-1]
        listing = level.listing
        if isinstance(listing, CountedListing):
            part = listing.head(ROWS, run)
            number = 0
            while position is not None:
                before_it = [n for n, row in enumerate(part.rows) if getattr(row.item, "position", 0) <= position]
                number = before_it[-1] if before_it else 0
                if part.last or not part.rows or (before_it and before_it[-1] < len(part.rows) - 1):
                    break
                part = listing.after(part.rows[-1], ROWS, run)
            level.put(part, number)
            return
        assert isinstance(listing, Pages)
        if position is None and offset is None:
            level.put(listing.head(ROWS, run))
            return
        if position is None:
            assert level.file is not None
            position = self._position_of(level.file.target, Selection(offsets=Range(offset, None)), run)
            if position is None:
                raise NotFound(f"offset {offset} is after the last offset of {os.path.basename(level.path)}")
        level.put(listing.at(position, ROWS, run))
        level.cursor = sum(row.item.position <= position for row in level.rows) - 1 if level.rows else 0
        level.cursor = max(0, level.cursor)
        row = level.row
        if row is None or row.type != "batch" or (offset is None and (index is None or row.key != position)):
            return
        records = self.places.into(row, level)
        assert records is not None
        assert isinstance(records.listing, CountedListing)
        for number, item in enumerate(records.listing.items(run)):
            if isinstance(item, Record) and (
                item.index == index if index is not None else (item.offset or 0) >= (offset or 0)
            ):
                before = min(number, ROWS // 2)
                levels.append(records.put(records.listing.part(number - before, ROWS, run), before))
                return

    def _position_of(self, target: Target, selection: Selection, run: Run) -> int | None:
        """Return the position of the first batch that matches `selection`; None if there is none."""
        window = open_window(target)
        with closing(window.source):
            scan = RegionScan(selection, self.places.limits)
            scan.run = run
            return next((region.position for region in scan.chosen(target, window) if isinstance(region, Batch)), None)

    def directory(self) -> str | None:
        """Return the directory of the selected partition, or of the one that contains the current level; None if there
        is none."""
        row = self.level.row
        if row is not None and row.type == "partition":
            return str(row.key)
        inside = (level.path for level in reversed(self.levels[: self.depth + 1]) if level.is_partition)
        return next(inside, None)

    def segments(self) -> list[Target]:
        """Return the segments that a search covers: those of the current partition, or else the open file."""
        directory = self.directory()
        if directory is None:
            file = self.level.file
            return [file.target] if file is not None and file.kind in BATCHES else []
        logs = [segment.log for segment in partition(directory).segments if segment.log is not None]
        here = self.level.file
        if here is not None and here.target.path not in [target.path for target in logs] and here.kind in BATCHES:
            return [here.target]  # a snapshot, or a segment that is being deleted
        return logs

    def sort(self, depth: int, order: SortOrder | None, run: Run) -> list[Level]:
        """Return the levels down to the one at `depth`, sorted; in the order of the file if `order` is None. Reads all
        rows. Raises SourceError."""
        with self.lock:
            level = self.levels[depth]
            row, listing = level.row, level.source
            if level.file is None:
                self.places.orders.pop(level.path, None)
                if order is not None:
                    self.places.orders[level.path] = order
            if order is not None:
                made = level.sorted(order, run)
                return [*self.levels[:depth], made.put(made.listing.head(ROWS, run))]
            made = replace(level, listing=listing, order=None, unsorted=None)
            if isinstance(listing, Pages) and row is not None and row.type in ("batch", "region"):
                made.put(listing.at(row.key, ROWS, run))
            elif isinstance(listing, CountedListing) and row is not None and isinstance(row.key, int):
                made.put(listing.part(max(0, row.key - ROWS // 2), ROWS, run))
            elif isinstance(listing, FullListing):
                made.put(listing.head(len(listing.rows), run))
            else:
                made.put(listing.head(ROWS, run))
            if row is not None:
                made.select(row.key)
            return [*self.levels[:depth], made]

    def to_offset(self, offset: int, run: Run) -> list[Level]:
        """Go to the record with that offset, or the next one. Raises SourceError and NotFound."""
        segments = self.segments()
        if not segments:
            raise NotFound("no partition is selected; select one to go to an offset")
        chosen = [target for target in segments if (target.name_offset or 0) <= offset] or segments[:1]
        for target in segments[segments.index(chosen[-1]) :]:  # segments may be empty, or end below the offset
            try:
                return self.reach(target.path, offset=offset, run=run)
            except NotFound as error:
                reason = error
        raise reason

    def to_position(self, position: int, run: Run) -> list[Level]:
        """Go to the batch or entry at a byte position of the file. Raises SourceError and NotFound."""
        file = self.level.file
        row = self.level.row
        path = file.target.path if file is not None else row.key if row is not None and row.type == "file" else None
        if path is None:
            raise NotFound("no file is selected; select one to go to a position")
        size = file_system.getsize(path) if "://" not in path else position + 1
        if position >= size:
            raise NotFound(f"position {position} is after the end of the file ({plain_count(size, 'byte')})")
        return self.reach(path, position=position, run=run)

    def to_time(self, time: int, run: Run) -> list[Level]:
        """Go to the first record whose timestamp is not below `time` (epoch ms). Raises SourceError and NotFound."""
        segments = self.segments()
        if not segments:
            raise NotFound("no partition is selected; select one to go to a time")
        selection = Selection(times=Range(time, None))
        gaps = SearchCoverage(selection, matched=True)
        for target in segments:
            newest = last_entry(target, TIME_INDEX) if target is not segments[-1] else None
            if newest is not None and newest.timestamp < time:
                continue
            record = next(self._hits(target, selection, None, gaps, run), None)
            if record is not None:
                return self.reach(target.path, position=record.batch.position, index=record.index, run=run)
        raise NotFound(_not_found(gaps, "all records here are older than that"))

    def search(self, regex: str, run: Run) -> list[Level]:
        """Go to the next record whose key, value or a header matches the regular expression, or, in a list of
        directories or files, to the next matching row. Raises SourceError and NotFound."""
        level = self.level
        try:
            pattern = re.compile(regex.encode("utf-8", "surrogateescape"), re.DOTALL)
        except re.error as error:
            raise NotFound(f"{regex!r} is not a regular expression: {error}") from None
        if isinstance(level.listing, FullListing):
            return self._search_rows(level, level.listing.rows, re.compile(regex, re.IGNORECASE))
        segments = self.segments()
        if not segments:
            raise NotFound("nothing to search here; select a partition or segment first")
        here = next((n for n, target in enumerate(segments) if target.path == level.path), 0)
        selection = self.places.selection
        gaps = SearchCoverage(selection, matched=True)
        for target in segments[here:]:
            after = self._search_start() if target.path == level.path else None
            for record in self._hits(target, selection, after, gaps, run):
                if _matches(pattern, record):
                    return self.reach(target.path, position=record.batch.position, index=record.index, run=run)
        filtered = "" if selection.is_all else " and the filter"
        raise NotFound(_not_found(gaps, f"no record from here on matches {regex!r}{filtered}"))

    def _search_start(self) -> tuple[int, int]:
        """Return the batch position and the record index after which a search starts."""
        row = self.level.row
        if row is None:
            return 0, -1
        if row.type == "record":
            return row.item.batch.position, row.item.index
        return getattr(row.item, "position", 0), -1

    def _search_rows(self, level: Level, rows: list[BrowseRow], pattern: re.Pattern[str]) -> list[Level]:
        here = rows.index(level.row) if level.row in rows else -1
        for step in range(1, len(rows) + 1):
            number = (here + step) % len(rows)
            if any(pattern.search(cell) for cell in (*rows[number].cells, rows[number].text)):
                level.put(ListingSlice(rows, True, True), number)
                return self.levels[: self.depth + 1]
        raise NotFound(f"no row matches {pattern.pattern!r}")

    def _hits(
        self, target: Target, selection: Selection, after: tuple[int, int] | None, gaps: SearchCoverage, run: Run
    ) -> Iterator[Record]:
        """Yield the matching records of a segment that follow `after` (batch position, record index; None: all). What
        could not be read is added to `gaps`."""
        scan = RegionScan(selection, self.places.limits)
        scan.run = run
        try:
            window = open_window(target)
            with closing(window.source):
                for region in scan.chosen(target, window, after[0] if after else None):
                    if isinstance(region, Batch) and region.lacks:
                        gaps.absent += 1
                        continue
                    if isinstance(region, Batch):
                        reading = scan.reading(region)
                        for record in selection.records(reading):
                            if after is None or (region.position, record.index) > after:
                                yield record
                        gaps.batch(short_name(target.path), reading, 1)
                    else:
                        gaps.region(region)
                problem = read_problem(window.source)
        except SourceError as error:
            problem = str(error)
        if problem:
            gaps.unread.append(problem)
        gaps.omitted(scan)


def _not_found(coverage: SearchCoverage, result: str) -> str:
    """Return the sentence for a search without a match, after what it did not cover."""
    gaps = coverage.gaps()
    return f"NOT SEARCHED: {'; '.join(gaps)}; {result} in the rest" if gaps else result


def _matches(pattern: re.Pattern[bytes], record: Record) -> bool:
    if record.keySize > 0 and pattern.search(record.key or b""):
        return True
    if record.valueSize > 0 and pattern.search(record.value or b""):
        return True
    return any(pattern.search(key) or pattern.search(value or b"") for key, value in record.headers)


def _holds(path: str, requested: str) -> bool:
    """Return True if `requested` is `path`, or lies below it."""
    own = path.rstrip("/") if "://" in path else os.path.abspath(path)
    return requested == own or requested.startswith(own.rstrip("/") + "/")


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
    label = " › ".join(above.row.label for above in levels if above.row is not None)
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
