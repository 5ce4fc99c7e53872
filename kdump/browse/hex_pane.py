"""The hexdump pane: the annotated bytes of the selected row, scrolled to that row."""

from __future__ import annotations

from typing import Any

from kdump.browse.hexdump_lines import HexDump, HexField
from kdump.browse.level import Level
from kdump.browse.pane_layout import PaneLayout
from kdump.browse.row_listings import BrowseRow
from kdump.check.finding import Finding
from kdump.render.escape import printable


class HexPane(PaneLayout):
    """Fills the hexdump pane."""

    def _draw(self) -> None:
        self._draw_lists()
        self._show_place()
        self._detail()

    def _redraw(self) -> None:
        if self.browser.levels:
            self.dumped = None
            self._draw()

    def _detail(self) -> None:
        """Show the bytes of the selected row."""
        browser = self.browser
        level, row = browser.level, browser.level.row
        if row is None:
            self.dumped = None
            self.hex_bar.show((" nothing here", "dim"))
            self.hex_pane.show([], 0)
            return
        subject, within = row, level
        if row.type == "field" and level.owner is not None:
            subject, within = level.owner, browser.levels[browser.depth - 1]
        room, full, finding = self.hex_pane.size.width, self.full, self.finding
        item = subject.item
        batch = item.batch if subject.type == "record" else item
        key = (id(within.file), subject.type == "record" or subject.type, id(batch), room, full, finding)
        if subject.type in ("record", "header", "batch"):
            key = (id(within.file), "batch", batch.position, room, full, finding)
            if self.dumped is not None and self.dumped[0] == key and self._has(self.dumped[1], subject):
                self._place(row, subject)
                return
        elif self.dumped is not None and self.dumped[0] == key:
            self._place(row, subject)
            return

        def done(dump: HexDump) -> None:
            if browser.level is not level or level.row is None or level.row.key != row.key:
                return
            if finding is not None and self.found == spot(within, subject):
                dump = browser.places.with_finding(dump, finding, room)
            self.dumped = (key, dump)
            if row.type == "batch" and "crc?" in "".join(row.cells):
                self._renew(level, row)
            self._place(row, subject, fresh=True)

        self.jobs.start(
            "detail",
            "reading",
            lambda job: browser.dump(subject, within, room, full=full, on_progress=job.report_progress),
            done,
        )

    def _renew(self, level: Level, row: BrowseRow) -> None:
        """Redraw the row of a batch after its bytes have been read, because its checksum is now known."""
        level.rows = [self.browser.renewed(each) if each is row else each for each in level.rows]
        self._draw_lists()

    @staticmethod
    def _has(dump: HexDump, subject: BrowseRow) -> bool:
        return subject.type != "record" or dump.shown[0] <= subject.item.index <= dump.shown[1]

    def _place(self, row: BrowseRow, subject: BrowseRow, *, fresh: bool = False) -> None:
        """Move the cursor of the hexdump to the line for `row`."""
        assert self.dumped is not None
        dump = self.dumped[1]
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
            number = self._line_of(self.finding, dump)
        self.hex_pane.marked = marked
        if fresh:
            self.hex_pane.top = 0
        self.hex_pane.show(dump.lines, number)
        if row.type == "record":  # its first line at the top, because the lines after it are the relevant ones
            self.hex_pane.top = max(0, min(number, len(dump.lines) - self.hex_pane.room))
            self.hex_pane.refresh()
        more = "" if len(dump.lines) <= self.hex_pane.room else f", {len(dump.lines)} lines"
        self.hex_bar.show((f"─ {printable(dump.title)}{more} ".ljust(self.size.width, "─"), "dim"))
        self._show_place()

    @staticmethod
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
