"""The screen with the histogram of time, which grows while headers are read."""

from __future__ import annotations

from dataclasses import replace
from datetime import tzinfo
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from kdump.browse.background_jobs import Job, Jobs
from kdump.browse.hexdump_lines import HexLine
from kdump.browse.scopes import SCOPES, Here, Scope, scope_of
from kdump.browse.screens import Overlay
from kdump.browse.time_histogram import WIDEST_STEP, Bin, TimeBins, read_times
from kdump.forensics.histograms import of_time
from kdump.format.count_text import count_text
from kdump.log.run import Limits
from kdump.render.amounts import duration_text, size_text
from kdump.render.charts import bar
from kdump.render.escape import printable
from kdump.render.style import cut
from kdump.render.times import iso


class HistogramScreen(Overlay):
    """Records or bytes per time bin. Enter returns the selected bin, to go to its first batch."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("b", "measure", "records or bytes", show=False),
        Binding("plus,equals_sign", "widen(1)", "wider bins", show=False),
        Binding("minus", "widen(-1)", "narrower bins", show=False),
        Binding("s", "scope", "next scope", show=False),
        Binding("H", "leave", "close", show=False),
    ]

    noted = True

    def __init__(self, here: Here, scope: str, limits: Limits, zone: tzinfo, jobs: Jobs) -> None:
        super().__init__("histogram of time", " Enter goes there   b bytes   + - bin width   s scope   Esc closes")
        self.here = here
        self.scope_name = scope
        self.limits = limits
        self.zone = zone
        self.jobs = jobs
        self.by_bytes = False
        self.step: int | None = None
        """Chosen width of bins; None: as many as fit the screen."""
        self._start()

    def _start(self) -> None:
        self.bins = TimeBins(self.zone)
        self.scope: Scope | None = None
        self.left_out = 0
        """Directories that are being deleted or moved, or are strays; they are not counted."""
        self.job: Job | None = None

    def on_mount(self) -> None:
        super().on_mount()
        self._read()

    def on_unmount(self) -> None:
        self.jobs.cancel("histogram")

    def _read(self) -> None:
        bins, here, name = self.bins, self.here, self.scope_name

        def work(job: Job) -> None:
            scope = scope_of(here, name)
            job.total = scope.size
            live = [part for part in scope.parts if not part.state or len(scope.parts) == 1]
            self.left_out = len(scope.parts) - len(live)
            self.scope = scope
            read_times(live, bins, replace(job.run, limits=self.limits))

        self.job = self.jobs.start("histogram", "reading headers", work, lambda _: self.fill())

    def state(self) -> Any:
        return None if self.job is None else (self.job.done, self.job.cancelled)

    def fill(self) -> None:
        room = max(8, self.pane.size.height or 8)
        step = self.bins.fitting_step(room) if self.step is None else self.step
        found = self.bins.snapshot(step)
        selected = self.answers[self.pane.cursor] if self.pane.cursor < len(self.answers) else None
        self.answers, lines = self._lines(found)
        number = next(
            (n for n, each in enumerate(self.answers) if selected and each and each.start >= selected.start), 0
        )
        self.pane.show(lines, number, self._head(), keep=True)
        title = self.scope.title if self.scope is not None else self.scope_name
        width = duration_text(found[0].width) if found else ""
        unit = "bytes" if self.by_bytes else "records"
        per = f": {unit} per {width}" if width else ""
        self.show_title(f"histogram of time, {title}{per}")
        self._show_note()

    def _head(self) -> HexLine:
        zone = printable(str(self.zone))
        return HexLine(((f" {f'time ({zone})':<20}  {'records':>12}  {'bytes':>10}", "head"),))

    def _lines(self, found: list[Bin]) -> tuple[list[Bin | None], list[HexLine]]:
        """Return a line for each bin, and for each gap between two."""
        value = [each.bytes if self.by_bytes else each.records for each in found]
        most = max(value, default=0)
        room = max(4, self.size.width - 51)
        shown: list[Bin | None] = []
        lines: list[HexLine] = []
        for each, count in zip(found, value):
            if shown and shown[-1] is not None:
                gap = each.start - shown[-1].start - each.width
                if gap > 0:
                    shown.append(None)
                    lines.append(HexLine(((f" … {duration_text(gap)} without batches", "dim"),)))
            shown.append(each)
            text = f" {self._time(each):<20}  {each.records:>12,}  {size_text(each.bytes):>10}  "
            lines.append(HexLine(((text, ""), (bar(count, most, room), "name"))))
        return shown, lines

    def _time(self, each: Bin) -> str:
        text = iso(each.start, self.zone)
        if not text[:4].isdecimal() or text[4:5] != "-":
            return cut(text, 20)
        return text[:10] if each.width >= 86_400_000 else text[:16] if each.width >= 60_000 else text[:19]

    def _show_note(self) -> None:
        bins, job = self.bins, self.job
        read = f"{count_text(bins.records, 'record')} in {count_text(bins.batches, 'batch', 'batches')}"
        done = job is not None and job.cancelled
        if done and self.scope is None:
            self.show_note("nothing could be read", has_gaps=True)
            return
        if done:
            words = [f"{read}, {size_text(bins.bytes)}"]
        else:
            percent = f" {100 * min(job.done, job.total) // job.total}%" if job is not None and job.total else ""
            words = [f"reading headers …{percent}: {read}"]
        unread = [*bins.unread, *(self.scope.unlisted if self.scope is not None else [])]
        if unread:
            words.insert(0, f"NOT READ: {count_text(len(unread), 'place')}")
        if bins.untimed:
            words.append(f"{count_text(bins.untimed, 'batch has', 'batches have')} no timestamp")
        if bins.uncounted:
            words.append(f"records of {count_text(bins.uncounted, 'compressed message')} not counted")
        if bins.others:
            words.append(f"{count_text(bins.others, 'byte')} in no batch")
        if self.left_out:
            words.append(f"{count_text(self.left_out, 'directory', 'directories')} not live, not counted")
        self.show_note("; ".join([*words, *unread[:1]]), has_gaps=bool(unread))

    def action_measure(self) -> None:
        self.by_bytes = not self.by_bytes
        self.fill()

    def action_widen(self, direction: int) -> None:
        width = next((each.width for each in self.answers if each is not None), of_time(0))
        step = next((n for n in range(WIDEST_STEP) if of_time(n) >= width), 0)
        self.step = max(self.bins.step, min(step + direction, WIDEST_STEP))
        self.fill()

    def action_scope(self) -> None:
        """Read the next larger scope that is at hand; after the largest, the smallest."""
        first = SCOPES.index(self.here.scope)
        at = SCOPES.index(self.scope_name) + 1
        self.scope_name = SCOPES[at] if at < len(SCOPES) else SCOPES[first]
        self._start()
        self.step, self.answers = None, []
        self._read()
        self.fill()
