"""What the commands of the browser do, from their keys or as typed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from textual.widgets import Input

from kdump.browse import background_verify
from kdump.browse.background_jobs import Job
from kdump.browse.background_verify import BackgroundVerify
from kdump.browse.browser import NotFound
from kdump.browse.command_list import (
    COLUMN,
    DIRECTION,
    KEY,
    MARK,
    OPTION,
    PART,
    SCOPE,
    BrowseCommand,
    help_text,
    parse_command,
)
from kdump.browse.export import row_commands, row_json
from kdump.browse.histogram_screen import HistogramScreen
from kdump.browse.key_search import Hit, KeySearch, plan, run_search, typed_key
from kdump.browse.level import Level
from kdump.browse.list_screens import FindingsScreen, KeySearchScreen, MarksScreen, SortScreen, TransactionsScreen
from kdump.browse.main_screen import MainScreen
from kdump.browse.marks import LAST, LETTERS, Mark, mark_of, to_mark
from kdump.browse.prompt import PromptParsers
from kdump.browse.row_listings import BrowseRow
from kdump.browse.save import PARTS, Exists, parse_saved, save
from kdump.browse.scopes import SCOPES, TOPIC, Here, scope_of
from kdump.browse.screens import Overlay, TextScreen
from kdump.browse.sorting import SortOrder, chosen_order
from kdump.browse.time_histogram import Bin
from kdump.check.finding import INFO, Finding
from kdump.forensics.answers import Transaction
from kdump.format.count_text import plain_count
from kdump.format.numbers import parse_long
from kdump.format.size_text import size_text
from kdump.log.errors import SourceError
from kdump.log.run import Run
from kdump.log.selection import Selection
from kdump.render.amounts import duration_text
from kdump.render.escape import path_text, printable
from kdump.render.times import iso

MAX_COPIED = 256 * 1024
"""Size in bytes of the largest record that is copied: it is sent to the terminal, perhaps through ssh, and shown."""


class Commands:
    """The commands: each is a method of its name, which gets the typed argument and raises ValueError if that is
    wrong."""

    def __init__(self, screen: MainScreen, typed: PromptParsers) -> None:
        self.screen = screen
        self.browser = screen.browser
        self.jobs = screen.jobs
        self.typed = typed
        self.searched = ""
        """The last regular expression."""
        self.last_find: KeySearch | None = None
        """The last search for a key."""
        self.marked: dict[str, Mark] = {}
        """The marks, by letter."""
        screen.prompt.words = {
            COLUMN: self._column_names,
            DIRECTION: lambda: ["asc", "desc"],
            OPTION: lambda: list(typed.options),
            MARK: lambda: sorted(self.marked),
            PART: lambda: list(PARTS),
            KEY: self._keys_shown,
            SCOPE: lambda: list(SCOPES),
        }

    def ask(self, command: BrowseCommand) -> None:
        """Let the user type the argument of a command."""
        self.screen.prompt.open(command, self.screen.filter if command.name == "filter" else "")

    def run(self, command: BrowseCommand, argument: str = "") -> None:
        """Run a command; ask for its argument if it needs one. A wrong argument is reported in the status line."""
        if command.needs_argument and not argument:
            self.ask(command)
        else:
            self._run(command, argument)

    def _run(self, command: BrowseCommand, argument: str) -> None:
        if not self.browser.levels and command.name not in ("quit", "help"):
            if "look" in self.jobs.running:
                self.screen.trouble(f"still opening; {command.usage} needs something to work on")
            return
        method: Callable[[str], None] = getattr(self, command.name)
        try:
            method(argument)
        except ValueError as error:
            self.screen.trouble(str(error))

    def submit(self, text: str) -> None:
        """Run what was typed into the prompt."""
        prompt = self.screen.prompt
        prompt.note(text)
        self.screen.close_prompt()
        if prompt.asked.name != "command":
            if text or prompt.asked.name in ("filter", "search", "find"):
                self._run(prompt.asked, text)
            return
        try:
            parsed = parse_command(text)
        except ValueError as error:
            self.screen.trouble(str(error))
            return
        if parsed is not None:
            self.run(*parsed)

    def stop(self) -> None:
        """Close the prompt, or end the newest of the jobs that run, or go up one level."""
        screen, check, search = self.screen, self.screen.check, self.last_find
        if screen.prompt.display:
            screen.close_prompt()
        elif self.jobs.cancel("look"):
            screen.trouble("stopped")
        elif self.jobs.cancel("save"):
            screen.trouble("stopped; nothing was saved")
        elif search is not None and self.jobs.cancel("find"):
            search.running = False
            screen.trouble(search.summary())
        elif check is not None and self.jobs.cancel("check"):
            check.running, check.stopped, screen.awaited = False, True, 0
            screen.trouble(check.summary())
        else:
            screen.leave()

    def _show(self, overlay: Overlay, chosen: Callable[[Any], None] = lambda answer: None) -> None:
        """Show a screen, and call `chosen` with what is chosen from it."""
        self.screen.app.push_screen(overlay, lambda answer: None if answer is None else chosen(answer))

    # -- the screen

    def out(self, argument: str) -> None:
        self.screen.leave()

    def quit(self, argument: str) -> None:
        self.screen.app.exit()

    def help(self, argument: str) -> None:
        text = help_text(self.screen.size.width)
        self._show(TextScreen("kdump browse: keys and commands", text, copies=False))

    def zoom(self, argument: str) -> None:
        self.screen.zoom()

    def full(self, argument: str) -> None:
        self.screen.hex.full = not self.screen.hex.full
        self.screen.draw()

    def reload(self, argument: str) -> None:
        self.screen.reload()

    def filter(self, text: str) -> None:
        self.browser.places.selection = self.typed.selection(text)
        self.screen.filter = text
        self.screen.hex.dumped = None
        self.screen.look("filtering", lambda job: self.browser.again(job.run))

    def shell(self, argument: str) -> None:
        found = row_commands(self.browser, self.screen.filter)
        self._show(TextScreen("commands that show the same", "\n".join(found)))

    # -- going to a place

    def go(self, text: str) -> None:
        word = text.removeprefix("offset").removeprefix("--offset").strip()
        offset, position = parse_long(word), parse_long(text[1:].strip()) if text[0] == "@" else None
        if offset is not None and offset >= 0:
            self.offset(word)
        elif position is not None and position >= 0:
            self.screen.look(f"looking for byte {text[1:]}", lambda job: self.browser.to_position(position, job.run))
        else:
            self.time(text)

    def offset(self, text: str) -> None:
        offset = parse_long(text)
        if offset is None or offset < 0:
            raise ValueError(f"{text!r} is not an offset")
        self.screen.look(f"looking for offset {text}", lambda job: self.browser.to_offset(offset, job.run))

    def time(self, text: str) -> None:
        time = self.typed.time(text)
        self.screen.look(f"looking for {text}", lambda job: self.browser.to_time(time, job.run))

    def search(self, text: str) -> None:
        text = text or self.searched
        if text:
            self.searched = text
            self.screen.look(f"searching for {text}", lambda job: self.browser.search(text, job.run))

    def _visit(self, what: str, reach: Callable[[Run], list[Level]], arrived: Callable[[str], tuple[str, str]]) -> None:
        """Go to a place without the filter, which may hide it, and show the text and style that `arrived` returns for a
        note about the filter."""
        note = " (filter switched off)" if self.screen.filter else ""
        if note:
            self.screen.filter, self.browser.places.selection = "", Selection()
        self.screen.look(
            f"going to the {what}",
            lambda job: reach(job.run),
            lambda: self.screen.say(*arrived(note)),
        )

    # -- findings and transactions

    def _covered(self) -> str:
        """Return the path that a check covers: the current partition's directory, or else the browsed path."""
        inside = self.browser.depth > 0 and self.browser.directory()
        return inside or self.browser.places.path

    def _checked(self, *, again: bool = False) -> BackgroundVerify:
        """Return the check that covers the current place; start one if there is none. `again`: also if it was
        stopped."""
        screen, path = self.screen, self._covered()
        if screen.check is not None and screen.check.covers(path) and not (again and screen.check.stopped):
            return screen.check
        check = screen.check = BackgroundVerify(path)

        def hear(finding: Finding) -> None:
            if check.add(finding) and check is screen.check and screen.awaited:
                self._step(screen.awaited)

        def work(job: Job) -> None:
            def found(finding: Finding) -> None:
                self.jobs.call_in_app(hear, finding)

            background_verify.run(check, replace(job.run, limits=self.browser.places.limits, found=found))

        def done(_: None) -> None:
            check.running = False
            if screen.awaited:
                self._step(screen.awaited)
            elif not check.serious:
                screen.trouble(check.summary())

        self.jobs.start("check", f"checking {printable(path_text(path))}", work, done)
        return check

    def next(self, argument: str) -> None:
        self._checked()
        self._step(1)

    def previous(self, argument: str) -> None:
        self._checked()
        self._step(-1)

    def _step(self, direction: int) -> None:
        screen, check = self.screen, self.screen.check
        assert check is not None
        finding = check.step(direction)
        screen.awaited = 0
        if finding is not None:
            self._to_finding(check, finding)
        elif direction > 0 and check.running:
            screen.awaited = direction
        elif direction > 0 and check.stopped:
            self._checked(again=True)
            self._step(direction)
        elif not check.serious:
            screen.trouble(check.summary())
        else:
            screen.trouble(f"no further finding: {check.summary()}" if direction > 0 else "no earlier finding")

    def _to_finding(self, check: BackgroundVerify, finding: Finding) -> None:
        serious = [n for n, each in enumerate(check.findings) if each.severity != INFO]
        number = serious.index(check.place) + 1 if check.place in serious else 0
        count = f"{number} of {len(serious)}{'…' if check.running else ''}"

        def arrived(note: str) -> tuple[str, str]:
            self.screen.hex.visit(finding)
            text = f"{count}{note}: {finding.severity} {finding.code}: {finding.message}"
            return text, "bad" if finding.severity == "error" else "torn"

        self._visit(
            "finding",
            lambda run: self.browser.reach(finding.file, position=finding.position, run=run),
            arrived,
        )

    def findings(self, argument: str) -> None:
        check = self._checked()

        def chosen(number: int) -> None:
            check.place = number
            self._to_finding(check, check.findings[number])

        self._show(FindingsScreen(check), chosen)

    def transactions(self, argument: str) -> None:
        places = self.browser.places

        def chosen(found: Transaction) -> None:
            text = f"{found.state} transaction of producer {found.producerId}/{found.producerEpoch}"
            text += f" ({found.transactionalId})" if found.transactionalId else ""
            text += f", offsets {found.firstOffset}..{found.lastOffset}, {plain_count(found.records, 'record')}"
            text += f", marker at {found.markerOffset}" if found.markerOffset is not None else ""
            self._visit(
                "transaction",
                lambda run: self.browser.reach(found.file, position=found.position, run=run),
                lambda note: (text + note, ""),
            )

        self._show(TransactionsScreen(self._covered(), places.limits, places.maker.zone, self.jobs), chosen)

    # -- marks

    def mark(self, letter: str) -> None:
        if not letter:
            self.screen.ask_key("mark: press a letter or digit", self.mark)
            return
        mark = mark_of(self.browser)
        if letter not in LETTERS or len(letter) != 1:
            self.screen.trouble(f"{letter!r} is not a mark; use a letter or a digit")
        elif mark is None:
            self.screen.trouble("there is nothing to mark here")
        else:
            self.marked[letter] = mark
            self.screen.say(f"mark {letter}: {mark.label}")

    def jump(self, letter: str) -> None:
        known = " ".join(sorted(self.marked))
        if not letter:
            self.screen.ask_key(f"go to mark: press its letter ({known or 'none is set'})", self.jump)
        elif letter in self.marked:
            mark = self.marked[letter]
            self._to_mark(mark, f"mark {letter}: {mark.label}")
        else:
            hint = f"set are {known}" if known else "press m and a letter to set one"
            self.screen.trouble(f"mark {letter!r} is not set; {hint}")

    def marks(self, argument: str) -> None:
        if not self.marked:
            raise ValueError("no mark is set; press m and a letter to set one")
        self._show(MarksScreen(self.marked), self.jump)

    def _to_mark(self, mark: Mark, description: str) -> None:
        """Go to a place, and set the mark ' where the jump began."""
        before = mark_of(self.browser)
        changed = ""

        def reach(run: Run) -> list[Level]:
            nonlocal changed
            levels, changed = to_mark(self.browser, mark, run)
            return levels

        def arrived(note: str) -> tuple[str, str]:
            if before is not None:
                self.marked[LAST] = before
            return (f"{description}{note}; {changed}", "torn") if changed else (f"{description}{note}", "")

        self._visit("place", reach, arrived)

    # -- the order of the table

    def sort(self, argument: str) -> None:
        level = self.browser.level
        if not level.listing.columns:
            raise ValueError("this list has no columns to sort by")
        if argument in ("off", "none"):
            self._sort(None)
        elif argument:
            self._sort(chosen_order(argument, level.listing.columns))
        else:
            self._show(SortScreen(level.listing.columns, level.order), lambda name: self._sort_by(name, level))

    def _sort_by(self, column: str, level: Level) -> None:
        """Sort by the column that was chosen in the list; by the same one again: the other way round. `level`: whose
        columns were listed."""
        order = level.order
        if level is not self.browser.level:  # what was still being read when the list was opened has arrived
            self.screen.trouble("the table has changed; press s to sort it")
        elif not column:
            self._sort(None)
        elif order is not None and order.column == column:
            self._sort(SortOrder(column, not order.descending))
        else:
            self._sort(chosen_order(column, level.listing.columns))

    def reverse(self, argument: str) -> None:
        order = self.browser.level.order
        if order is None:
            raise ValueError("the list is in the order of the files; press s to sort it")
        self._sort(SortOrder(order.column, not order.descending))

    def _sort(self, order: SortOrder | None) -> None:
        browser, depth, level = self.browser, self.browser.depth, self.browser.level
        if order is None and level.order is None:
            return
        description = "sorting" if order is None else f"sorting by {order.column}: reading all rows"
        job = self.screen.look(description, lambda job: browser.sort(depth, order, job.run))
        job.total = (level.file.length or 0) if level.file is not None else 0

    def _column_names(self) -> list[str]:
        columns = self.browser.level.listing.columns if self.browser.levels else []
        return [*(column.name for column in columns), "off"] if columns else []

    # -- copies of a row

    def copy(self, argument: str) -> None:
        browser, app = self.browser, self.screen.app
        level, row = browser.level, browser.level.row
        if row is None:
            return
        subject = level.owner if row.type == "field" and level.owner is not None else row
        if subject.type == "record" and subject.item.end - subject.item.start > MAX_COPIED:
            size = size_text(subject.item.end - subject.item.start)
            raise ValueError(f"{size} is too much to copy through the terminal; to save it, press w and type json FILE")

        def done(text: str | None) -> None:
            if text is None:
                self.screen.trouble("this row has no JSON")
                return
            app.copy_to_clipboard(text)
            self._show(TextScreen("JSON, copied if the terminal supports it (OSC 52)", text))

        self.jobs.start("say", "JSON", lambda job: row_json(browser, level, row), done)

    def save(self, argument: str) -> None:
        part, path = parse_saved(argument)
        level = self.browser.level
        if level.row is None:
            raise ValueError("nothing is selected")
        self._save(level, level.row, part, path, replaces=False)

    def _save(self, level: Level, row: BrowseRow, part: str, path: str, *, replaces: bool) -> None:
        screen = self.screen

        def work(job: Job) -> tuple[str, bool]:
            try:
                return save(self.browser, level, row, part, path, job.run, replaces=replaces), True
            except Exists as error:
                return str(error), False

        def done(answer: tuple[str, bool]) -> None:
            text, is_saved = answer
            if is_saved or replaces:
                screen.trouble(text)
            elif not screen.is_active or isinstance(screen.focused, Input):
                screen.trouble(f"{path} exists: not saved")  # what is being typed is no answer
            else:
                screen.ask_key(f"{path} exists: overwrite it? y: yes, any other key: no", overwrite)

        def overwrite(key: str) -> None:
            if key in ("y", "Y"):
                self._save(level, row, part, path, replaces=True)
            else:
                screen.trouble("not saved")

        self.jobs.start("save", "saving", work, done)

    # -- what reads a whole segment, partition or topic

    def find(self, text: str) -> None:
        """Search for a key; without one, show the last search again."""
        if text:
            self._find(text)
        search = self.last_find
        if search is None:
            raise ValueError("type a key to search for")

        def progress() -> str:
            job = self.jobs.running.get("find")
            if job is None or search is not self.last_find:
                search.running = False
                return ""
            return f"searching … {100 * min(job.done, job.total) // job.total}%: " if job.total else "searching …: "

        def chosen(hit: Hit) -> None:
            self._to_mark(hit.mark, f"key {search.text!r}: {hit.mark.label}")

        self._show(KeySearchScreen(search, progress, self.browser.places.maker.zone, self.jobs), chosen)

    def _find(self, text: str) -> None:
        here = Here.of(self.browser)
        if here.directory is None and here.segment is None:
            raise ValueError("no topic is selected; select one of its partitions to search it for a key")
        search = self.last_find = KeySearch(text, typed_key(text))

        def work(job: Job) -> None:
            try:
                scope = scope_of(here, TOPIC)
                job.total = scope.size
                run_search(search, plan(search, scope), replace(job.run, limits=self.browser.places.limits))
            except (SourceError, OSError, NotFound) as error:
                search.note(str(error))

        def done(_: None) -> None:
            search.running = False
            self.screen.trouble(search.summary())
            if isinstance(self.screen.app.screen, KeySearchScreen):
                self.screen.app.screen.fill()

        self.jobs.start("find", f"searching for key {printable(text)}", work, done)

    def _keys_shown(self) -> list[str]:
        """Return the keys of the records in the table, as far as they can be typed."""
        rows = self.browser.level.rows if self.browser.levels else []
        keys = (bytes(row.item.key or b"") for row in rows if row.type == "record" and row.item.keySize <= 64)
        texts = (key.decode("utf-8", "replace") for key in keys)
        return sorted({text for text in texts if text and text.isprintable() and " " not in text and "�" not in text})

    def histogram(self, argument: str) -> None:
        here, places = Here.of(self.browser), self.browser.places
        if argument and argument not in SCOPES:
            raise ValueError(f"{argument!r} is not a scope; use {', '.join(SCOPES)}")
        zone = places.maker.zone

        def chosen(each: Bin) -> None:
            label = f"first batch of {duration_text(each.width)} from {iso(each.start, zone)} on"
            self._to_mark(Mark(each.path, each.position, None, None, label), label)

        self._show(HistogramScreen(here, argument or here.scope, places.limits, zone, self.jobs), chosen)
