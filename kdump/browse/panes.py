"""Scrollable lines with a cursor: the tree, the table, the hexdump, and the screens over them. Text is shown in named
styles and never interpreted as markup."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget

from kdump.browse.lines import HexLine, table, wrapped
from kdump.browse.listings import BrowseRow
from kdump.render.escape import path_text, printable
from kdump.render.style import STYLES, cut
from kdump.render.table import Column

RICH = {name: Style.parse(text) for name, text in STYLES.items()}
MAX_NOTE = 4
"""Maximum number of lines of the note below the title of a screen."""
HERE, ELSEWHERE, MARKED = Style(reverse=True), Style(bold=True, underline=True), Style(bold=True, underline=True)


class Pane(Widget, can_focus=True):
    """Lines with a cursor. `marked` lines are highlighted, too."""

    DEFAULT_CSS = "Pane { width: 100%; height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("pageup,ctrl+b", "page(-1)", "page up", show=False),
        Binding("pagedown,space,ctrl+f", "page(1)", "page down", show=False),
        Binding("home", "edge(-1)", "top", show=False),
        Binding("end,G", "edge(1)", "end", show=False),
        Binding("enter,right,l", "enter", "in", show=False),
    ]

    class Moved(Message):
        """Posted when the cursor has moved to another line."""

        def __init__(self, pane: Pane, number: int) -> None:
            super().__init__()
            self.pane, self.number = pane, number
            self.lines = pane.lines

        @property
        def is_stale(self) -> bool:
            """Whether the pane's lines have been replaced since."""
            return self.lines is not self.pane.lines

    class Beyond(Message):
        """Posted when the user moves beyond the lines: by `count` lines, or to the very end (0)."""

        def __init__(self, pane: Pane, count: int, *, down: bool) -> None:
            super().__init__()
            self.pane, self.count, self.down = pane, count, down

    class Entered(Moved):
        """Posted when a line is entered, by key or by a click on the cursor line."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.head: HexLine | None = None
        self.lines: list[HexLine] = []
        self.cursor = 0
        self.top = 0
        self.marked: frozenset[int] = frozenset()
        self.is_text = False
        """Whether the lines are a text, which scrolls by pages from the first key on."""

    @property
    def room(self) -> int:
        """Number of visible lines."""
        return max(1, self.size.height - (self.head is not None))

    def show(self, lines: list[HexLine], cursor: int, head: HexLine | None = None, *, keep: bool = False) -> None:
        """Replace the lines. `keep`: scroll along with the cursor, so that the visible rows stay in place."""
        shift = cursor - self.cursor if keep else 0
        self.lines, self.head = lines, head
        self.top += shift
        self.cursor = max(0, min(cursor, len(lines) - 1))
        self._follow()

    def move_to(self, number: int) -> None:
        """Move the cursor to that line without posting a message."""
        self.cursor = max(0, min(number, len(self.lines) - 1))
        self._follow()

    def _follow(self) -> None:
        height = self.room
        self.top = max(0, min(self.top, len(self.lines) - height))
        if self.cursor < self.top:
            self.top = max(0, self.cursor - height // 3)
        elif self.cursor >= self.top + height:
            self.top = min(max(0, len(self.lines) - height), self.cursor - height + 1 + height // 3)
        self.refresh()

    def on_resize(self) -> None:
        self._follow()

    def _go(self, number: int) -> None:
        number = max(0, min(number, len(self.lines) - 1))
        if number != self.cursor:
            step = number - self.cursor
            self.cursor = number
            if abs(step) == 1:  # single steps scroll line by line
                self.top = max(min(self.top, number), number - self.room + 1)
                self.refresh()
            else:
                self._follow()
            self.post_message(self.Moved(self, number))

    def action_move(self, step: int) -> None:
        requested = self.cursor + step
        if 0 <= requested < len(self.lines):
            self._go(requested)
        else:
            self.post_message(self.Beyond(self, 1, down=step > 0))

    def action_page(self, direction: int) -> None:
        step = max(1, self.room - 1)
        requested = self.cursor + direction * step
        beyond = max(-requested, requested - len(self.lines) + 1)
        if self.is_text:
            self.top += direction * step
        self._go(requested)
        if beyond > 0:
            self.post_message(self.Beyond(self, beyond, down=direction > 0))

    def action_edge(self, direction: int) -> None:
        self.post_message(self.Beyond(self, 0, down=direction > 0))

    def action_enter(self) -> None:
        if self.lines:
            self.post_message(self.Entered(self, self.cursor))

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if self.head is not None:
            if y == 0:
                return _strip(self.head, width, RICH["head"])
            y -= 1
        number = self.top + y
        if not 0 <= number < len(self.lines):
            return Strip.blank(width)
        style = None
        if number == self.cursor and (self.has_focus or self.id == "table"):
            style = HERE if self.has_focus else ELSEWHERE
        elif number == self.cursor or number in self.marked:
            style = MARKED
        return _strip(self.lines[number], width, style)


class Bar(Widget):
    """A single line of text."""

    DEFAULT_CSS = "Bar { width: 100%; height: 1; }"

    def __init__(self, *, id: str, style: str = "") -> None:
        super().__init__(id=id)
        self._parts: tuple[tuple[str, str], ...] = ()
        self._style = style
        self._lines: list[str] = []
        self.below: KeyHints | None = None

    def show_lines(self, lines: list[str], style: str) -> None:
        """Show several lines, if the bar is as high."""
        self._lines = lines
        self.show((lines[0] if lines else "", style))
        self.refresh()

    def show(self, *parts: tuple[str, str]) -> None:
        if parts != self._parts:
            self._parts = parts
            self.refresh()
            if self.below is not None:
                self.below.refresh()

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self._parts)

    @property
    def style(self) -> str:
        """Style of the last part."""
        return self._parts[-1][1] if self._parts else ""

    def render_line(self, y: int) -> Strip:
        if 0 < y < len(self._lines):
            return _strip(HexLine(((self._lines[y], self.style),)), self.size.width)
        base = Style(reverse=True) if self._style == "reverse" else None
        return _strip(HexLine(self._parts), self.size.width, base)


class KeyHints(Bar):
    """The key hints, or the rest of the bar above if its text does not fit."""

    def __init__(self, above: Bar, hints: str, *, id: str) -> None:
        super().__init__(id=id, style="reverse")
        self.above = above
        self.show((hints, ""))
        above.below = self

    def render_line(self, y: int) -> Strip:
        rest = wrapped(self.above.text, max(1, self.size.width))[1:]
        if not rest:
            return super().render_line(y)
        style = self.above.style
        return _strip(HexLine(((cut("".join(rest), self.size.width), style),)), self.size.width)


def _strip(line: HexLine, width: int, over: Style | None = None) -> Strip:
    """Return a line as a Textual strip; the style `over` is applied to all of it. All text of a log goes through here:
    what a terminal would obey is escaped, whatever the caller did."""
    segments = [Segment(printable(text), RICH.get(style)) for text, style in line.parts if text]
    strip = Strip(segments).adjust_cell_length(width) if segments else Strip.blank(width)
    return strip.apply_style(over) if over else strip


@dataclass
class View:
    """What a screen over the browser shows. `fill` shows the lines, and does so again when `state` has changed, which
    is what they depend on in the background; `keys`: the hints; `actions`: what other keys do, None: close the screen.
    `noted`: whether there is a note below the title."""

    title: str
    keys: str
    fill: Callable[[Overlay], None]
    actions: Mapping[str, Callable[[Overlay], None] | None] = field(default_factory=dict)
    state: Callable[[], Any] = lambda: None
    noted: bool = False
    begin: Callable[[Overlay], None] = lambda screen: None
    end: Callable[[], Any] = lambda: None


class Overlay(ModalScreen[Any]):
    """A screen over the browser; Esc closes it. Enter returns the one of `answers` that belongs to the line, if there
    is one and it is not None."""

    DEFAULT_CSS = "Overlay { layout: vertical; overflow: hidden; background: $background; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "app.quit", "quit", show=False),
        Binding("escape,q,backspace,left,question_mark", "leave", "close", show=False),
    ]

    def __init__(self, view: View) -> None:
        super().__init__()
        self.view = view
        self.answers: Sequence[Any] = []
        self._leaves = False
        self._seen: Any = None
        self.pane = Pane(id="list")
        self.above, self.below = Bar(id="title", style="reverse"), Bar(id="keys", style="reverse")
        self.note = Bar(id="note")

    def compose(self) -> ComposeResult:
        yield self.above
        yield self.note
        yield self.pane
        yield self.below

    def on_mount(self) -> None:
        self.show_title(self.view.title)
        self.note.display = self.view.noted
        self.below.show((self.view.keys, ""))
        self.pane.focus()
        self.view.begin(self)
        self._seen = self.view.state()
        self.set_interval(0.25, self.look)

    def on_unmount(self) -> None:
        self.view.end()

    def on_resize(self) -> None:
        self.view.fill(self)

    def look(self) -> None:
        """Refresh the lines if their state has changed."""
        now = self.view.state()
        if now != self._seen:
            self._seen = now
            self.view.fill(self)

    def show_items(
        self,
        columns: list[Column],
        items: Sequence[Any],
        style: Callable[[Any], str] = lambda item: "",
        answers: Sequence[Any] | None = None,
    ) -> None:
        """Show a table of items; Enter returns an item, or the one of `answers` in its place."""
        rows = [
            BrowseRow("item", number, item, "", tuple(column.cell(item) for column in columns), style=style(item))
            for number, item in enumerate(items)
        ]
        self.answers = items if answers is None else answers
        head, lines = table(columns, rows, max(20, self.size.width))
        self.pane.show(lines, self.pane.cursor, head if rows else None)

    def show_title(self, title: str) -> None:
        self.above.show((printable(path_text(f" {title}")), ""))

    def show_note(self, note: str, *, has_gaps: bool = False) -> None:
        """Show a note below the title, on several lines if there is room for them. `has_gaps`: it names what was not
        read."""
        lines = wrap(printable(path_text(note)), max(10, self.size.width - 2))
        lines = lines[: max(1, min(MAX_NOTE, (self.size.height - 3) // 2))]
        self.note.styles.height = max(1, len(lines))
        self.note.show_lines([f" {line}" for line in lines], "torn" if has_gaps else "dim")

    def action_leave(self, answer: Any = None) -> None:
        """Close the screen, only once: further keys may arrive before it is gone."""
        if self.is_current and not self._leaves:
            self._leaves = True
            self.dismiss(answer)

    def on_key(self, event: events.Key) -> None:
        if event.key in self.view.actions:
            event.stop()
            (self.view.actions[event.key] or Overlay.action_leave)(self)

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
            self.action_leave(answer)


def text_view(title: str, text: str, *, copies: bool = True) -> View:
    """Return the view of a text, which `y` copies."""

    def fill(screen: Overlay) -> None:
        screen.pane.is_text = True
        lines = wrapped(text, max(10, screen.size.width))
        screen.pane.show([HexLine(((line, ""),)) for line in lines], screen.pane.cursor)

    def copy(screen: Overlay) -> None:
        screen.app.copy_to_clipboard(text)
        screen.below.show((" copied, if the terminal supports it (OSC 52)   Esc closes", ""))

    keys = " Esc closes   y copies" if copies else " Esc closes"
    return View(title, keys, fill, {"y": copy} if copies else {})
