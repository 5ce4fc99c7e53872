"""The `kdump browse` application: the keys and what the commands do."""

from __future__ import annotations

import asyncio
import signal
from typing import Any, ClassVar

from textual import events
from textual.binding import Binding, BindingType

from kdump.browse.command_line import CommandLine
from kdump.browse.command_list import COMMANDS, help_text
from kdump.browse.export import row_commands, row_json
from kdump.browse.pane_layout import PromptParsers as PromptParsers
from kdump.browse.panes import Pane
from kdump.browse.screens import TextScreen
from kdump.format.numbers import parse_long
from kdump.format.size_text import size_text
from kdump.signals import ENDING

MAX_COPIED = 256 * 1024
"""Size in bytes of the largest record that is copied: it is sent to the terminal, perhaps through ssh, and shown."""


class BrowseApp(CommandLine):
    """The complete application: binds keys to commands, and runs them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(",".join(command.keys), f"run('{command.name}')", command.name, show=False, priority=False)
            for command in COMMANDS
            if command.keys
        ),
        Binding("escape", "stop", "stop, or out", show=False),
        Binding("ctrl+z", "suspend_process", "suspend", show=False),
    ]

    ended_by = 0
    """Number of the signal that ended it."""

    async def run_async(self, *arguments: Any, **options: Any) -> Any:
        """Run until it is left, or one of ENDING arrives: asyncio would discard what their handlers raise."""
        loop = asyncio.get_running_loop()
        for number in ENDING:
            if callable(signal.getsignal(number)):
                loop.add_signal_handler(number, self._end_by, number)
        return await super().run_async(*arguments, **options)

    def _end_by(self, number: int) -> None:
        self.ended_by = number
        self.exit()

    def _continue(self) -> None:
        """Show the screen again after SIGCONT. Textual does this in the signal handler, which can wait for itself, and
        unless SIGTSTP came before, it does not end its input thread, without which the process does not end."""
        if self._driver is not None and not self.ended_by:
            self._driver.suspend_application_mode()
            self._driver.resume_application_mode()

    async def on_event(self, event: events.Event) -> None:
        """Take the key that answers a question; pass on all other events."""
        if isinstance(event, events.Key) and self.takes_key is not None:
            then, self.takes_key = self.takes_key, None
            if self.browser.levels:
                self._show_place()
            if event.character and event.is_printable:
                then(event.character)
            return
        await super().on_event(event)

    def on_mount(self) -> None:
        if callable(signal.getsignal(signal.SIGCONT)):
            asyncio.get_running_loop().add_signal_handler(signal.SIGCONT, self._continue)
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
        if self.prompt.display:
            self.close_prompt()
        elif self.jobs.cancel("look"):
            self.trouble("stopped")
        elif self.jobs.cancel("save"):
            self.trouble("stopped; nothing was saved")
        elif self.search is not None and self.jobs.cancel("find"):
            self.search.running = False
            self.trouble(self.search.summary())
        elif self.check is not None and self.jobs.cancel("check"):
            self.check.running, self.check.stopped, self.awaited = False, True, 0
            self.trouble(self.check.summary())
        else:
            self.action_out()

    def run_out(self, argument: str) -> None:
        self.action_out()

    def run_quit(self, argument: str) -> None:
        self.exit()

    def run_help(self, argument: str) -> None:
        self.push_screen(TextScreen("kdump browse: keys and commands", help_text(self.size.width), copies=False))

    def run_zoom(self, argument: str) -> None:
        pane = self.focused if isinstance(self.focused, Pane) else self.table_pane
        zoomed = not self.screen.has_class("zoomed")
        for each in (self.tree_pane, self.table_pane, self.hex_pane):
            each.set_class(zoomed and each is pane, "zoom")
        self.query_one("#panes").set_class(zoomed and pane is self.hex_pane, "empty")
        self.hex_bar.set_class(zoomed and pane is not self.hex_pane, "empty")
        self.screen.set_class(zoomed, "zoomed")
        self.call_after_refresh(self._redraw)

    def run_full(self, argument: str) -> None:
        self.full = not self.full
        self._draw()

    def run_copy(self, argument: str) -> None:
        browser = self.browser
        if not browser.levels or browser.level.row is None:
            return
        level, row = browser.level, browser.level.row
        subject = level.owner if row.type == "field" and level.owner is not None else row
        if subject.type == "record" and subject.item.end - subject.item.start > MAX_COPIED:
            size = size_text(subject.item.end - subject.item.start)
            self.trouble(f"{size} is too much to copy through the terminal; to save it, press w and type json FILE")
            return

        def done(text: str | None) -> None:
            if text is None:
                self.trouble("this row has no JSON")
                return
            self.copy_to_clipboard(text)
            self.push_screen(TextScreen("JSON, copied if the terminal supports it (OSC 52)", text))

        self.jobs.start("say", "JSON", lambda job: row_json(browser, level, row), done)

    def run_shell(self, argument: str) -> None:
        self.push_screen(TextScreen("commands that show the same", "\n".join(row_commands(self.browser, self.options))))

    def run_go(self, text: str) -> None:
        browser = self.browser
        word = text.removeprefix("offset").removeprefix("--offset").strip()
        offset, position = parse_long(word), parse_long(text[1:].strip()) if text[0] == "@" else None
        if offset is not None and offset >= 0:
            self.run_offset(word)
        elif position is not None and position >= 0:
            self._look(f"looking for byte {text[1:]}", lambda job: browser.to_position(position, job.report_progress))
        else:
            self.run_time(text)

    def run_offset(self, text: str) -> None:
        offset = parse_long(text)
        if offset is None or offset < 0:
            raise ValueError(f"{text!r} is not an offset")
        self._look(f"looking for offset {text}", lambda job: self.browser.to_offset(offset, job.report_progress))

    def run_time(self, text: str) -> None:
        time = self.typed.time(text)
        self._look(f"looking for {text}", lambda job: self.browser.to_time(time, job.report_progress))

    def run_search(self, text: str) -> None:
        text = text or self.searched
        if text:
            self.searched = text
            self._look(f"searching for {text}", lambda job: self.browser.search(text, job.report_progress))

    def run_filter(self, text: str) -> None:
        self.browser.places.selection = self.typed.selection(text)
        self.options = text
        self.dumped = None
        self._look("filtering", lambda job: self.browser.again(job.report_progress))
