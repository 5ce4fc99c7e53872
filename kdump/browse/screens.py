"""Screens over the browser: help, text to copy, lists to choose from."""

from __future__ import annotations

from textwrap import wrap
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from kdump.browse.hexdump_lines import HexLine
from kdump.browse.panes import Bar, Pane
from kdump.browse.row_lines import wrapped
from kdump.render.escape import path_text, printable

MAX_NOTE = 4
"""Maximum number of lines of the note below the title."""


class Overlay(ModalScreen[Any]):
    """A screen over the browser; Esc closes it."""

    DEFAULT_CSS = "Overlay { layout: vertical; overflow: hidden; background: $background; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "app.quit", "quit", show=False),
        Binding("escape,q,backspace,left,question_mark", "leave", "close", show=False),
    ]

    noted = False
    """Whether a note is shown below the title."""

    def __init__(self, title: str, keys: str) -> None:
        super().__init__()
        self.heading = title
        self.keys = keys
        self._leaves = False
        self.pane = Pane(id="list")
        self.above = Bar(id="title", style="reverse")
        self.note = Bar(id="note")
        self.below = Bar(id="keys", style="reverse")

    def compose(self) -> ComposeResult:
        yield self.above
        yield self.note
        yield self.pane
        yield self.below

    def on_mount(self) -> None:
        self.above.show((self.heading, ""))
        self.note.display = self.noted
        self.below.show((self.keys, ""))
        self.pane.focus()

    def show_note(self, text: str, *, has_gaps: bool = False) -> None:
        """Show a note below the title, on several lines if there is room for them. `has_gaps`: it names what was not
        read."""
        lines = wrap(printable(path_text(text)), max(10, self.size.width - 2))
        lines = lines[: max(1, min(MAX_NOTE, (self.size.height - 3) // 2))]
        self.note.styles.height = max(1, len(lines))
        self.note.show_lines([f" {line}" for line in lines], "torn" if has_gaps else "dim")

    def on_resize(self) -> None:
        self.fill()

    def leave(self, answer: Any = None) -> None:
        """Close the screen, only once: further keys may arrive before it is gone."""
        if self.is_current and not self._leaves:
            self._leaves = True
            self.dismiss(answer)

    def action_leave(self) -> None:
        self.leave()

    def fill(self) -> None:
        """Create the lines for the current width."""

    def on_pane_beyond(self, message: Pane.Beyond) -> None:
        message.stop()
        if not message.count:
            self.pane.move_to(len(self.pane.lines) if message.down else 0)

    def on_pane_moved(self, message: Pane.Moved) -> None:
        message.stop()

    def on_pane_entered(self, message: Pane.Entered) -> None:
        message.stop()


class TextScreen(Overlay):
    """A text, which `y` copies."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "copy", "copy", show=False)]

    def __init__(self, title: str, text: str, *, copies: bool = True) -> None:
        super().__init__(f" {title}", " Esc closes   y copies" if copies else " Esc closes")
        self.words = text
        self.pane.is_text = True
        self.copies = copies

    def fill(self) -> None:
        width = max(10, self.size.width)
        self.pane.show([HexLine(((line, ""),)) for line in wrapped(self.words, width)], self.pane.cursor)

    def action_copy(self) -> None:
        if self.copies:
            self.app.copy_to_clipboard(self.words)
            self.below.show((" copied, if the terminal supports it (OSC 52)   Esc closes", ""))
