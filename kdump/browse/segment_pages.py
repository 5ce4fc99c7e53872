"""Batches of a segment, and the bytes between them, read in parts from any position.

The rows are the same as in a scan from the beginning: a scan leaves marks from which it can resume (they contain what
the reader knew of offsets there). Only where no mark is near does the index provide the start of a batch."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

from kdump.browse.listings import BrowseRow, ListingSlice, LongListing, OpenFile
from kdump.format.batch_header import BatchHeader
from kdump.io.run import PLAIN_RUN, Limits, Run
from kdump.io.source import BYTES, FileSource
from kdump.io.window import BufferWindow
from kdump.log.offset_index_lookup import IndexLookup, begins_batch, open_index_lookup
from kdump.log.region import Batch, DefaultRecordBatch, Region
from kdump.log.region_reader import Depth, Reader, regions
from kdump.log.region_scan import RegionScan
from kdump.log.selection import Selection
from kdump.log.start_position import start_position
from kdump.render.table import Column

EACH = 32
"""Regions from one mark to the next."""
MARKS = 4096
"""Maximum number of marks; beyond it, every second one is dropped."""
NEAR = 8 * 1024 * 1024
"""Bytes that are read from a mark onward in preference to using the index."""


class RegionMark(NamedTuple):
    """A position where a region ends, and the state of the reader there."""

    position: int
    latest: int | None = None
    last_good: int | None = None
    contradicting_offset: int | None = None
    knows_name: bool = True

    @classmethod
    def of(cls, position: int, reader: Reader, name: int | None) -> RegionMark:
        return cls(position, reader.latest, reader.last_good, reader.contradicting_offset, reader.name_offset == name)


class Pages(LongListing):
    """The rows of a segment that match `selection`. `row` builds the row of a region."""

    def __init__(
        self,
        file: OpenFile,
        selection: Selection,
        limits: Limits,
        columns: list[Column],
        row: Callable[[Region], BrowseRow],
    ) -> None:
        self.file, self.selection, self.limits, self.columns, self._row = file, selection, limits, columns, row
        self._marks = [RegionMark(0)]
        self._hints: IndexLookup | None = None
        self._stream: Iterator[Region] | None = None
        self._at = -1
        """Key of the last row that `_stream` has yielded."""
        self._run = PLAIN_RUN

    def head(self, count: int, run: Run) -> ListingSlice:
        return self._take(self._from_start(run), count, first=True)

    def _from_start(self, run: Run) -> Iterator[Region]:
        start = 0
        if not self.selection.is_all:
            start = start_position(self.selection, self.file.target, self.file.window)
        return self._begin(RegionMark(start), run)

    def each(self, run: Run) -> Iterator[tuple[int, Region]]:
        """Yield the keys and items of all rows."""
        for region in self._from_start(run):
            yield region.position, self._kept(region)

    def may_keep(self, region: Region) -> bool:
        """Return True if a region is small, so that thousands of them may be kept: one without its bytes."""
        is_light = isinstance(region, DefaultRecordBatch) or not isinstance(region, Batch)
        return is_light and BYTES not in self.file.window.source.lacks

    def row_of(self, key: int, region: Region) -> BrowseRow:
        return self._row(region)

    def rows_at(self, keys: list[int], run: Run) -> dict[int, BrowseRow]:
        """Return the rows with these keys, by key."""
        rows = {}
        lacks_bytes = BYTES in self.file.window.source.lacks
        for key in keys:
            stream = self._begin(RegionMark(key) if lacks_bytes else self._anchor(key + 1), run)
            region = next((following for following in stream if following.position >= key), None)
            if region is not None and region.position == key:
                rows[key] = self._row(self._kept(region))
        return rows

    def after(self, row: BrowseRow, count: int, run: Run) -> ListingSlice:
        if self._stream is not None and self._at == row.key:
            stream, self._stream, self._run = self._stream, None, run
        else:
            stream = self._after(row.key, run)
        return self._take(stream, count, first=False)

    def before(self, row: BrowseRow, count: int, run: Run) -> ListingSlice:
        return self._back(row.key, count, run, last=False)

    def tail(self, count: int, run: Run) -> ListingSlice:
        size = self.file.size
        if size is None:  # a compressed file
            self.file.window.reaches(1 << 62)
            size = self.file.size or 0
        return self._back(size, count, run, last=True)

    def at(self, position: int, count: int, run: Run) -> ListingSlice:
        """Return the rows around `position`: up to `count` that begin before it, and up to `count` after those."""
        back = self._back(position, count, run, last=False)
        held = back.rows[-1] if back.rows and back.rows[-1].item.end > position else None
        if held is not None:
            on = self.after(held, count, run)
        elif back.rows:
            on = self.after(back.rows[-1], count, run)
        else:
            on = self.head(count, run)
        return ListingSlice([*back.rows, *on.rows], back.first, on.last)

    def _scan(self) -> RegionScan:
        scan = RegionScan(self.selection, self.limits)
        scan.run = Run(at=lambda position, size: self._run.at(position, size))
        return scan

    def _begin(self, mark: RegionMark, run: Run) -> Iterator[Region]:
        """Return the matching regions from a mark onward."""
        self._run = run
        window, target = self.file.window, self.file.target
        if BYTES in window.source.lacks:
            stream = regions(window, start=mark.position, limits=self.limits)
            return self._scan().chosen(target, window, mark.position, stream)
        reader = Reader(
            window, target.name_offset, self.limits, Depth.BATCHES if self.selection.is_all else Depth.PAYLOADS
        )
        reader.latest, reader.last_good, reader.contradicting_offset = (
            mark.latest,
            mark.last_good,
            mark.contradicting_offset,
        )
        if not mark.knows_name:
            reader.name_offset = None
            reader.resync.forget_name()
        return self._scan().chosen(target, window, mark.position, self._marked(reader, mark.position))

    def _marked(self, reader: Reader, position: int) -> Iterator[Region]:
        name = self.file.target.name_offset
        for batches, region in enumerate(reader.regions(position), 1):
            yield region
            if batches % EACH == 0 and region.kind != "padding":
                self._mark(RegionMark.of(region.end, reader, name))

    def _mark(self, mark: RegionMark) -> None:
        place = bisect_left(self._marks, mark.position, key=lambda each: each.position)
        if place < len(self._marks) and self._marks[place].position == mark.position:
            return
        self._marks.insert(place, mark)
        if len(self._marks) > MARKS:
            del self._marks[1::2]

    def _take(self, stream: Iterator[Region], count: int, *, first: bool) -> ListingSlice:
        rows = [self._row(self._kept(region)) for region in islice(stream, count)]
        more = next(stream, None) if len(rows) == count else None
        self._stream = None
        if more is not None:
            self._stream, self._at = chain((more,), stream), rows[-1].key
        return ListingSlice(rows, first, more is None)

    def _after(self, position: int, run: Run) -> Iterator[Region]:
        """Yield the matching regions that begin after `position`."""
        for region in self._begin(self._anchor(position), run):
            if region.position > position:
                yield region

    def _back(self, stop: int, count: int, run: Run, *, last: bool) -> ListingSlice:
        """Return the `count` rows that begin before `stop`; `last`: `stop` is the end of the file. Starts farther and
        farther back until there are enough."""
        below, reach = stop, 0
        while True:
            anchor = self._anchor(below, reach)
            regions: deque[Region] = deque(maxlen=count)
            enough = False
            for region in self._begin(anchor, run):
                if region.position >= stop:
                    break
                enough = len(regions) == count
                regions.append(self._kept(region))
            if len(regions) == count or anchor.position == 0:
                first = anchor.position == 0 and not enough
                return ListingSlice([self._row(region) for region in regions], first, last)
            below, reach = anchor.position, 4 * reach + count

    def _anchor(self, position: int, back: int = 0) -> RegionMark:
        """Return where to start in order to reach `position`: a mark before it, or, if that is far, a batch from the
        index. `back`: start about this many regions, or index entries, earlier."""
        place = max(1, bisect_left(self._marks, position, key=lambda each: each.position) - back // EACH)
        mark = self._marks[place - 1]
        if position - mark.position <= NEAR or not isinstance(self.file.window.source, FileSource):
            return mark
        if self._hints is None:
            self._hints = open_index_lookup(self.file.target.path, self.file.target.name_offset)
        entry = bisect_right(self._hints.positions, position - 1) - back
        while entry > 0:
            entry -= 1
            hint = self._hints.positions[entry]
            if hint <= mark.position:
                break
            if begins_batch(self.file.window, hint, self._hints.offsets[entry], self.file.target.name_offset):
                return RegionMark(hint)
        return mark

    def _kept(self, region: Region) -> Region:
        """Return the same region without the buffer that it was read in."""
        if BYTES in self.file.window.source.lacks:
            return _alone(region)
        if isinstance(region, DefaultRecordBatch) and isinstance(region.window, BufferWindow):
            return DefaultRecordBatch(self.file.window, region.position, region.size, self.limits, region.header)
        return region


def _alone(region: Region) -> Region:
    """Return a batch with a copy of its bytes, without those of the batches around it."""
    if type(region) is not DefaultRecordBatch or not isinstance(region.window, BufferWindow):
        return region
    data = b"".join(region.window.chunks(region.position, region.size))
    window: Any = BufferWindow(data, region.position)
    batch = DefaultRecordBatch(window, region.position, region.size, region.limits, region.header)
    batch._computed, batch.known = region._computed, region.known
    return batch


def is_unchecked(batch: Batch) -> bool:
    """Return True if the batch's checksum has not been computed yet."""
    return batch._computed is None


def as_if_valid(batch: Batch) -> Batch:
    """Return a copy treated as valid, for rows drawn before the checksum is computed."""
    if isinstance(batch, DefaultRecordBatch) and isinstance(batch.header, BatchHeader):
        twin = DefaultRecordBatch(batch.window, batch.position, batch.size, batch.limits, batch.header)
        twin._computed = batch.crc
        return twin
    return batch
