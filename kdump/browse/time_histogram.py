"""A histogram of time from the headers of batches: records and bytes per time bin, and where each bin begins; and the
screen that shows it while headers are read.

A batch counts in the bin of its maxTimestamp. Only headers are read, and memory is bounded: if there are more than
MAX_BINS bins with batches, bins are made wider."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone, tzinfo
from functools import partial
from itertools import pairwise
from threading import Lock
from typing import NamedTuple

from kdump.browse.background import Job, Jobs
from kdump.browse.lines import HexLine
from kdump.browse.panes import Overlay, View
from kdump.browse.scopes import SCOPES, Here, Scope, ScopePart, scope_of
from kdump.core.column_numbers import BATCH_END, BATCH_START, MAX_TIMESTAMP, RECORD_COUNT
from kdump.format.count_text import count_text
from kdump.io.run import Limits, Run
from kdump.log.histograms import Histogram, of_time
from kdump.log.live_files import open_window
from kdump.log.region import PADDING, Batch, BatchRun, Region
from kdump.log.region_reader import Depth
from kdump.log.walk import PartitionReader, RegionObserver, observe
from kdump.render.amounts import bar, duration_text, size_text
from kdump.render.escape import printable
from kdump.render.style import cut
from kdump.render.times import iso

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


class TimeBins(Histogram, RegionObserver):
    """Counts by time, from one thread, while another one takes snapshots: by number of the bin, the records, bytes and
    batches, and the number of the file and the position of the first batch. `shift`: ms to add to a time, so that bins
    begin at full hours and days of the time zone."""

    depth = Depth.HEADERS

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

    def region(self, region: Region) -> None:
        with self._lock:
            if isinstance(region, BatchRun):
                headers, shift = region.headers, region.position - region.start
                columns = (headers.column(number) for number in (MAX_TIMESTAMP, RECORD_COUNT, BATCH_START, BATCH_END))
                for time, count, start, end in zip(*columns):
                    self._count(time, count, end - start, start + shift)
            elif isinstance(region, Batch):
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
    reader = PartitionReader(open_window, noting)
    for part in parts:
        for target in part.segments:
            run.more(0)
            bins.begin(target.path)
            observe(partial(reader.segment, target), [bins], run)


class HistogramView:
    """What is shown of the bins: records or bytes of each, of a scope, in bins as wide as those of `step`, or (None)
    just wide enough for the screen. Enter returns the selected bin, to go to its first batch."""

    def __init__(self, here: Here, scope: str, limits: Limits, zone: tzinfo, jobs: Jobs) -> None:
        self.here, self.limits, self.zone, self.jobs = here, limits, zone, jobs
        self.by_bytes = False
        self._start(scope)

    def _start(self, scope: str) -> None:
        self.scope_name = scope
        self.scope: Scope | None = None
        self.bins = TimeBins(self.zone)
        self.step: int | None = None
        self.left_out = 0
        """Directories that are being deleted or moved, or are strays; they are not counted."""
        self.job: Job | None = None

    def view(self) -> View:
        return View(
            "histogram of time",
            " Enter goes there   b bytes   + - bin width   s scope   Esc closes",
            self._fill,
            {
                "b": self._measure,
                "plus": lambda screen: self._widen(screen, 1),
                "equals_sign": lambda screen: self._widen(screen, 1),
                "minus": lambda screen: self._widen(screen, -1),
                "s": self._next_scope,
                "H": None,
            },
            lambda: None if self.job is None else (self.job.done, self.job.cancelled),
            noted=True,
            begin=self._read,
            end=lambda: self.jobs.cancel("histogram"),
        )

    def _read(self, screen: Overlay) -> None:
        bins, here, name = self.bins, self.here, self.scope_name

        def work(job: Job) -> None:
            scope = scope_of(here, name)
            job.total = scope.size
            live = [part for part in scope.parts if not part.state or len(scope.parts) == 1]
            self.left_out = len(scope.parts) - len(live)
            self.scope = scope
            read_times(live, bins, replace(job.run, limits=self.limits))

        self.job = self.jobs.start("histogram", "reading headers", work, lambda _: self._fill(screen))

    def _fill(self, screen: Overlay) -> None:
        lines_free = max(8, screen.pane.size.height or 8)
        bins = self.bins.snapshot(self.bins.fitting_step(lines_free) if self.step is None else self.step)
        pane = screen.pane
        selected = screen.answers[pane.cursor] if pane.cursor < len(screen.answers) else None
        screen.answers, lines = self._lines(bins, max(4, screen.size.width - 51))
        after = (n for n, other in enumerate(screen.answers) if selected and other and other.start >= selected.start)
        head = f" {f'time ({printable(str(self.zone))})':<20}  {'records':>12}  {'bytes':>10}"
        pane.show(lines, next(after, 0), HexLine(((head, "head"),)), keep=True)
        title = self.scope.title if self.scope is not None else self.scope_name
        unit = "bytes" if self.by_bytes else "records"
        per = f": {unit} per {duration_text(bins[0].width)}" if bins else ""
        screen.show_title(f"histogram of time, {title}{per}")
        unread = [*self.bins.unread, *(self.scope.unlisted if self.scope is not None else [])]
        is_lost = self.job is not None and self.job.cancelled and self.scope is None
        note = "nothing could be read" if is_lost else "; ".join(self._note(unread))
        screen.show_note(note, has_gaps=is_lost or bool(unread))

    def _lines(self, bins: list[Bin], width: int) -> tuple[list[Bin | None], list[HexLine]]:
        """Return a line for each bin, and for each gap between two; its bar is at most `width` wide."""
        value = [time_bin.bytes if self.by_bytes else time_bin.records for time_bin in bins]
        shown: list[Bin | None] = []
        lines: list[HexLine] = []
        for time_bin, count in zip(bins, value):
            gap = time_bin.start - shown[-1].start - time_bin.width if shown and shown[-1] is not None else 0
            if gap > 0:
                shown.append(None)
                lines.append(HexLine(((f" … {duration_text(gap)} without batches", "dim"),)))
            shown.append(time_bin)
            amounts = f" {self._time(time_bin):<20}  {time_bin.records:>12,}  {size_text(time_bin.bytes):>10}  "
            lines.append(HexLine(((amounts, ""), (bar(count, max(value), width), "name"))))
        return shown, lines

    def _time(self, time_bin: Bin) -> str:
        time = iso(time_bin.start, self.zone)
        if not time[:4].isdecimal() or time[4:5] != "-":
            return cut(time, 20)
        return time[:10] if time_bin.width >= 86_400_000 else time[:16] if time_bin.width >= 60_000 else time[:19]

    def _note(self, unread: list[str]) -> list[str]:
        bins, job = self.bins, self.job
        read = f"{count_text(bins.records, 'record')} in {count_text(bins.batches, 'batch', 'batches')}"
        percent = job.percent if job is not None else ""
        is_done = job is not None and job.cancelled
        words = [f"NOT READ: {count_text(len(unread), 'place')}"] if unread else []
        words.append(f"{read}, {size_text(bins.bytes)}" if is_done else f"reading headers …{percent}: {read}")
        if bins.untimed:
            words.append(f"{count_text(bins.untimed, 'batch has', 'batches have')} no timestamp")
        if bins.uncounted:
            words.append(f"records of {count_text(bins.uncounted, 'compressed message')} not counted")
        if bins.others:
            words.append(f"{count_text(bins.others, 'byte')} in no batch")
        if self.left_out:
            words.append(f"{count_text(self.left_out, 'directory', 'directories')} not live, not counted")
        return [*words, *unread[:1]]

    def _measure(self, screen: Overlay) -> None:
        self.by_bytes = not self.by_bytes
        self._fill(screen)

    def _widen(self, screen: Overlay, direction: int) -> None:
        width = next((time_bin.width for time_bin in screen.answers if time_bin is not None), of_time(0))
        step = next((n for n in range(WIDEST_STEP) if of_time(n) >= width), 0)
        self.step = max(self.bins.step, min(step + direction, WIDEST_STEP))
        self._fill(screen)

    def _next_scope(self, screen: Overlay) -> None:
        """Read the next larger scope that is at hand; after the largest, the smallest."""
        number = SCOPES.index(self.scope_name) + 1
        self._start(SCOPES[number] if number < len(SCOPES) else self.here.scope)
        screen.answers = []
        self._read(screen)
        self._fill(screen)
