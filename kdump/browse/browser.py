"""Navigation to an offset, a byte position or a time, search, and sorting."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

from kdump.browse.level import Level
from kdump.browse.level_stack import ROWS, Levels, NotFound
from kdump.browse.row_listings import BrowseRow, CountedListing, FullListing, ListingSlice, OnProgress
from kdump.browse.segment_pages import Pages
from kdump.browse.sorting import SortedListing, SortOrder, sorted_listing
from kdump.log import file_system
from kdump.log.errors import SourceError
from kdump.log.fault_tolerant import read_problem
from kdump.log.file_kinds import BATCHES, TIME_INDEX
from kdump.log.offset_index_lookup import last_entry
from kdump.log.partition_directory import partition
from kdump.log.paths import Target, short_name
from kdump.log.record import Record
from kdump.log.region import Batch
from kdump.log.region_scan import RegionScan
from kdump.log.search_coverage import SearchCoverage
from kdump.log.selection import Range, Selection
from kdump.state.partition_summary import open_window


class Browser(Levels):
    """Adds navigation, search and sorting to Levels. The methods return the levels down to the new place."""

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
        found = [segment.log for segment in partition(directory).segments if segment.log is not None]
        here = self.level.file
        if here is not None and here.target.path not in [target.path for target in found] and here.kind in BATCHES:
            return [here.target]  # a snapshot, or a segment that is being deleted
        return found

    def sort(self, depth: int, order: SortOrder | None, on_progress: OnProgress) -> list[Level]:
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
                found = sorted_listing(listing, order, on_progress)
                made = replace(level, listing=found, order=order, unsorted=listing)
                return [*self.levels[:depth], made.put(found.head(ROWS, on_progress))]
            made = replace(level, listing=listing, order=None, unsorted=None)
            if isinstance(listing, Pages) and row is not None and row.type in ("batch", "region"):
                made.put(listing.at(row.key, ROWS, on_progress))
            elif isinstance(listing, CountedListing) and row is not None and isinstance(row.key, int):
                made.put(listing.from_number(max(0, row.key - ROWS // 2), ROWS, on_progress))
            elif isinstance(listing, FullListing):
                made.put(listing.head(len(listing.rows), on_progress))
            else:
                made.put(listing.head(ROWS, on_progress))
            if row is not None:
                made.select(row.key)
            return [*self.levels[:depth], made]

    def again(self, on_progress: OnProgress) -> list[Level]:
        """Read the current place again, because the filter has changed or a broker may have written; a sorted table is
        sorted again. Raises SourceError and NotFound."""
        with self.lock:
            before = self.level
            levels = super().again(on_progress)
            level = levels[-1]
            names = [column.name for column in level.listing.columns]
            if before.order is None or level.order is not None or len(levels) != self.depth + 1:
                return levels
            if before.order.column in names and isinstance(level.listing, (Pages, CountedListing)):
                found = sorted_listing(level.listing, before.order, on_progress)
                assert isinstance(found, SortedListing)
                made = replace(level, listing=found, order=before.order, unsorted=level.listing)
                levels[-1] = made.put(found.around(level.row, ROWS, on_progress))
                if level.row is not None:
                    made.select(level.row.key)
            return levels

    def to_offset(self, offset: int, on_progress: OnProgress) -> list[Level]:
        """Go to the record with that offset, or the next one. Raises SourceError and NotFound."""
        segments = self.segments()
        if not segments:
            raise NotFound("no partition is selected; select one to go to an offset")
        chosen = [target for target in segments if (target.name_offset or 0) <= offset] or segments[:1]
        for target in segments[segments.index(chosen[-1]) :]:  # segments may be empty, or end below the offset
            try:
                return self.reach(target.path, offset=offset, on_progress=on_progress)
            except NotFound as error:
                reason = error
        raise reason

    def to_position(self, position: int, on_progress: OnProgress) -> list[Level]:
        """Go to the batch or entry at a byte position of the file. Raises SourceError and NotFound."""
        file = self.level.file
        row = self.level.row
        path = file.target.path if file is not None else row.key if row is not None and row.type == "file" else None
        if path is None:
            raise NotFound("no file is selected; select one to go to a position")
        size = file_system.getsize(path) if "://" not in path else position + 1
        if position >= size:
            raise NotFound(f"position {position} is after the end of the file ({size} bytes)")
        return self.reach(path, position=position, on_progress=on_progress)

    def to_time(self, time: int, on_progress: OnProgress) -> list[Level]:
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
            found = next(self._hits(target, selection, None, gaps, on_progress), None)
            if found is not None:
                return self.reach(
                    target.path, position=found.batch.position, index=found.index, on_progress=on_progress
                )
        raise NotFound(_not_found(gaps, "all records here are older than that"))

    def search(self, text: str, on_progress: OnProgress) -> list[Level]:
        """Go to the next record whose key, value or a header matches the regular expression, or, in a list of
        directories or files, to the next matching row. Raises SourceError and NotFound."""
        level = self.level
        try:
            pattern = re.compile(text.encode("utf-8", "surrogateescape"), re.DOTALL)
        except re.error as error:
            raise NotFound(f"{text!r} is not a regular expression: {error}") from None
        if isinstance(level.listing, FullListing):
            return self._search_rows(level, level.listing.rows, re.compile(text, re.IGNORECASE))
        segments = self.segments()
        if not segments:
            raise NotFound("nothing to search here; select a partition or segment first")
        here = next((n for n, target in enumerate(segments) if target.path == level.path), 0)
        selection = self.places.selection
        gaps = SearchCoverage(selection, matched=True)
        for target in segments[here:]:
            after = self._search_start() if target.path == level.path else None
            for record in self._hits(target, selection, after, gaps, on_progress):
                if _matches(pattern, record):
                    return self.reach(
                        target.path, position=record.batch.position, index=record.index, on_progress=on_progress
                    )
        filtered = "" if selection.is_all else " and the filter"
        raise NotFound(_not_found(gaps, f"no record from here on matches {text!r}{filtered}"))

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
        self,
        target: Target,
        selection: Selection,
        after: tuple[int, int] | None,
        gaps: SearchCoverage,
        on_progress: OnProgress,
    ) -> Iterator[Record]:
        """Yield the matching records of a segment that follow `after` (batch position, record index; None: all). What
        could not be read is added to `gaps`."""
        scan = RegionScan(selection, self.places.limits)
        scan.on_progress = on_progress
        try:
            window = open_window(target)
            with closing(window.source):
                for region in scan.chosen(target, window, after[0] if after else None):
                    if isinstance(region, Batch) and region.lacks:
                        gaps.absent += 1
                        continue
                    if isinstance(region, Batch):
                        for record in selection.records(region):
                            if after is None or (region.position, record.index) > after:
                                yield record
                        gaps.batch(short_name(target.path), region, 1)
                    else:
                        gaps.region(region)
                problem = read_problem(window.source)
        except SourceError as error:
            problem = str(error)
        if problem:
            gaps.unread.append(problem)
        gaps.omitted(scan)


def _not_found(coverage: SearchCoverage, text: str) -> str:
    """Return the sentence for a search without a match, after what it did not cover."""
    gaps = coverage.gaps()
    return f"NOT SEARCHED: {'; '.join(gaps)}; {text} in the rest" if gaps else text


def _matches(pattern: re.Pattern[bytes], record: Record) -> bool:
    if record.keySize > 0 and pattern.search(record.key or b""):
        return True
    if record.valueSize > 0 and pattern.search(record.value or b""):
        return True
    return any(pattern.search(key) or pattern.search(value or b"") for key, value in record.headers)
