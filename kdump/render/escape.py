"""Escapes text from a log. It is untrusted: none of its control characters may reach a terminal."""

from __future__ import annotations

from kdump.text import is_hidden
from kdump.text import path_text as path_text

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}


def _escaped(character: str) -> str:
    if character in _NAMED:
        return _NAMED[character]
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def printable(text: str) -> str:
    r"""Return the text with characters that a terminal obeys, or does not show, as escapes (\n, \x1b, \u202e)."""
    if text.isprintable():  # of other categories, only spaces remain (Zs)
        return text
    return text.translate({ord(character): _escaped(character) for character in filter(is_hidden, set(text))})


def bytes_text(data: bytes | None, limit: int | None = None) -> str:
    """Return bytes as text for people: decoded if they are UTF-8, else 0x and hex; null for None. Truncated after
    `limit` bytes, so that no more of a long value is read than a line shows."""
    if data is None:
        return "null"
    cut = limit is not None and len(data) > limit
    part = data[:limit] if cut else data
    try:
        text = printable(part.decode())
    except UnicodeDecodeError as error:
        # Truncation may split a character, which does not make the text binary.
        if cut and error.start >= len(part) - 3 and error.reason == "unexpected end of data":
            text = printable(part[: error.start].decode())
        else:
            text = "0x" + part.hex()
    return text + "…" if cut else text
