"""Finds the regions of a file that match a selection, reading as little as possible."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from kdump.format.number_range import Range
from kdump.io.run import PLAIN_RUN, Limits, Run
from kdump.io.source import BYTES, FileSource
from kdump.io.window import DEFAULT_SIZE, LARGE, Window
from kdump.log.expression.terms import MAYBE, NO
from kdump.log.legacy_records import read_wrapper
from kdump.log.live_files import open_target
from kdump.log.offset_index_lookup import begins_batch, open_index_lookup
from kdump.log.paths import Target
from kdump.log.reading import Reading
from kdump.log.region import PADDING, Batch, BatchRun, LegacyRecordBatch, Region
from kdump.log.region_reader import Depth, Reader, regions
from kdump.log.selection import Selection
from kdump.log.start_position import start_position

OTHERS = 100
"""Number of regions that are not batch runs after which a file is not expected to have any."""


@dataclass
class RegionScan:
    """How files are read, and counts of what was read. `by_record`: rows are records, so that a batch that may contain
    a match is yielded without decoding it."""

    selection: Selection
    limits: Limits
    by_record: bool = False
    window_size: int = DEFAULT_SIZE
    use_index: bool = True
    unshown: int = 0
    """Torn, junk and padding regions that a filter has omitted."""
    unshown_bytes: int = 0
    zeros: int = 0
    zero_bytes: int = 0
    """Those of them that contain only zeros."""
    batches: int = 0
    """Number of batches read, matching or not."""
    lowest: int | None = None
    highest: int | None = None
    """Lowest and highest offset of those batches."""
    keeps: bool = False
    """Whether the caller keeps batches for later: those of a batch run would keep its buffer in memory."""
    whole_runs: bool = False
    """Whether a batch run may be yielded whole because the caller examines its batches."""
    run: Run = PLAIN_RUN
    """Is told the position of every region, matching or not, to show the progress of a search without matches."""
    _read: Reading[Batch] | None = None

    def open(self, target: Target, *, keep: bool = False) -> Window:
        """Open a window over the file. `keep`: all of a stream may be read again. Raises SourceError."""
        source = open_target(target)
        source.keep = keep
        window = Window(source, self.window_size)
        window.is_nameless = target.kind is None
        return window

    def chosen(
        self, target: Target, window: Window, start: int | None = None, stream: Iterator[Region] | None = None
    ) -> Iterator[Region]:
        """Yield the matching regions of the file, or of `stream`.

        Damage has no offset: with an offset range it is yielded if the offsets around it leave room for one in the
        range; under other conditions it is only counted."""
        offsets, positions = self.selection.offsets, self.selection.positions
        pending: list[Region] = []
        last = None if start else -1
        beyond = 0
        if start is None:
            start = start_position(self.selection, target, window) if self.use_index else 0
            last = None if start else -1
        if stream is None:
            depth = Depth.BATCHES if self.keeps else Depth.CHECKSUMS if self.selection.meets_all else Depth.PAYLOADS
            stream = regions(window, name_offset=target.name_offset, start=start, limits=self.limits, depth=depth)
        by_place = offsets is not None or positions is not None
        for region in self._split_runs(window, stream, offsets, positions, pending):
            self._reached(region)
            if isinstance(region, BatchRun):
                last = region.run.last_offset
                if not by_place:
                    yield region
                continue
            self.run.at(region.position, window.source.size)
            if positions and positions.last is not None and region.position > positions.last:
                return
            if not isinstance(region, Batch):
                if self.selection.is_all or (positions and self.selection == Selection(positions=positions)):
                    if positions is None or positions.meets(region.position, region.end - 1):
                        yield region
                elif offsets:
                    pending.append(region)
                else:
                    self._leave_out(region)
                continue
            self.batches += 1
            if offsets:
                first = region.lastOffset if region.baseOffset is None else region.baseOffset
                yield from self._gaps(pending, (first if last is None else last) + 1, max(first - 1, 0))
                last = region.lastOffset
                # Checksums do not cover base offsets, so a single one beyond the range may be wrong; two in a row end
                # the range.
                beyond = beyond + 1 if offsets.last is not None and first > offsets.last else 0
                if beyond == 2:
                    return
            answer = self.selection.batch(region)
            if region.size >= LARGE:
                window.seek_headers(LARGE if answer == NO else 0)
            if answer != NO and (self.by_record or answer != MAYBE or self._may_match(region)):
                if isinstance(region, LegacyRecordBatch):
                    read_wrapper(region)
                yield region
        if offsets and (offsets.last is None or last is None or last < offsets.last):
            yield from pending

    def _may_match(self, batch: Batch) -> bool:
        self._read = Reading(batch)
        return self.selection.may_match(self._read)

    def reading(self, batch: Batch) -> Reading[Batch]:
        """Return a reading of a batch that was yielded: of the last one, with what choosing it has found."""
        reading = self._read if self._read is not None and self._read.batch is batch else Reading(batch)
        if isinstance(batch, LegacyRecordBatch):
            read_wrapper(reading)
        return reading

    def _gaps(self, pending: list[Region], first: int, last: int) -> Iterator[Region]:
        """Yield the pending damage if the offsets first..last, which it may have, meet the range; clear the list."""
        assert self.selection.offsets is not None
        if self.selection.offsets.meets(first, last):
            yield from pending
        else:
            for gap in pending:
                self._leave_out(gap)
        pending.clear()

    def _split_runs(
        self,
        window: Window,
        stream: Iterator[Region],
        offsets: Range | None,
        positions: Range | None,
        pending: list[Region],
    ) -> Iterator[Region]:
        """Yield the regions, splitting batch runs into batches, unless the caller accepts whole runs or the run is
        entirely below the selected offsets. Omits runs that are easily seen not to match."""
        for region in stream:
            if not isinstance(region, BatchRun):
                yield region
                continue
            if offsets is None and positions is None and self._is_skipped(window, region):
                self.batches += region.run.batches
                self.run.at(region.position, window.source.size)
                continue
            below = offsets is not None and offsets.first is not None and region.run.last_offset < offsets.first
            if (below and not pending) or (self.whole_runs and offsets is None and positions is None):
                self.run.at(region.position, window.source.size)
                self.batches += region.run.batches
                yield region
            else:
                yield from region.batches()

    def _reached(self, region: Region) -> None:
        if isinstance(region, BatchRun):
            first = int.from_bytes(region.buffer[region.start : region.start + 8], "big")
            last: int | None = region.run.last_offset
        elif isinstance(region, Batch):
            last = region.lastOffset
            first = last if region.baseOffset is None else region.baseOffset
        else:
            return
        self.lowest = first if self.lowest is None else min(first, self.lowest)
        if last is not None:
            self.highest = last if self.highest is None else max(last, self.highest)

    def _is_skipped(self, window: Window, run: BatchRun) -> bool:
        """Return True if the headers of a run of large batches show that none of them matches."""
        if run.checked or run.size < LARGE * run.run.batches:
            return False
        has_selected = any(self.selection.batch(batch) != NO for batch in run.batches())
        window.seek_headers(0 if has_selected else LARGE)
        return not has_selected

    def _leave_out(self, region: Region) -> None:
        self.unshown += 1
        self.unshown_bytes += region.size
        if region.kind == PADDING:
            self.zeros += 1
            self.zero_bytes += region.size

    def last(self, target: Target, window: Window, count: int) -> list[tuple[Region, int]]:
        """Return the regions that contain the last `count` rows of the file, each with its number of rows; the first
        may have more than needed. Starts near the end, and further back until there are enough. Without an index that
        leads there, the headers of the whole file are read first."""
        hints = open_index_lookup(target.path, target.name_offset) if self.use_index else None
        entry = len(hints) if hints and isinstance(window.source, FileSource) else 0
        back = count + 1
        self.keeps = True
        while True:
            start = 0
            entry = max(0, entry - back)
            if hints and entry > 0:
                if not begins_batch(window, hints.positions[entry], hints.offsets[entry], target.name_offset):
                    continue
                start = hints.positions[entry]
            elif self.selection.is_all and BYTES not in window.source.lacks:
                start = self._near_end(target, window, back)
            rows_of_regions: deque[tuple[Region, int]] = deque()
            total = 0
            for region in self.chosen(target, window, start):
                rows = self._rows(region)
                total += rows
                if rows or not isinstance(region, Batch):
                    rows_of_regions.append((region, rows))
                while rows_of_regions and total - rows_of_regions[0][1] >= count:
                    total -= rows_of_regions.popleft()[1]
            if total >= count or start == 0:
                return list(rows_of_regions)
            back *= 4

    def _near_end(self, target: Target, window: Window, count: int) -> int:
        """Return the position of a batch run after which at least `count` rows follow, according to the headers; 0 if
        there is none."""
        reader = Reader(window, target.name_offset, self.limits, Depth.PAYLOADS)
        runs: deque[tuple[int, int]] = deque()  # position, and rows up to the next run
        total = others = 0
        before = Region("", -1, 0)
        for region in reader.regions(0):
            self.run.at(region.position, window.source.size)
            others += not isinstance(region, BatchRun)
            if others > OTHERS and not runs:  # an old format, which is not read in runs
                return 0
            if isinstance(region, BatchRun):
                is_long = region.run.batches > 1
                # Two batches in order are enough to recognize damage after them.
                if is_long or (isinstance(before, BatchRun) and before.end == region.position):
                    rows = region.run.records if self.by_record else region.run.batches
                    runs.append((region.position if is_long else before.position, rows))
                    total += rows
                while runs and total - runs[0][1] >= count:
                    total -= runs.popleft()[1]
            before = region
        is_renamed = reader.name_offset != target.name_offset  # only a reader from the beginning on knows that
        return 0 if is_renamed or total < count else runs[0][0]

    def _rows(self, region: Region) -> int:
        if not isinstance(region, Batch):
            return 0
        if not self.by_record:
            return 1
        return sum(1 for _ in self.selection.records(region))
