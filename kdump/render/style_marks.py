"""Styled text independent of a terminal: marks around styled parts, splitting the text at these marks, and output that
is kept as the parts of its lines."""

from __future__ import annotations

import re
from collections.abc import Callable

from kdump.render.stdout import NEVER, Output

Parts = tuple[tuple[str, str], ...]
"""Parts of a line, each with the name of its style."""
BEGIN, THEN, END = "\x01", "\x02", "\x03"
"""Marks of styled text. The text cannot contain them, because it has been escaped."""
PAINTED = re.compile(f"{BEGIN}([a-z]*){THEN}([^{END}]*){END}")


def mark_style(text: str, style: str) -> str:
    """Mark text with a style, so that `split_styles` finds it even after it has been joined with other text."""
    return f"{BEGIN}{style}{THEN}{text}{END}" if style and text else text


def split_styles(text: str) -> Parts:
    """Split text into parts, each with its style."""
    parts, position = [], 0
    for match in PAINTED.finditer(text):
        if match.start() > position:
            parts.append((text[position : match.start()], ""))
        parts.append((match[2], match[1]))
        position = match.end()
    if position < len(text) or not parts:
        parts.append((text[position:], ""))
    return tuple((piece, style) for piece, style in parts)


class CapturedOutput(Output):
    """Output for a screen of so many columns that is kept: `keep` takes each line, with its styles as marked."""

    def __init__(self, columns: int, keep: Callable[[Parts], object]) -> None:
        self.terminal, self.color = True, NEVER
        self.columns, self.keep, self.left_out = columns, keep, {}

    @property
    def width(self) -> int | None:
        return self.columns

    def line(self, text: str) -> None:
        self.keep(split_styles(text))
