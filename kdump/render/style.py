"""Colors on terminals that support them. The only place that defines how the named styles look."""

from __future__ import annotations

from collections.abc import Callable

STYLES = {
    "head": "bold",
    "dim": "dim",
    "bad": "bold red",
    "torn": "yellow",
    "junk": "magenta",
    "padding": "blue",
    "control": "cyan",
    "note": "italic",
    "name": "green",
}

Paint = Callable[[str, str], str]
"""(text, style name) -> text to write."""


def painter(colour: bool) -> Paint:
    """Return a function that applies styles: rich's escape sequences for this terminal, or none if not `colour`."""
    if not colour:
        return lambda text, style: text
    from rich.color import ColorSystem
    from rich.console import Console
    from rich.style import Style

    system = Console(force_terminal=True)._color_system or ColorSystem.STANDARD
    styles = {name: Style.parse(definition) for name, definition in STYLES.items()}

    def paint(text: str, style: str) -> str:
        return styles[style].render(text, color_system=system) if style and text else text

    return paint


def width(text: str) -> int:
    """Return the number of terminal columns that the text occupies."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut_start(text: str, room: int) -> str:
    """Truncate the text to at most `room` columns, and keep its end, in which paths differ."""
    return text if width(text) <= room else "…" + _end(text, room - 1) if room > 0 else ""


def cut_middle(text: str, room: int) -> str:
    """Truncate the text to at most `room` columns, and keep both ends, in which names differ."""
    if width(text) <= room:
        return text
    kept = (room - 1) // 2
    return cut(text, room - kept) + _end(text, kept)


def _end(text: str, room: int) -> str:
    """Return as many of the last characters as fit into `room` columns."""
    if text.isascii():
        return text[len(text) - room :] if room > 0 else ""
    start, used = len(text), 0
    while start and (used := used + width(text[start - 1])) <= room:
        start -= 1
    return text[start:]


def cut(text: str, room: int) -> str:
    """Truncate the text to at most `room` columns; … marks truncated text."""
    if width(text) <= room:
        return text
    if room <= 0:
        return ""
    if text.isascii():
        return text[: room - 1] + "…"
    from rich.cells import set_cell_size

    return set_cell_size(text, room - 1).rstrip() + "…"
