"""The main screen: tree, table and hexdump, kept in sync, with the title, the prompt and the status line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.screen import Screen

from kdump.browse.background import BackgroundVerify, Job, Jobs
from kdump.browse.browser import Browser, Mark
from kdump.browse.key_search import KeySearch
from kdump.browse.lines import HEADER, HexDump, HexField, HexLine, table, tree
from kdump.browse.listings import BrowseRow, Level, ListingSlice, SortedListing
from kdump.browse.panes import Bar, KeyHints, Pane
from kdump.browse.prompt import Prompt, PromptParsers
from kdump.browse.segment_pages import Pages
from kdump.check.finding import Finding
from kdump.format.count_text import plain_count
from kdump.render.amounts import size_text
from kdump.render.escape import path_text, printable
from kdump.render.style import width
from kdump.render.table import Column

KEYS = " ? help  : command  ⏎ in  ← out  ⇥ pane  g go  / find  f filter  s sort  q quit"


@dataclass
class State:
    """What the screen and its commands know, apart from the place of the browser."""

    check: BackgroundVerify | None = None
    awaited: int = 0
    """Direction in which the user waits for a finding, 0 if not waiting."""
    takes_key: Callable[[str], None] | None = None
    """What takes the next key, while `question` is shown."""
    question: str = ""
    filter: str = ""
    """The filter options, as typed."""
    message: tuple[str, str] = ("", "")
    """Text and style of a message in the status line."""
    searched: str = ""
    """The last regular expression."""
    last_find: KeySearch | None = None
    """The last search for a key."""
    marked: dict[str, Mark] = field(default_factory=dict)
    """The marks, by letter."""
    full: bool = False
    """Whether the hexdump shows values in full."""
    dumped: tuple[Any, HexDump] | None = None
    """What identifies the bytes that are shown, and their dump."""
    finding: Finding | None = None
    """The finding that was visited last."""
    found_at: tuple[str, Any] | None = None
    """Its place, as returned by `spot`: the finding is shown only there."""


class MainScreen(Screen[None]):
    """Lays out the panes, fills them, and handles the messages that they post for keys and clicks."""

    def __init__(self, browser: Browser, typed: PromptParsers) -> None:
        super().__init__()
        self.browser, self.typed = browser, typed
        self.state = State()
        self.jobs = Jobs(self, self.trouble)
        self.laid: tuple[list[BrowseRow], int, tuple[HexLine, list[HexLine]]] | None = None
        """Rows, the width available for them, and the resulting table."""
        self.tree_places: list[tuple[int, int]] = []
        """Level and row number for each line of the tree."""
        self.title_bar, self.hex_bar, self.status = Bar(id="title", style="reverse"), Bar(id="bytes"), Bar(id="status")
        self.tree_pane, self.table_pane, self.hex_pane = Pane(id="tree"), Pane(id="table"), Pane(id="hex")
        self.prompt = Prompt(self.show_status)

    def compose(self) -> ComposeResult:
        yield self.title_bar
        with Horizontal(id="panes"):
            yield self.table_pane
            yield Bar(id="gap")
            yield self.tree_pane
        yield self.hex_bar
        yield self.hex_pane
        yield self.prompt
        yield self.status
        yield KeyHints(self.status, KEYS, id="keys")

    def on_mount(self) -> None:
        panes = self.query_one("#panes")
        panes.move_child(self.tree_pane, before=0)
        panes.move_child(self.query_one("#gap"), after=self.tree_pane)
        self.table_pane.focus()
        self.set_interval(0.25, self.show_progress)
        self.look("opening", lambda job: self.browser.open(job.run))

    def on_resize(self) -> None:
        self.set_class(self.size.width >= 140, "wide")
        self.call_after_refresh(self._redraw)

    def zoom(self) -> None:
        """Show only the focused pane, or all panes again."""
        pane = self.focused if isinstance(self.focused, Pane) else self.table_pane
        zoomed = not self.has_class("zoomed")
        for other in (self.tree_pane, self.table_pane, self.hex_pane):
            other.set_class(zoomed and other is pane, "zoom")
        self.query_one("#panes").set_class(zoomed and pane is self.hex_pane, "empty")
        self.hex_bar.set_class(zoomed and pane is not self.hex_pane, "empty")
        self.set_class(zoomed, "zoomed")
        self.call_after_refresh(self._redraw)

    def close_prompt(self) -> None:
        self.prompt.display = False
        self.table_pane.focus()
        self.show_place()

    # -- what is shown

    def draw(self) -> None:
        """Fill the panes and the status line."""
        self._draw_lists()
        self.show_place()
        self.show_bytes()

    def _redraw(self) -> None:
        if self.browser.levels:
            self.state.dumped = None
            self.draw()

    def _draw_lists(self) -> None:
        browser = self.browser
        level = browser.level
        room = max(20, self.table_pane.size.width)
        if self.laid is None or self.laid[0] is not level.rows or self.laid[1] != room:
            self.laid = (level.rows, room, table(_with_arrow(level), level.rows, room))
        head, lines = self.laid[2]
        self.table_pane.show(lines, level.cursor, head if lines else None, keep=True)
        top = printable(path_text(browser.places.path))
        lines, self.tree_places = tree(browser.levels, top, max(10, self.tree_pane.size.width))
        here = (browser.depth, level.cursor)
        number = self.tree_places.index(here) if here in self.tree_places else 0
        self.tree_pane.show(lines, number, keep=True)
        names = [
            top,
            *(above.owner.label for above in browser.levels[1 : browser.depth + 1] if above.owner is not None),
        ]
        kinds, trail = printable(f"   filter {self.state.filter}" if self.state.filter else ""), " › ".join(names)
        room = self.size.width - 15 - width(kinds)
        while width(trail) > room and len(trail) > 8:
            trail = "…" + trail[2:]
        self.title_bar.show((f" kdump browse  {trail}{kinds}", ""))

    def show_place(self) -> None:
        """Fill the status line: with a message or finding, or with the current position."""
        if self.state.message[0]:
            self.show_status(*self.state.message)
            return
        level = self.browser.level
        row = level.row
        if row is None:
            self.show_status(" the filter matches no batch or record" if self.state.filter else " nothing here", "torn")
        elif row.type == "field":
            self._show_field(row.item)
        else:
            self.show_status(printable(path_text(f" {self._place_text(level, row)}")))

    def _place_text(self, level: Level, row: BrowseRow) -> str:
        remark = level.file.remark() if level.file is not None else ""
        if isinstance(level.listing, SortedListing):
            words = [level.listing.about, remark]
        elif isinstance(level.listing, Pages) and level.file is not None:
            size, position = level.file.length, row.item.position
            of = f" of {size_text(size)}, {100 * position // max(1, size)}%" if size is not None else ""
            words = [f"byte {position}{of}", remark]
        elif level.last and level.first:
            words = [f"{level.cursor + 1} of {len(level.rows)}", level.order.text if level.order else "", level.about]
        else:
            words = [str(row.key)]
        return "; ".join(filter(None, words))

    def _show_field(self, field: HexField) -> None:
        wrong = f"WRONG: {field.wrong}  " if field.wrong else ""
        self.show_status(f" {wrong}{field.name} = {field.value}  {field.meaning}", "bad" if wrong else "")

    def show_status(self, message: str, style: str = "") -> None:
        """Fill the status line; but a question that is not answered stays, because the next key answers it."""
        self.status.show((self.state.question, "") if self.state.takes_key is not None else (message, style))

    def say(self, message: str, style: str = "") -> None:
        """Show a message until the user moves on."""
        self.state.message = (" " + printable(path_text(message)), style)
        self.show_status(*self.state.message)

    def trouble(self, message: str) -> None:
        """Show a message that the user should notice."""
        self.say(message, "torn")

    def ask_key(self, question: str, then: Callable[[str], None]) -> None:
        """Show a question, and call `then` with the character of the next key, unless that is Esc or has none."""
        self.state.question, self.state.takes_key = printable(path_text(f" {question}  (Esc cancels)")), then
        self.show_status(*self.state.message)

    def show_progress(self) -> None:
        for group in ("look", "save", "find", "check"):
            job = self.jobs.running.get(group)
            if job is None or (job.description == "reading" and not job.done):
                continue
            if group in ("find", "check") and self.state.message[0] and not self.state.awaited:
                continue
            far = job.percent or (f" at byte {job.done}" if job.done else "")
            findings = f", {self.state.check.serious} found" if group == "check" and self.state.check else ""
            self.show_status(f" {job.description} …{far}{findings}  (Esc stops)", "dim")
            return

    # -- the hexdump: the annotated bytes of the selected row, scrolled to that row

    def _hex_line(self, number: int) -> tuple[HexLine, HexDump] | None:
        """Return a line of the dump that is shown."""
        dumped = self.state.dumped
        return None if dumped is None or number >= len(dumped[1].lines) else (dumped[1].lines[number], dumped[1])

    def show_bytes(self) -> None:
        """Show the bytes of the selected row."""
        browser, state = self.browser, self.state
        level, row = browser.level, browser.level.row
        if row is None:
            state.dumped = None
            self.hex_bar.show((" nothing here", "dim"))
            self.hex_pane.show([], 0)
            return
        subject, within = row, level
        if row.type == "field" and level.owner is not None:
            subject, within = level.owner, browser.levels[browser.depth - 1]
        width, full, finding = self.hex_pane.size.width, state.full, state.finding
        kind: str = subject.type
        what: Any = id(subject.item)
        if kind in ("record", "header", "batch"):
            kind, what = "batch", (subject.item.batch if subject.type == "record" else subject.item).position
        key = (id(within.file), kind, what, width, full, finding)
        if state.dumped is not None and state.dumped[0] == key and _has(state.dumped[1], subject):
            self._scroll(state.dumped[1], row, subject)
            return

        def done(dump: HexDump) -> None:
            if browser.level is not level or level.row is None or level.row.key != row.key:
                return
            if finding is not None and state.found_at == spot(within, subject):
                dump = browser.places.with_finding(dump, finding, width)
            state.dumped = (key, dump)
            if row.type == "batch" and "crc?" in "".join(row.cells):  # its checksum is known now
                level.rows = [browser.places.maker.region(each.item) if each is row else each for each in level.rows]
            self._scroll(dump, row, subject, fresh=True)
            if self.laid is None or self.laid[0] is not browser.level.rows:
                self._draw_lists()
            self.show_place()

        self.jobs.start(
            "detail", "reading", lambda job: browser.dump(subject, within, width, full=full, run=job.run), done
        )

    def _scroll(self, dump: HexDump, row: BrowseRow, subject: BrowseRow, *, fresh: bool = False) -> None:
        """Move the cursor to the line for `row`."""
        pane, lines, chosen = self.hex_pane, dump.lines, [0]
        pane.marked = frozenset()
        if row.type == "field":
            fields = dump.fields
            chosen = [n for n, at in enumerate(lines) if at.field is not None and same(row.item, fields[at.field])]
            pane.marked = frozenset(chosen)
        elif subject.type == "record":
            chosen = [n for n, line in enumerate(lines) if line.record == subject.item.index]
        elif self.state.finding is not None and fresh:
            chosen = [_line_of(self.state.finding, dump)]
        number = (*chosen, 0)[0]
        if fresh:
            pane.top = 0
        pane.show(lines, number)
        if row.type == "record":  # its first line at the top, because the lines after it are the relevant ones
            pane.top = max(0, min(number, len(lines) - pane.room))
            pane.refresh()
        more = "" if len(lines) <= pane.room else f", {plain_count(len(lines), 'line')}"
        self.hex_bar.show((f"─ {printable(dump.title)}{more} ".ljust(self.hex_bar.size.width, "─"), "dim"))

    # -- moving

    def look(
        self, description: str, work: Callable[[Job], list[Level] | None], then: Callable[[], None] | None = None
    ) -> Job:
        """Read levels in the background, then make them current. Returns the job."""

        def arrived(levels: list[Level] | None) -> None:
            if levels is None:
                return
            self.browser.settle(levels)
            self.state.message = ("", "")
            if self.browser.places.unread:
                self.trouble(self.browser.places.unread[0])
            if then is not None:
                then()
            self.draw()

        return self.jobs.start("look", description, work, arrived)

    def enter(self) -> None:
        """Open the selected row."""
        browser = self.browser
        row, depth = browser.level.row, browser.depth
        if row is None or row.type in ("field", "note"):
            return
        if depth + 1 < len(browser.levels) and browser.levels[depth + 1].owner is row:
            browser.depth += 1
            self.draw()
            return
        self.look(f"reading {row.label}", lambda job: browser.enter(depth, row, job.run))

    def leave(self) -> None:
        """Go up one level."""
        self.jobs.cancel("look")
        if self.browser.levels and self.browser.depth > 0:
            self.browser.depth -= 1
            self.draw()

    def on_pane_moved(self, message: Pane.Moved) -> None:
        browser = self.browser
        if not browser.levels or message.is_stale:
            return
        self.state.message = ("", "")
        if message.pane is self.table_pane:
            self._select(browser.depth, message.number)
        elif message.pane is self.tree_pane:
            depth, number = self.tree_places[message.number]
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
            browser.drop_deeper()
        self.draw()

    def on_pane_beyond(self, message: Pane.Beyond) -> None:
        browser, level = self.browser, self.browser.level if self.browser.levels else None
        pane, down = message.pane, message.down
        if level is None or pane is self.hex_pane:
            if not message.count:
                pane.move_to(len(pane.lines) if down else 0)
        elif message.count:
            if pane is not self.tree_pane:  # the tree ends with the top level, which moves with the table
                self._more(message.count, down=down)
        elif (level.last if down else level.first) or not level.rows:
            self._select(browser.depth, len(level.rows) - 1 if down else 0)
        else:
            self._read_rows(
                "looking for the end" if down else "reading",
                lambda job: browser.end(level, down=down, run=job.run),
                lambda part: level.put(part, len(part.rows) if down else 0),
            )

    def _read_rows(self, description: str, read: Callable[[Job], ListingSlice], put: Callable[[Any], Any]) -> None:
        """Read rows of the current level in the background, and show them, if it still is the current one then."""
        browser, level = self.browser, self.browser.level

        def there(part: ListingSlice) -> None:
            if level is browser.level:
                put(part)
                browser.drop_deeper()
                self.draw()

        self.jobs.start("look", description, read, there)

    def _more(self, count: int, *, down: bool) -> None:
        """Read rows beyond the loaded ones, and move the cursor `count` rows from the selected row."""
        browser, level = self.browser, self.browser.level
        if (level.last if down else level.first) or not level.rows or "look" in self.jobs.running:
            return

        def put(part: ListingSlice) -> None:
            before = level.row
            level.grow(part, down=down)
            if before is not None:
                number = next((n for n, row in enumerate(level.rows) if row.key == before.key), level.cursor)
                level.cursor = max(0, min(number + (count if down else -count), len(level.rows) - 1))

        rows_beyond = count + self.table_pane.room
        self._read_rows("reading", lambda job: browser.more(level, down=down, count=rows_beyond, run=job.run), put)

    def on_pane_entered(self, message: Pane.Entered) -> None:
        if not self.browser.levels or message.is_stale:
            return
        if message.pane is self.tree_pane:
            depth, number = self.tree_places[message.number]
            if depth >= 0 and 0 <= number < len(self.browser.levels[depth].rows):
                self._select(depth, number)
                self.enter()
        elif message.pane is self.table_pane:
            self.enter()
        elif (shown := self._hex_line(message.number)) is not None:
            self._enter_field(*shown)

    def _follow_hex(self, number: int) -> None:
        """Select the table row that belongs to a line of the hexdump, if there is one."""
        level = self.browser.level
        shown = self._hex_line(number)
        if shown is None:
            return
        line, dump = shown
        rows = level.rows
        if rows and rows[0].type == "field" and line.field is not None:
            requested = dump.fields[line.field]
            cursor = next((n for n, row in enumerate(rows) if same(row.item, requested)), None)
        elif rows and rows[0].type in ("header", "record"):
            cursor = next((n for n, row in enumerate(rows) if _record_of(row) == line.record), None)
        else:
            cursor = None
        if cursor is not None and cursor != level.cursor:
            self.jobs.cancel("look")
            level.cursor = cursor
            self.browser.drop_deeper()
            self._draw_lists()
        if line.field is not None:
            self._show_field(dump.fields[line.field])

    def _enter_field(self, line: HexLine, dump: HexDump) -> None:
        """Enter the row of the field that a line of the hexdump shows."""
        browser, depth = self.browser, self.browser.depth
        row = browser.level.row
        if line.field is None or row is None or row.type not in ("batch", "record", "header", "entry", "region"):
            return
        requested = dump.fields[line.field]

        def work(job: Job) -> list[Level] | None:
            levels = browser.levels[: depth + 1]
            subject = row
            if row.type == "batch":
                records = browser.enter(depth, row, job.run)
                if records is None:
                    return None
                levels = records
                subject = next((r for r in levels[-1].rows if _record_of(r) == requested.record), levels[-1].rows[0])
                levels[-1].select(subject.key)
            with browser.lock:
                fields = browser.places.into(subject, levels[-1])
                if fields is None:
                    return None
                part = fields.listing.head(10_000, job.run)
                number = next((n for n, field_row in enumerate(part.rows) if same(field_row.item, requested)), 0)
                return [*levels, fields.put(part, number)]

        self.look("reading", work)


def _record_of(row: BrowseRow) -> int | None:
    """Return the index of the row's record; HEADER for the header, None for any other row."""
    return row.item.index if row.type == "record" else HEADER if row.type == "header" else None


def _with_arrow(level: Level) -> list[Column]:
    """Return the columns of a level; the one that it is sorted by is marked, and never left out."""
    if level.order is None:
        return level.listing.columns
    arrow = "▼" if level.order.descending else "▲"
    return [
        column._replace(label=f"{column.label} {arrow}", rank=9) if column.name == level.order.column else column
        for column in level.listing.columns
    ]


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
