"""A histogram of time from the headers of batches: records and bytes per time bin, and where each bin begins.

A batch counts in the bin of its maxTimestamp. Only headers are read, and memory is bounded: if there are more than
MAX_BINS bins with batches, bins are made wider.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone, tzinfo
from itertools import pairwise
from threading import Lock
from typing import NamedTuple

from kdump.browse.scopes import ScopePart
from kdump.core.column_numbers import BATCH_END, BATCH_START, MAX_TIMESTAMP, RECORD_COUNT
from kdump.forensics.histograms import Histogram, of_time
from kdump.log.partition_reader import PartitionReader
from kdump.log.region import PADDING, Batch, BatchRun, Region
from kdump.log.region_reader import HEADERS
from kdump.log.run import Run
from kdump.state.partition_summary import open_window

MAX_BINS = 4096
"""Maximum number of bins with batches."""
WIDEST_STEP = 12
"""Step of the widest bins that are shown: 2,700 years."""


class Bin(NamedTuple):
    """A time bin of `width` ms from `start` (epoch ms) on. `path` and `position`: its first batch, in the order of
    partitions, segments and bytes."""

    start: int
    width: int
    records: int
    bytes: int
    batches: int
    path: str
    position: int


class TimeBins(Histogram):
    """Counts by time, from one thread, while another one takes snapshots: by number of the bin, the records, bytes and
    batches, and the number of the file and the position of the first batch. `shift`: ms to add to a time, so that bins
    begin at full hours and days of the time zone."""

    def __init__(self, zone: tzinfo) -> None:
        super().__init__(max_buckets=MAX_BINS)
        self.zone = zone
        self.shift: int | None = None
        self._paths: list[str] = []
        self._lock = Lock()
        self.batches = self.records = self.bytes = 0
        self.untimed = 0
        """Batches without a timestamp."""
        self.uncounted = 0
        """Compressed messages of magic 0 or 1, whose records are not known from the header."""
        self.others = 0
        """Bytes that belong to no batch."""
        self.unread: list[str] = []
        """Why something could not be read."""

    def begin(self, path: str) -> None:
        """State that the following batches are in this file."""
        with self._lock:
            self._paths.append(path)

    def add_run(self, run: BatchRun) -> None:
        """Count the batches of a run."""
        headers, shift = run.headers, run.position - run.start
        times, counts = headers.column(MAX_TIMESTAMP), headers.column(RECORD_COUNT)
        starts, ends = headers.column(BATCH_START), headers.column(BATCH_END)
        with self._lock:
            for time, count, start, end in zip(times, counts, starts, ends):
                self._count(time, count, end - start, start + shift)

    def add_region(self, region: Region) -> None:
        """Count a batch, or bytes that are none."""
        with self._lock:
            if isinstance(region, Batch):
                self.uncounted += region.recordCount is None
                time = region.maxTimestamp
                self._count(-1 if time is None else time, region.possible_records, region.size, region.position)
            elif region.kind != PADDING:
                self.others += region.size

    def _count(self, time: int, records: int, size: int, position: int) -> None:
        self.batches += 1
        self.records += records
        self.bytes += size
        if time < 0:
            self.untimed += 1
            return
        if self.shift is None:
            self.shift = _shift(time, self.zone)
        self.add(time + self.shift, records, size, 1, len(self._paths) - 1, position)

    def join(self, held: list[int], others: Sequence[int]) -> None:
        size, batches, *first = others
        held[1:] = held[1] + size, held[2] + batches, *min(held[3:], first)

    def snapshot(self, step: int) -> list[Bin]:
        """Return the bins so far in order of time, at least as wide as those of `step`."""
        with self._lock:
            step = max(step, self.step)
            width, shift = of_time(step), self.shift or 0
            return [
                Bin(number * width - shift, width, records, size, batches, self._paths[file], position)
                for number, (records, size, batches, file, position) in sorted(self.at_step(step).items())
            ]

    def fitting_step(self, lines: int) -> int:
        """Return the smallest step with which the bins, and the gaps between them, take at most `lines` lines."""
        with self._lock:
            step = self.step
            while step < WIDEST_STEP:
                factor = of_time(step) // self.width
                numbers = sorted({number // factor for number in self.counts})
                gaps = sum(later - earlier > 1 for earlier, later in pairwise(numbers))
                if len(numbers) + gaps <= lines:
                    break
                step += 1
            return step


def _shift(time: int, zone: tzinfo) -> int:
    """Return the offset of the time zone from UTC at a time, in ms; 0 if the time is beyond the calendar."""
    try:
        offset = datetime.fromtimestamp(time / 1000, timezone.utc).astimezone(zone).utcoffset()
    except (OverflowError, ValueError, OSError):
        offset = None
    return int((offset or timedelta()).total_seconds() * 1000)


def read_times(parts: list[ScopePart], bins: TimeBins, run: Run) -> None:
    """Count all batches of these partitions. Raises Cancelled from `run.more`."""
    noting = replace(run, unreadable=lambda error: bins.unread.append(str(error)))
    reader = PartitionReader(open_window, noting, run_mode=HEADERS)
    for part in parts:
        for target in part.segments:
            run.more(0)
            bins.begin(target.path)
            for region in reader.segment(target):
                if isinstance(region, BatchRun):
                    bins.add_run(region)
                else:
                    bins.add_region(region)
                run.more(region.size)
