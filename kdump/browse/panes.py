"""Scrollable lines with a cursor: the tree, the table, the hexdump, and the lists of other screens. Text is shown in
named styles and never interpreted as markup."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from kdump.browse.hexdump_lines import HexLine
from kdump.browse.row_lines import wrapped
from kdump.render.escape import printable
from kdump.render.style import STYLES, cut

RICH = {name: Style.parse(text) for name, text in STYLES.items()}
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
        room = self.room
        self.top = max(0, min(self.top, len(self.lines) - room))
        if self.cursor < self.top:
            self.top = max(0, self.cursor - room // 3)
        elif self.cursor >= self.top + room:
            self.top = min(max(0, len(self.lines) - room), self.cursor - room + 1 + room // 3)
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

    def on_click(self, event: events.Click) -> None:
        number = self.top + event.y - (self.head is not None)
        if 0 <= number < len(self.lines):
            if number == self.cursor:
                self.action_enter()
            self._go(number)

    def on_mouse_scroll_down(self) -> None:
        self.action_move(1)

    def on_mouse_scroll_up(self) -> None:
        self.action_move(-1)

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

    def __init__(self, above: Bar, text: str, *, id: str) -> None:
        super().__init__(id=id, style="reverse")
        self.above = above
        self.show((text, ""))
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
