"""The `kdump browse` application: its main screen, the keys of the commands, and the signals that end it."""

from __future__ import annotations

import asyncio
import signal
from typing import Any, ClassVar

from textual import events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.widgets import Input

from kdump.browse import commands
from kdump.browse.browser import Browser
from kdump.browse.command_list import COMMANDS, NAMED
from kdump.browse.main_screen import MainScreen
from kdump.browse.prompt import PromptParsers
from kdump.signals import ENDING


class BrowseApp(App[None]):
    """Passes keys and typed lines on to the commands."""

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

    def __init__(self, browser: Browser, typed: PromptParsers) -> None:
        super().__init__(ansi_color=True)
        self.browser = browser
        self.main = MainScreen(browser, typed)
        commands.set_completions(self.main)

    def get_default_screen(self) -> MainScreen:
        return self.main

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

    def on_mount(self) -> None:
        if callable(signal.getsignal(signal.SIGCONT)):
            asyncio.get_running_loop().add_signal_handler(signal.SIGCONT, self._continue)

    def _continue(self) -> None:
        """Show the screen again after SIGCONT. Textual does this in the signal handler, which can wait for itself, and
        unless SIGTSTP came before, it does not end its input thread, without which the process does not end."""
        if self._driver is not None and not self.ended_by:
            self._driver.suspend_application_mode()
            self._driver.resume_application_mode()

    async def on_event(self, event: events.Event) -> None:
        """Take the key that answers a question; pass on all other events."""
        if isinstance(event, events.Key) and (then := self.main.state.takes_key) is not None:
            self.main.state.takes_key = None
            if self.browser.levels:
                self.main.show_place()
            if event.character and event.is_printable:
                then(event.character)
            return
        await super().on_event(event)

    def action_run(self, name: str) -> None:
        commands.run_command(self.main, NAMED[name])

    def action_stop(self) -> None:
        commands.stop(self.main)

    def on_input_submitted(self, message: Input.Submitted) -> None:
        commands.submit(self.main, message.value.strip())
