"""A key or value of any size as text, in pieces: no second copy of it is made."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from kdump.render.escape import printable

LARGE = 1 << 20
"""Bytes of a record above which it is written in pieces."""
PIECE = 3 << 18
"""Bytes that are written at once: a multiple of three, which base64 makes four letters of."""


def is_text(data: memoryview) -> bool:
    """Whether it is UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(data), PIECE):
            decoder.decode(data[start : start + PIECE])
        decoder.decode(b"", True)
    except UnicodeDecodeError:
        return False
    return True


def texts(data: memoryview) -> Iterator[str]:
    """Pieces of its text, which must be UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(data), PIECE):
        yield decoder.decode(data[start : start + PIECE])


def shown_in_pieces(data: memoryview) -> Iterator[str]:
    """Pieces of what escape.shown makes of it."""
    if is_text(data):
        yield from map(printable, texts(data))
        return
    yield "0x"
    for start in range(0, len(data), PIECE):
        yield data[start : start + PIECE].hex()


def without_end(pieces: Iterator[str]) -> Iterator[str]:
    """The pieces without the white space at the end of the last."""
    held: list[str] = []
    for piece in pieces:
        kept = piece.rstrip()
        if kept:
            yield from held
            yield kept
            held = []
        held.append(piece[len(kept) :])
