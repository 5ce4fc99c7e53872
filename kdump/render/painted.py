"""Styled text that is no terminal's: marks around what is painted, and the pieces between them."""

from __future__ import annotations

import re

BEGIN, THEN, END = "\x01", "\x02", "\x03"
"""Marks of painted text. None of them can be in it: it has been escaped."""
PAINTED = re.compile(f"{BEGIN}([a-z]*){THEN}([^{END}]*){END}")


def paint(text: str, style: str) -> str:
    """Text that `parts` finds again, however it has been put together since."""
    return f"{BEGIN}{style}{THEN}{text}{END}" if style and text else text


def parts(text: str) -> tuple[tuple[str, str], ...]:
    """Pieces of text and their styles."""
    found, at = [], 0
    for match in PAINTED.finditer(text):
        if match.start() > at:
            found.append((text[at : match.start()], ""))
        found.append((match[2], match[1]))
        at = match.end()
    if at < len(text) or not found:
        found.append((text[at:], ""))
    return tuple((piece, style) for piece, style in found)
