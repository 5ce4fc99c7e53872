"""Movement between rows, levels and panes, and synchronization of the panes."""

from __future__ import annotations

from collections.abc import Callable

from kdump.browse.background_jobs import Job
from kdump.browse.hex_pane import HexPane, same
from kdump.browse.hexdump_lines import HEADER, HexDump, HexLine
from kdump.browse.level import Level
from kdump.browse.panes import Pane
from kdump.browse.row_listings import BrowseRow, ListingSlice


class Navigation(HexPane):
    """Handles the messages that panes post for keys and clicks."""

    def _look(
        self, description: str, work: Callable[[Job], list[Level] | None], then: Callable[[], None] | None = None
    ) -> Job:
        """Read levels in the background, then make them current. Returns the job."""

        def arrived(levels: list[Level] | None) -> None:
            if levels is None:
                return
            self.browser.settle(levels)
            self.message = ("", "")
            if self.browser.places.unread:
                self.trouble(self.browser.places.unread[0])
            if then is not None:
                then()
            self._draw()

        return self.jobs.start("look", description, work, arrived)

    def _enter(self) -> None:
        browser = self.browser
        row, depth = browser.level.row, browser.depth
        if row is None or row.type in ("field", "note"):
            return
        if depth + 1 < len(browser.levels) and browser.levels[depth + 1].owner is row:
            browser.depth += 1
            self._draw()
            return
        self._look(f"reading {row.label}", lambda job: browser.enter(depth, row, job.report_progress))

    def action_out(self) -> None:
        browser = self.browser
        self.jobs.cancel("look")
        if browser.levels and browser.depth > 0:
            browser.depth -= 1
            self._draw()

    def run_reload(self, argument: str) -> None:
        self.dumped = None
        self._look("reading again", lambda job: self.browser.again(job.report_progress))

    def on_pane_moved(self, message: Pane.Moved) -> None:
        browser = self.browser
        if not browser.levels or message.is_stale:
            return
        self.message = ("", "")
        if message.pane is self.table_pane:
            self._select(browser.depth, message.number)
        elif message.pane is self.tree_pane:
            depth, number = self.places[message.number]
            rows = browser.levels[max(0, depth)].rows
            self._select(max(0, depth), max(0, min(number, len(rows) - 1)))
            if not 0 <= number < len(rows):  # an ellipsis
                self._more(1, down=number > 0)
        else:
            self._follow_hex(message.number)

    def _select(self, depth: int, number: int) -> None:
        """Select another row; levels below the previously selected row are dropped."""
        browser = self.browser
        browser.depth = depth
        if browser.level.cursor != number:
            self.jobs.cancel("look")
            browser.level.cursor = number
            browser.settle(browser.levels[: depth + 1], depth)
        self._draw()

    def on_pane_beyond(self, message: Pane.Beyond) -> None:
        browser, level = self.browser, self.browser.level if self.browser.levels else None
        pane, down = message.pane, message.down
        if level is None or pane is self.hex_pane:
            if not message.count:
                pane.move_to(len(pane.lines) if down else 0)
            return
        if pane is self.tree_pane and message.count:
            return  # the tree ends with the top level, which moves with the table
        if not message.count:
            if (level.last if down else level.first) or not level.rows:
                self._select(browser.depth, len(level.rows) - 1 if down else 0)
                return

            def there(part: ListingSlice) -> None:
                if level is not browser.level:
                    return
                level.put(part, len(part.rows) if down else 0)
                browser.settle(browser.levels[: browser.depth + 1], browser.depth)
                self._draw()

            description = "looking for the end" if down else "reading"
            self.jobs.start(
                "look", description, lambda job: browser.end(level, down=down, on_progress=job.report_progress), there
            )
            return
        self._more(message.count, down=down)

    def _more(self, count: int, *, down: bool) -> None:
        """Read rows beyond the loaded ones, and move the cursor `count` rows from the selected row."""
        browser, level = self.browser, self.browser.level
        if (level.last if down else level.first) or not level.rows or "look" in self.jobs.running:
            return

        def more(part: ListingSlice) -> None:
            if level is not browser.level:
                return
            before = level.row
            browser.grow(level, part, down=down)
            if before is not None:
                step = count if down else -count
                number = next((n for n, row in enumerate(level.rows) if row.key == before.key), level.cursor)
                level.cursor = max(0, min(number + step, len(level.rows) - 1))
            browser.settle(browser.levels[: browser.depth + 1], browser.depth)
            self._draw()

        requested = count + self.table_pane.room
        self.jobs.start(
            "look",
            "reading",
            lambda job: browser.more(level, down=down, count=requested, on_progress=job.report_progress),
            more,
        )

    def on_pane_entered(self, message: Pane.Entered) -> None:
        if not self.browser.levels or message.is_stale:
            return
        if message.pane is self.tree_pane:
            depth, number = self.places[message.number]
            if depth >= 0 and 0 <= number < len(self.browser.levels[depth].rows):
                self._select(depth, number)
                self._enter()
        elif message.pane is self.table_pane:
            self._enter()
        elif self.dumped is not None and message.number < len(self.dumped[1].lines):
            self._enter_field(self.dumped[1].lines[message.number], self.dumped[1])

    def _follow_hex(self, number: int) -> None:
        """Select the table row that belongs to a line of the hexdump, if there is one."""
        level = self.browser.level
        if self.dumped is None or number >= len(self.dumped[1].lines):
            return
        dump, line = self.dumped[1], self.dumped[1].lines[number]
        rows = level.rows
        if rows and rows[0].type == "field" and line.field is not None:
            requested = dump.fields[line.field]
            found = next((n for n, row in enumerate(rows) if same(row.item, requested)), None)
        elif rows and rows[0].type in ("header", "record"):
            found = next((n for n, row in enumerate(rows) if _record_of(row) == line.record), None)
        else:
            found = None
        if found is not None and found != level.cursor:
            self.jobs.cancel("look")
            level.cursor = found
            self.browser.settle(self.browser.levels[: self.browser.depth + 1], self.browser.depth)
            self._draw_lists()
        self._show_field(line, dump)

    def _enter_field(self, line: HexLine, dump: HexDump) -> None:
        """Enter the row of the field that a line of the hexdump shows."""
        browser = self.browser
        row = browser.level.row
        if line.field is None or row is None or row.type not in ("batch", "record", "header", "entry", "region"):
            return
        requested = dump.fields[line.field]
        depth = browser.depth

        def work(job: Job) -> list[Level] | None:
            levels = browser.levels[: depth + 1]
            subject = row
            if row.type == "batch":
                records = browser.enter(depth, row, job.report_progress)
                if records is None:
                    return None
                levels = records
                subject = next((r for r in levels[-1].rows if _record_of(r) == requested.record), levels[-1].rows[0])
                levels[-1].select(subject.key)
            with browser.lock:
                fields = browser.places.into(subject, levels[-1])
                if fields is None:
                    return None
                part = fields.listing.head(10_000, job.report_progress)
                number = next((n for n, each in enumerate(part.rows) if same(each.item, requested)), 0)
                return [*levels, fields.put(part, number)]

        self._look("reading", work)


def _record_of(row: BrowseRow) -> int | None:
    """Return the index of the row's record; HEADER for the header, None for any other row."""
    return row.item.index if row.type == "record" else HEADER if row.type == "header" else None
