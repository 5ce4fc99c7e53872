"""The `kdump browse` application: key bindings, prompts and their actions."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input

from kdump.browse.export import row_commands, row_json
from kdump.browse.finding_actions import FindingActions
from kdump.browse.pane_layout import PromptParsers as PromptParsers
from kdump.browse.panes import Pane
from kdump.browse.screens import HELP, TextScreen
from kdump.format.numbers import parse_long


class BrowseApp(FindingActions):
    """The complete application: binds keys to actions, and handles the prompts."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,f1", "help", "help", show=False),
        Binding("left,backspace,h", "out", "out", show=False),
        Binding("escape", "stop", "stop, or out", show=False),
        Binding("g", "ask('go')", "go to", show=False),
        Binding("slash", "ask('find')", "search", show=False),
        Binding("f", "ask('filter')", "filter", show=False),
        Binding("n", "finding(1)", "next finding", show=False),
        Binding("N", "finding(-1)", "previous finding", show=False),
        Binding("v", "findings", "findings", show=False),
        Binding("t", "transactions", "transactions", show=False),
        Binding("y", "copy", "copy", show=False),
        Binding("c", "command", "command", show=False),
        Binding("x", "full", "in full", show=False),
        Binding("r", "again", "read again", show=False),
        Binding("z", "zoom", "zoom", show=False),
        Binding("q,ctrl+c,ctrl+q", "quit", "quit", show=False, priority=False),
        Binding("ctrl+z", "suspend_process", "suspend", show=False),
    ]
    PROMPTS: ClassVar[dict[str, str]] = {
        "go": "go to: offset, @position, time (-2h, 2026-11-21T07:58)",
        "find": "search (regular expression)",
        "filter": "filter: options of kdump inspect, such as --key a --offset 10..",
    }

    def on_mount(self) -> None:
        panes = self.query_one("#panes")
        panes.move_child(self.tree_pane, before=0)
        panes.move_child(self.query_one("#gap"), after=self.tree_pane)
        self.table_pane.focus()
        self.set_interval(0.25, self._progress)
        self._look("opening", lambda job: self.browser.open(job.report_progress))

    def on_resize(self) -> None:
        self.screen.set_class(self.size.width >= 140, "wide")
        self.call_after_refresh(self._redraw)

    def action_stop(self) -> None:
        if self.query_one("#prompt", Input).display:
            self._close_prompt()
        elif self.jobs.cancel("look"):
            self.trouble("stopped")
        elif self.check is not None and self.jobs.cancel("check"):
            self.check.running, self.awaited = False, 0
            self.trouble(f"check stopped: {self.check.summary()}")
        else:
            self.action_out()

    def action_help(self) -> None:
        self.push_screen(TextScreen("kdump browse: keys", HELP, copies=False))

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
                self.trouble("this row has no JSON")
                return
            self.copy_to_clipboard(text)
            self.push_screen(TextScreen("JSON, copied if the terminal supports it (OSC 52)", text))

        self.jobs.start("say", "JSON", lambda job: row_json(browser, level, row), done)

    def action_command(self) -> None:
        if self.browser.levels:
            self.push_screen(
                TextScreen("commands that show the same", "\n".join(row_commands(self.browser, self.options)))
            )

    def action_ask(self, purpose: str) -> None:
        prompt = self.query_one("#prompt", Input)
        self.asked = purpose
        prompt.placeholder = self.PROMPTS[purpose]
        prompt.value = self.options if purpose == "filter" else ""
        prompt.cursor_position = len(prompt.value)
        prompt.display = True
        self.status.show((" " + self.PROMPTS[purpose] + "  (Enter confirms, Esc cancels)", "dim"))
        prompt.focus()

    def _close_prompt(self) -> None:
        prompt = self.query_one("#prompt", Input)
        prompt.display = False
        self.table_pane.focus()
        self._show_place()

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
        offset, position = parse_long(word), parse_long(text[1:].strip()) if text[0] == "@" else None
        if offset is not None and offset >= 0:
            self._look(f"looking for offset {word}", lambda job: browser.to_offset(offset, job.report_progress))
        elif position is not None and position >= 0:
            self._look(f"looking for byte {text[1:]}", lambda job: browser.to_position(position, job.report_progress))
        else:
            time = self.typed.time(text)
            self._look(f"looking for {text}", lambda job: browser.to_time(time, job.report_progress))

    def _find(self, text: str) -> None:
        if text:
            self.searched = text
            self._look(f"searching for {text}", lambda job: self.browser.search(text, job.report_progress))

    def _filter(self, text: str) -> None:
        self.browser.places.selection = self.typed.selection(text)
        self.options = text
        self.dumped = None
        self._look("filtering", lambda job: self.browser.again(job.report_progress))
