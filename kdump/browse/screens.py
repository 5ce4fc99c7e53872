"""Screens over the browser: text to read or copy, and what lists to choose from have in common."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from kdump.browse.hexdump_lines import HexLine
from kdump.browse.panes import Bar, Pane
from kdump.browse.row_lines import table, wrapped
from kdump.browse.row_listings import BrowseRow
from kdump.render.escape import path_text, printable
from kdump.render.table import Column

MAX_NOTE = 4
"""Maximum number of lines of the note below the title."""


class Overlay(ModalScreen[Any]):
    """A screen over the browser; Esc closes it. `fill` creates its lines, and does so again when `state` has changed;
    Enter returns the one of `answers` that belongs to the line, if there is one and it is not None."""

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
        self.answers: Sequence[Any] = []
        self._leaves = False
        self._seen: Any = None
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
        self.show_title(self.heading)
        self.note.display = self.noted
        self.below.show((self.keys, ""))
        self.pane.focus()
        self._seen = self.state()
        self.set_interval(0.25, self.look)

    def state(self) -> Any:
        """Return what the lines depend on, if that changes in the background."""

    def look(self) -> None:
        """Refresh the lines if their state has changed."""
        now = self.state()
        if now != self._seen:
            self._seen = now
            self.fill()

    def show_rows(self, columns: list[Column], rows: list[BrowseRow]) -> None:
        """Show a table; Enter returns the item of a row."""
        self.answers = [row.item for row in rows]
        head, lines = table(columns, rows, max(20, self.size.width))
        self.pane.show(lines, self.pane.cursor, head if rows else None)

    def show_title(self, text: str) -> None:
        self.above.show((printable(path_text(f" {text}")), ""))

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
        answer = self.answers[message.number] if message.number < len(self.answers) else None
        if answer is not None and not message.is_stale:
            self.leave(answer)


class TextScreen(Overlay):
    """A text, which `y` copies."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "copy", "copy", show=False)]

    def __init__(self, title: str, text: str, *, copies: bool = True) -> None:
        super().__init__(title, " Esc closes   y copies" if copies else " Esc closes")
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
