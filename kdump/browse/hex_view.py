"""The hexdump pane: the annotated bytes of the selected row, scrolled to that row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kdump.browse.background_jobs import Jobs
from kdump.browse.browser import Browser
from kdump.browse.hexdump_lines import HexDump, HexField, HexLine
from kdump.browse.level import Level
from kdump.browse.panes import Bar, Pane
from kdump.browse.row_listings import BrowseRow
from kdump.check.finding import Finding
from kdump.format.count_text import plain_count
from kdump.render.escape import printable


class HexView:
    """The pane, and the line above it. `on_dumped` is called when the bytes of another row have been read."""

    def __init__(self, browser: Browser, jobs: Jobs, on_dumped: Callable[[], None]) -> None:
        self.browser = browser
        self.jobs = jobs
        self.bar, self.pane = Bar(id="bytes"), Pane(id="hex")
        self.dumped: tuple[Any, HexDump] | None = None
        """What identifies the bytes that are shown, and their dump."""
        self.full = False
        self.finding: Finding | None = None
        """The finding that was visited last."""
        self.found: tuple[str, Any] | None = None
        """Its place, as returned by `spot`: the finding is shown only there."""
        self._on_dumped = on_dumped

    def visit(self, finding: Finding) -> None:
        """Show a finding with the bytes of the selected row."""
        self.dumped, self.finding = None, finding
        self.found = spot(self.browser.level, self.browser.level.row)

    def line(self, number: int) -> tuple[HexLine, HexDump] | None:
        """Return a line of the dump that is shown."""
        if self.dumped is None or number >= len(self.dumped[1].lines):
            return None
        return self.dumped[1].lines[number], self.dumped[1]

    def show(self) -> None:
        """Show the bytes of the selected row."""
        browser = self.browser
        level, row = browser.level, browser.level.row
        if row is None:
            self.dumped = None
            self.bar.show((" nothing here", "dim"))
            self.pane.show([], 0)
            return
        subject, within = row, level
        if row.type == "field" and level.owner is not None:
            subject, within = level.owner, browser.levels[browser.depth - 1]
        room, full, finding = self.pane.size.width, self.full, self.finding
        kind: str = subject.type
        what: Any = id(subject.item)
        if kind in ("record", "header", "batch"):
            kind, what = "batch", (subject.item.batch if subject.type == "record" else subject.item).position
        key = (id(within.file), kind, what, room, full, finding)
        if self.dumped is not None and self.dumped[0] == key and _has(self.dumped[1], subject):
            self._scroll(self.dumped[1], row, subject)
            return

        def done(dump: HexDump) -> None:
            if browser.level is not level or level.row is None or level.row.key != row.key:
                return
            if finding is not None and self.found == spot(within, subject):
                dump = browser.places.with_finding(dump, finding, room)
            self.dumped = (key, dump)
            if row.type == "batch" and "crc?" in "".join(row.cells):  # its checksum is known now
                level.rows = [browser.places.maker.region(each.item) if each is row else each for each in level.rows]
            self._scroll(dump, row, subject, fresh=True)
            self._on_dumped()

        self.jobs.start(
            "detail",
            "reading",
            lambda job: browser.dump(subject, within, room, full=full, run=job.run),
            done,
        )

    def _scroll(self, dump: HexDump, row: BrowseRow, subject: BrowseRow, *, fresh: bool = False) -> None:
        """Move the cursor to the line for `row`."""
        number = 0
        marked: frozenset[int] = frozenset()
        if row.type == "field":
            lines = [
                n
                for n, line in enumerate(dump.lines)
                if line.field is not None and same(row.item, dump.fields[line.field])
            ]
            number, marked = (lines[0], frozenset(lines)) if lines else (0, marked)
        elif subject.type == "record":
            number = next((n for n, line in enumerate(dump.lines) if line.record == subject.item.index), 0)
        elif self.finding is not None and fresh:
            number = _line_of(self.finding, dump)
        pane = self.pane
        pane.marked = marked
        if fresh:
            pane.top = 0
        pane.show(dump.lines, number)
        if row.type == "record":  # its first line at the top, because the lines after it are the relevant ones
            pane.top = max(0, min(number, len(dump.lines) - pane.room))
            pane.refresh()
        more = "" if len(dump.lines) <= pane.room else f", {plain_count(len(dump.lines), 'line')}"
        self.bar.show((f"─ {printable(dump.title)}{more} ".ljust(self.bar.size.width, "─"), "dim"))


def _has(dump: HexDump, subject: BrowseRow) -> bool:
    return subject.type != "record" or dump.shown[0] <= subject.item.index <= dump.shown[1]


def _line_of(finding: Finding, dump: HexDump) -> int:
    for number, line in enumerate(dump.lines):
        if line.field is not None:
            field = dump.fields[line.field]
            if not field.inner and field.position <= finding.position < field.position + field.size:
                return number if finding.size and finding.size < 61 else 0
    return 0


def spot(level: Level, row: BrowseRow | None) -> tuple[str, Any]:
    """Return the file and the position (or key) of the bytes that a row shows; for a record, those of its batch."""
    if row is None:
        return level.path, None
    item = row.item.batch if row.type == "record" else row.item
    return level.path, getattr(item, "position", row.key)


def same(one: HexField, other: HexField) -> bool:
    return (one.position, one.record, one.inner, one.name) == (other.position, other.record, other.inner, other.name)
