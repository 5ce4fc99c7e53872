"""Converts a key or value of any size to text in pieces, without making a second copy of it."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from kdump.render.escape import printable

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
