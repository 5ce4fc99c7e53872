"""The terminal browser: three panes that follow each other, a line that says where one is, and the keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Input

from kdump.browse import check as checks
from kdump.browse.browser import Browser
from kdump.browse.check import Check
from kdump.browse.dump import HEADER, Dump, Field, Line
from kdump.browse.jobs import Job, Jobs
from kdump.browse.layout import table, tree
from kdump.browse.lists import FindingsScreen, TransactionsScreen
from kdump.browse.pages import Pages
from kdump.browse.panes import Bar, Pane
from kdump.browse.places import Level
from kdump.browse.rows import Part, Row
from kdump.browse.say import command_of, json_of
from kdump.browse.screens import HELP, TextScreen
from kdump.check.finding import Finding
from kdump.forensics.answers import Transaction
from kdump.log.select import Selection
from kdump.render.escape import path_text, printable
from kdump.render.report import size_text
from kdump.render.style import width

KEYS = " ? help  ⏎ in  ← out  ⇥ pane  g go  / find  f filter  n finding  t txns  q quit"
SLOW = 0.3
"""Seconds after which it is told that something is being read."""


class Typed(NamedTuple):
    """What people type -> values; each raises ValueError with the reason. `selection`: options of inspect; `time`: a
    time, as epoch ms."""

    selection: Callable[[str], Selection]
    time: Callable[[str], int]


class BrowseApp(App[None]):
    """kdump browse."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { layout: vertical; overflow: hidden; }
    #panes { height: 1fr; }
    #tree { width: 25; height: 100%; }
    #gap { width: 1; height: 100%; }
    #table { width: 1fr; height: 100%; }
    #hex { height: 1fr; }
    #prompt { height: 1; border: none; padding: 0; display: none; }
    .wide #tree { width: 44; }
    .zoomed #tree, .zoomed #table, .zoomed #hex, .zoomed #gap { display: none; }
    .zoomed #tree.zoom { display: block; width: 1fr; }
    .zoomed #table.zoom { display: block; }
    .zoomed #hex.zoom { display: block; }
    .zoomed .empty { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,f1", "help", "help", show=False),
        Binding("left,backspace,h", "out", "out", show=False),
        Binding("escape", "stop", "stop, or out", show=False),
        Binding("g", "ask('go')", "go to", show=False),
        Binding("slash", "ask('find')", "search", show=False),
        Binding("f", "ask('filter')", "filter", show=False),
        Binding("n", "finding(1)", "next finding", show=False),
        Binding("N", "finding(-1)", "finding before", show=False),
        Binding("v", "findings", "findings", show=False),
        Binding("t", "transactions", "transactions", show=False),
        Binding("y", "copy", "copy", show=False),
        Binding("c", "command", "command", show=False),
        Binding("x", "full", "in full", show=False),
        Binding("r", "again", "read anew", show=False),
        Binding("z", "zoom", "zoom", show=False),
        Binding("q,ctrl+c,ctrl+q", "quit", "quit", show=False, priority=False),
        Binding("ctrl+z", "suspend_process", "suspend", show=False),
    ]
    PROMPTS: ClassVar[dict[str, str]] = {
        "go": "go to: offset, @position, time (-2h, 2026-11-21T07:58)",
        "find": "search (regular expression)",
        "filter": "filter: options of kdump inspect, as --key a --offset 10..",
    }

    def __init__(self, browser: Browser, typed: Typed) -> None:
        super().__init__(ansi_color=True)
        self.browser = browser
        self.typed = typed
        self.jobs = Jobs(self, self)
        self.check: Check | None = None
        self.awaited = 0
        """The direction in which somebody waits for a finding."""
        self.finding: Finding | None = None
        """The one that is stood on."""
        self.options = ""
        """Of the filter, as they were typed."""
        self.searched = ""
        self.asked = ""
        self.message = ("", "")
        self.full = False
        self.dumped: tuple[Any, Dump] | None = None
        self.laid: tuple[list[Row], int, tuple[Line, list[Line]]] | None = None
        """Rows, the room there was for them, and the table that they made."""
        self.places: list[tuple[int, int]] = []
        """Level and number of the row in each line of the tree."""
        self.title_bar, self.hex_bar, self.status = Bar(id="title", style="reverse"), Bar(id="bytes"), Bar(id="status")
        self.tree_pane, self.table_pane, self.hex_pane = Pane(id="tree"), Pane(id="table"), Pane(id="hex")

    def compose(self) -> ComposeResult:
        yield self.title_bar
        with Horizontal(id="panes"):
            yield self.table_pane
            yield Bar(id="gap")
            yield self.tree_pane
        yield self.hex_bar
        yield self.hex_pane
        yield Input(id="prompt", compact=True)
        yield self.status
        keys = Bar(id="keys", style="reverse")
        keys.say((KEYS, ""))
        yield keys

    def on_mount(self) -> None:
        panes = self.query_one("#panes")
        panes.move_child(self.tree_pane, before=0)
        panes.move_child(self.query_one("#gap"), after=self.tree_pane)
        self.table_pane.focus()
        self.set_interval(0.25, self._progress)
        self._look("opening", lambda job: self.browser.open(job.met))

    def on_resize(self) -> None:
        self.screen.set_class(self.size.width >= 140, "wide")
        self.call_after_refresh(self._redraw)

    def _redraw(self) -> None:
        if self.browser.levels:
            self.dumped = None
            self._draw()

    # Getting somewhere

    def _look(
        self, what: str, work: Callable[[Job], list[Level] | None], then: Callable[[], None] | None = None
    ) -> None:
        """Read levels, and be there."""

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

        self.jobs.start("look", what, work, arrived)

    def _enter(self) -> None:
        browser = self.browser
        row, depth = browser.level.row, browser.depth
        if row is None or row.type in ("field", "note"):
            return
        if depth + 1 < len(browser.levels) and browser.levels[depth + 1].owner is row:
            browser.depth += 1
            self._draw()
            return
        self._look(f"reading {row.label}", lambda job: browser.enter(depth, row, job.met))

    def action_out(self) -> None:
        browser = self.browser
        self.jobs.cancel("look")
        if browser.levels and browser.depth > 0:
            browser.depth -= 1
            self._draw()

    def action_stop(self) -> None:
        if self.query_one("#prompt", Input).display:
            self._close_prompt()
        elif self.jobs.cancel("look"):
            self.trouble("stopped")
        elif self.check is not None and self.jobs.cancel("check"):
            self.check.running, self.awaited = False, 0
            self.trouble(f"the check was stopped: {self.check.summary()}")
        else:
            self.action_out()

    def action_again(self) -> None:
        if self.browser.levels:
            self.dumped = None
            self._look("reading it anew", lambda job: self.browser.again(job.met))

    def on_pane_moved(self, message: Pane.Moved) -> None:
        browser = self.browser
        if not browser.levels or message.is_stale:
            return
        self.message = ("", "")
        if message.pane is self.table_pane:
            self._stand(browser.depth, message.number)
        elif message.pane is self.tree_pane:
            depth, number = self.places[message.number]
            rows = browser.levels[max(0, depth)].rows
            self._stand(max(0, depth), max(0, min(number, len(rows) - 1)))
            if not 0 <= number < len(rows):  # it is an ellipsis
                self._more(1, down=number > 0)
        else:
            self._follow_hex(message.number)

    def _stand(self, depth: int, number: int) -> None:
        """On another row; what was open below the one before is left."""
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
                pane.stand(len(pane.lines) if down else 0)
            return
        if pane is self.tree_pane and message.count:
            return  # it ends where the top level ends, and that moves with the table
        if not message.count:
            if (level.last if down else level.first) or not level.rows:
                self._stand(browser.depth, len(level.rows) - 1 if down else 0)
                return

            def there(part: Part) -> None:
                if level is not browser.level:
                    return
                level.put(part, len(part.rows) if down else 0)
                browser.settle(browser.levels[: browser.depth + 1], browser.depth)
                self._draw()

            what = "looking for the end" if down else "reading"
            self.jobs.start("look", what, lambda job: browser.end(level, down=down, met=job.met), there)
            return
        self._more(message.count, down=down)

    def _more(self, count: int, *, down: bool) -> None:
        """So many rows further than those that are at hand."""
        browser, level = self.browser, self.browser.level
        if (level.last if down else level.first) or not level.rows or "look" in self.jobs.running:
            return

        def more(part: Part) -> None:
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

        wanted = count + self.table_pane.room
        self.jobs.start("look", "reading", lambda job: browser.more(level, down=down, count=wanted, met=job.met), more)

    def on_pane_entered(self, message: Pane.Entered) -> None:
        if not self.browser.levels or message.is_stale:
            return
        if message.pane is self.tree_pane:
            depth, number = self.places[message.number]
            if depth < 0 or 0 <= number < len(self.browser.levels[depth].rows):
                self._stand(max(0, depth), number)
                self._enter()
        elif message.pane is self.table_pane:
            self._enter()
        elif self.dumped is not None and message.number < len(self.dumped[1].lines):
            self._enter_field(self.dumped[1].lines[message.number], self.dumped[1])

    # The hexdump

    def _follow_hex(self, number: int) -> None:
        """The table stands where the hexdump does, as far as it has that."""
        level = self.browser.level
        if self.dumped is None or number >= len(self.dumped[1].lines):
            return
        dump, line = self.dumped[1], self.dumped[1].lines[number]
        rows = level.rows
        if rows and rows[0].type == "field" and line.field is not None:
            wanted = dump.fields[line.field]
            found = next((n for n, row in enumerate(rows) if _same(row.item, wanted)), None)
        elif rows and rows[0].type in ("header", "record"):
            found = next((n for n, row in enumerate(rows) if _record_of(row) == line.record), None)
        else:
            found = None
        if found is not None and found != level.cursor:
            self.jobs.cancel("look")
            level.cursor = found
            self.browser.settle(self.browser.levels[: self.browser.depth + 1], self.browser.depth)
            self._draw_lists()
        self._say_field(line, dump)

    def _enter_field(self, line: Line, dump: Dump) -> None:
        """From a line of the hexdump to the row of its field."""
        browser = self.browser
        level, row = browser.level, browser.level.row
        if line.field is None or row is None or row.type not in ("batch", "record", "header", "entry", "region"):
            return
        wanted = dump.fields[line.field]
        depth = browser.depth

        def work(job: Job) -> list[Level] | None:
            levels = browser.levels[: depth + 1]
            subject = row
            if row.type == "batch":
                records = browser.enter(depth, row, job.met)
                if records is None:
                    return None
                levels = records
                subject = next((r for r in levels[-1].rows if _record_of(r) == wanted.record), levels[-1].rows[0])
                levels[-1].stand(subject.key)
            with browser.lock:
                fields = browser.places.into(subject, levels[-1])
                if fields is None:
                    return None
                part = fields.listing.head(10_000, job.met)
                number = next((n for n, each in enumerate(part.rows) if _same(each.item, wanted)), 0)
                return [*levels, fields.put(part, number)]

        del level
        self._look("reading", work)

    def _detail(self) -> None:
        """The bytes of what one stands on."""
        browser = self.browser
        level, row = browser.level, browser.level.row
        if row is None:
            self.dumped = None
            self.hex_bar.say((" nothing here", "dim"))
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

        def done(dump: Dump) -> None:
            if browser.level is not level or level.row is None or level.row.key != row.key:
                return
            if finding is not None and self._is_at(finding, within):
                dump = browser.places.with_finding(dump, finding, room)
            self.dumped = (key, dump)
            if row.type == "batch" and "crc?" in "".join(row.cells):
                self._renew(level, row)
            self._place(row, subject, fresh=True)

        self.jobs.start(
            "detail", "reading", lambda job: browser.dump(subject, within, room, full=full, met=job.met), done
        )

    def _renew(self, level: Level, row: Row) -> None:
        """Its bytes have been read, so that its checksum can be told."""
        level.rows = [self.browser.renewed(each) if each is row else each for each in level.rows]
        self._draw_lists()

    @staticmethod
    def _has(dump: Dump, subject: Row) -> bool:
        return subject.type != "record" or dump.shown[0] <= subject.item.index <= dump.shown[1]

    @staticmethod
    def _is_at(finding: Finding, level: Level) -> bool:
        return finding.file in (level.path, level.file.at.path if level.file else None)

    def _place(self, row: Row, subject: Row, *, fresh: bool = False) -> None:
        """Stand in the hexdump where the row is."""
        assert self.dumped is not None
        dump = self.dumped[1]
        number = 0
        marked: frozenset[int] = frozenset()
        if row.type == "field":
            lines = [
                n
                for n, line in enumerate(dump.lines)
                if line.field is not None and _same(row.item, dump.fields[line.field])
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
        if row.type == "record":  # its first line on top, for what comes is what one wants to see
            self.hex_pane.top = max(0, min(number, len(dump.lines) - self.hex_pane.room))
            self.hex_pane.refresh()
        more = "" if len(dump.lines) <= self.hex_pane.room else f", {len(dump.lines)} lines"
        self.hex_bar.say((f"─ {printable(dump.title)}{more} ".ljust(self.size.width, "─"), "dim"))
        self._say_place()

    @staticmethod
    def _line_of(finding: Finding, dump: Dump) -> int:
        for number, line in enumerate(dump.lines):
            if line.field is not None:
                field = dump.fields[line.field]
                if not field.inner and field.position <= finding.position < field.position + field.size:
                    return number if finding.size and finding.size < 61 else 0
        return 0

    # What is on the screen

    def _draw(self) -> None:
        self._draw_lists()
        self._say_place()
        self._detail()

    def _draw_lists(self) -> None:
        browser = self.browser
        level = browser.level
        room = max(20, self.table_pane.size.width)
        if self.laid is None or self.laid[0] is not level.rows or self.laid[1] != room:
            self.laid = (level.rows, room, table(level.listing.columns, level.rows, room))
        head, lines = self.laid[2]
        self.table_pane.show(lines, level.cursor, head if lines else None, keep=True)
        top = printable(path_text(browser.places.path))
        lines, self.places = tree(browser.levels, top, max(10, self.tree_pane.size.width))
        here = (browser.depth, level.cursor)
        number = self.places.index(here) if here in self.places else 0
        self.tree_pane.show(lines, number, keep=True)
        names = [top, *(each.owner.label for each in browser.levels[1 : browser.depth + 1] if each.owner is not None)]
        kinds = f"   filter {self.options}" if self.options else ""
        kinds, said = printable(kinds), " › ".join(names)
        room = self.size.width - 15 - width(kinds)
        while width(said) > room and len(said) > 8:
            said = "…" + said[2:]
        self.title_bar.say((f" kdump browse  {said}{kinds}", ""))

    def _say_place(self) -> None:
        """The line below: trouble, a finding, or where in the file one is."""
        if self.message[0]:
            self.status.say(self.message)
            return
        level = self.browser.level
        row = level.row
        if row is None:
            what = "no batch or record is chosen by the filter" if self.options else "nothing in here"
            self.status.say((f" {what}", "torn"))
            return
        if row.type == "field":
            field = row.item
            wrong = f"WRONG: {field.wrong}  " if field.wrong else ""
            self.status.say((f" {wrong}{field.name} = {field.value}  {field.meaning}", "bad" if wrong else ""))
            return
        text = ""
        if isinstance(level.listing, Pages) and level.file is not None:
            size = level.file.length
            at = row.item.position
            text = (
                f" byte {at} of {size_text(size)}, {100 * at // max(1, size)}%" if size is not None else f" byte {at}"
            )
            remark = level.file.remark()
            text += f"; {remark}" if remark else ""
        elif level.last and level.first:
            text = f" {level.cursor + 1} of {len(level.rows)}"
        else:
            text = f" {row.key}"
        self.status.say((printable(path_text(text)), ""))

    def _say_field(self, line: Line, dump: Dump) -> None:
        if line.field is None:
            return
        field = dump.fields[line.field]
        wrong = f"WRONG: {field.wrong}  " if field.wrong else ""
        self.status.say((f" {wrong}{field.name} = {field.value}  {field.meaning}", "bad" if wrong else ""))

    def trouble(self, text: str) -> None:
        """Something to be told, until one moves on."""
        self.message = (" " + printable(path_text(text)), "torn")
        self.status.say(self.message)

    def _progress(self) -> None:
        for group in ("look", "check"):
            job = self.jobs.running.get(group)
            if job is None or (job.what == "reading" and not job.done):
                continue
            if group == "check" and self.message[0] and not self.awaited:
                continue
            far = f" {100 * min(job.done, job.total) // job.total}%" if job.total else ""
            far = far or (f" at byte {job.done}" if job.done else "")
            found = f", {self.check.serious} found" if group == "check" and self.check else ""
            self.status.say((f" {job.what} …{far}{found}  (Esc stops)", "dim"))
            return

    # The keys

    def action_help(self) -> None:
        self.push_screen(TextScreen("kdump browse: the keys", HELP, copies=False))

    def action_zoom(self) -> None:
        pane = self.focused if isinstance(self.focused, Pane) else self.table_pane
        zoomed = not self.screen.has_class("zoomed")
        for each in (self.tree_pane, self.table_pane, self.hex_pane):
            each.set_class(zoomed and each is pane, "zoom")
        self.query_one("#panes").set_class(zoomed and pane is self.hex_pane, "empty")
        self.hex_bar.set_class(zoomed and pane is not self.hex_pane, "empty")
        self.screen.set_class(zoomed, "zoomed")
        self.call_after_refresh(self._redraw)

    def action_full(self) -> None:
        self.full = not self.full
        self._draw()

    def action_copy(self) -> None:
        browser = self.browser
        if not browser.levels or browser.level.row is None:
            return
        level, row = browser.level, browser.level.row

        def done(text: str | None) -> None:
            if text is None:
                self.trouble("there is no JSON of this line")
                return
            self.copy_to_clipboard(text)
            self.push_screen(TextScreen("JSON, copied if the terminal takes it (OSC 52)", text))

        self.jobs.start("say", "JSON", lambda job: json_of(browser, level, row), done)

    def action_command(self) -> None:
        if self.browser.levels:
            self.push_screen(TextScreen("shows the same", "\n".join(command_of(self.browser, self.options))))

    def action_ask(self, what: str) -> None:
        prompt = self.query_one("#prompt", Input)
        self.asked = what
        prompt.placeholder = self.PROMPTS[what]
        prompt.value = self.options if what == "filter" else ""
        prompt.display = True
        self.status.say((" " + self.PROMPTS[what] + "  (Enter does it, Esc leaves)", "dim"))
        prompt.focus()

    def _close_prompt(self) -> None:
        prompt = self.query_one("#prompt", Input)
        prompt.display = False
        self.table_pane.focus()
        self._say_place()

    def on_input_submitted(self, message: Input.Submitted) -> None:
        text = message.value.strip()
        self._close_prompt()
        if not self.browser.levels:
            return
        try:
            if self.asked == "filter":
                self._filter(text)
            elif self.asked == "go" and text:
                self._go(text)
            elif self.asked == "find":
                self._find(text or self.searched)
        except ValueError as error:
            self.trouble(str(error))

    def _go(self, text: str) -> None:
        browser = self.browser
        word = text.removeprefix("offset").removeprefix("--offset").strip()
        if word.isdecimal():
            self._look(f"looking for offset {word}", lambda job: browser.to_offset(int(word), job.met))
        elif text[0] == "@" and text[1:].strip().isdecimal():
            self._look(f"looking for byte {text[1:]}", lambda job: browser.to_position(int(text[1:]), job.met))
        else:
            time = self.typed.time(text)
            self._look(f"looking for {text}", lambda job: browser.to_time(time, job.met))

    def _find(self, text: str) -> None:
        if text:
            self.searched = text
            self._look(f"searching {text}", lambda job: self.browser.search(text, job.met))

    def _filter(self, text: str) -> None:
        self.browser.places.selection = self.typed.selection(text)
        self.options = text
        self.dumped = None
        self._look("filtering", lambda job: self.browser.again(job.met))

    def _unfilter(self) -> str:
        """What one jumps to may be filtered out: show all."""
        if not self.options:
            return ""
        self.options, self.browser.places.selection = "", Selection()
        return " (the filter is off)"

    # Findings and transactions

    def _here(self) -> str:
        """What a question is about: the partition that one is in, or all."""
        browser = self.browser
        inside = browser.depth > 0 and browser.directory()
        return inside or browser.places.path

    def _checked(self) -> Check:
        """The check of where one is, begun if there is none."""
        path = self._here()
        if self.check is not None and self.check.covers(path) and (self.check.running or self.check.place >= -1):
            return self.check
        check = self.check = Check(path)

        def hear(finding: Finding) -> None:
            if check.hear(finding) and check is self.check and self.awaited:
                self._step(self.awaited)

        def work(job: Job) -> None:
            def size(count: int) -> None:
                job.total = count

            limits = self.browser.places.limits
            checks.run(check, limits, lambda finding: self.jobs.tell(hear, finding), job.add, size)

        def done(_: None) -> None:
            check.running = False
            if self.awaited:
                self._step(self.awaited)
            elif not check.serious:
                self.trouble(check.summary())

        self.jobs.start("check", f"checking {printable(path_text(path))}", work, done)
        return check

    def action_finding(self, direction: int) -> None:
        if self.browser.levels:
            self._checked()
            self._step(direction)

    def _step(self, direction: int) -> None:
        check = self.check
        assert check is not None
        finding = check.step(direction)
        self.awaited = 0
        if finding is not None:
            self._to_finding(finding)
        elif direction > 0 and check.running:
            self.awaited = direction
        elif not check.serious:
            self.trouble(check.summary())
        else:
            self.trouble(f"no further finding: {check.summary()}" if direction > 0 else "no finding before this one")

    def _to_finding(self, finding: Finding) -> None:
        self.finding = finding
        assert self.check is not None
        note = self._unfilter()
        serious = [n for n, each in enumerate(self.check.findings) if each.severity != "info"]
        number = serious.index(self.check.place) + 1 if self.check.place in serious else 0
        told = (
            f" {number} of {len(serious)}{'…' if self.check.running else ''}{note}: {finding.severity} {finding.code}"
        )

        def then() -> None:
            self.dumped = None
            self.message = (printable(f"{told}: {finding.message}"), "bad" if finding.severity == "error" else "torn")

        browser = self.browser
        self._look(
            "going to the finding",
            lambda job: browser.reach(finding.file, position=finding.position, met=job.met),
            then,
        )

    def action_findings(self) -> None:
        if not self.browser.levels:
            return
        check = self._checked()

        def chosen(number: int | None) -> None:
            if number is not None:
                check.place = number
                self._to_finding(check.findings[number])

        self.push_screen(FindingsScreen(check), chosen)

    def action_transactions(self) -> None:
        if not self.browser.levels:
            return
        places = self.browser.places

        def chosen(found: Transaction | None) -> None:
            if found is None:
                return
            note = self._unfilter()
            told = f" {found.state} transaction of producer {found.producerId}/{found.producerEpoch}"
            told += f" ({found.transactionalId})" if found.transactionalId else ""
            told += f", offsets {found.firstOffset}..{found.lastOffset}, {found.records} records"
            told += f", marker at {found.markerOffset}" if found.markerOffset is not None else ""

            def then() -> None:
                self.message = (printable(told + note), "")

            browser = self.browser
            self._look(
                "going to the transaction",
                lambda job: browser.reach(found.file, position=found.position, met=job.met),
                then,
            )

        self.push_screen(TransactionsScreen(self._here(), places.limits, places.maker.zone, self.jobs), chosen)


def _same(one: Field, other: Field) -> bool:
    return (one.position, one.record, one.inner, one.name) == (other.position, other.record, other.inner, other.name)


def _record_of(row: Row) -> int | None:
    """The index of the record that a row is, or HEADER."""
    return row.item.index if row.type == "record" else HEADER if row.type == "header" else None
