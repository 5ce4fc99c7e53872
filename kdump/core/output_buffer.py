"""Writes numbers and text into a buffer that has room for them. For the compiled core, output_buffer.pxd declares the
same functions inline; this module is their Python version."""

from __future__ import annotations


def put_number(out: bytearray, at: int, number: int) -> int:
    """Write `number` in decimal at out[at:]. Returns the position after it."""
    return put_text(out, at, b"%d" % number, len(str(number)))


def put_text(out: bytearray, at: int, text: bytes, size: int) -> int:
    """Write `text`, which has `size` bytes, at out[at:]. Returns the position after it."""
    out[at : at + size] = text
    return at + size


def put_piece(out: bytearray, at: int, texts: bytes, start: int, stop: int) -> int:
    """Write texts[start:stop] at out[at:]. Returns the position after it. The compiled version may copy, and overwrite
    what follows, up to a multiple of SLACK bytes."""
    return put_text(out, at, texts[start:stop], stop - start)


SLACK = 16
"""How many bytes there must be in both buffers after what put_piece copies, and in `out` after a number."""
