"""The line in which commands and their arguments are typed: with a history, and completion by Tab."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input

from kdump.browse.command_list import BrowseCommand
from kdump.browse.completion import Cycle

MAX_HISTORY = 100
"""Maximum number of lines that are kept, for each command."""


class Prompt(Input):
    """The line. `complete` returns the texts that a line can be completed to; `announce` shows the candidates."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete(1)", "complete", show=False),
        Binding("shift+tab", "complete(-1)", "complete backward", show=False),
        Binding("up,ctrl+p", "recall(-1)", "earlier line", show=False),
        Binding("down,ctrl+n", "recall(1)", "later line", show=False),
    ]

    def __init__(self, complete: Callable[[str], list[str]], announce: Callable[[str], None], *, id: str) -> None:
        super().__init__(id=id, compact=True, select_on_focus=False)
        self._complete = complete
        self._announce = announce
        self._cycle: Cycle | None = None
        self._completed = ""
        """The line as the last completion has left it."""
        self._lines: dict[str, list[str]] = {}
        self._history: list[str] = []
        self._at = 0

    def validate_value(self, value: str) -> str:
        """Return the text without control characters, which pasted text may contain."""
        return "".join(letter for letter in value if letter.isprintable())

    def open(self, command: BrowseCommand, text: str, hint: str) -> None:
        """Show the line, to type an argument of the command."""
        self._history = self._lines.setdefault(command.name, [])
        self._at = len(self._history)
        self._cycle = None
        self.placeholder = hint
        self._set(text)
        self.display = True
        self.focus()

    def note(self, text: str) -> None:
        """Add a line to the history."""
        if text:
            if text in self._history:
                self._history.remove(text)
            self._history.append(text)
            del self._history[:-MAX_HISTORY]

    def _set(self, text: str) -> None:
        self.value = text
        self.cursor_position = len(text)

    def action_complete(self, direction: int) -> None:
        if self._cycle is None or self.value != self._completed:
            found = self._complete(self.value)
            if not found:
                self._announce(" no completion")
                return
            self._cycle = Cycle(found)
        text = self._cycle.step(direction)
        only = len(self._cycle.found) == 1
        self._set(text + " " if only and not text.endswith("/") else text)
        self._completed = self.value
        self._announce("" if only else self._cycle.shown(max(20, self.app.size.width)))
        if only:
            self._cycle = None

    def action_recall(self, step: int) -> None:
        at = max(0, min(self._at + step, len(self._history)))
        if at != self._at:
            self._at = at
            self._set(self._history[at] if at < len(self._history) else "")
