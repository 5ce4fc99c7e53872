"""Escapes text from a log. It is untrusted: none of its control characters may reach a terminal. A key
or value of any size becomes text in pieces, without a second copy of it."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from kdump.text import is_hidden
from kdump.text import path_text as path_text

LARGE = 1 << 20
"""Size in bytes above which a record is written in pieces."""
PIECE = 3 << 18
"""Bytes that are written at once: a multiple of three, because base64 encodes three bytes as four characters."""


def is_text(data: memoryview) -> bool:
    """Return True if the data is UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(data), PIECE):
            decoder.decode(data[start : start + PIECE])
        decoder.decode(b"", True)
    except UnicodeDecodeError:
        return False
    return True


def texts(data: memoryview) -> Iterator[str]:
    """Yield the text in pieces; the data must be UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(data), PIECE):
        yield decoder.decode(data[start : start + PIECE])


def bytes_text_pieces(data: memoryview) -> Iterator[str]:
    """Yield the result of escape.shown in pieces."""
    if is_text(data):
        yield from map(printable, texts(data))
        return
    yield "0x"
    for start in range(0, len(data), PIECE):
        yield data[start : start + PIECE].hex()


def without_end(pieces: Iterator[str]) -> Iterator[str]:
    """Yield the pieces without trailing whitespace after the last."""
    held: list[str] = []
    for piece in pieces:
        kept = piece.rstrip()
        if kept:
            yield from held
            yield kept
            held = []
        held.append(piece[len(kept) :])


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
