# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Walks the elements of a raw Snappy block without producing their output, to find where the block can be split.

Source: https://github.com/google/snappy/blob/main/format_description.txt, section 2. Compiled if there is a compiler,
otherwise run as Python."""

from __future__ import annotations

try:
    import cython
except ImportError:
    from kdump import nocython as cython

LONG_LITERAL = 1 << 16
"""Length in bytes of a literal above which `walk` stops before it, because it can be copied without its neighbors."""
ZERO_OFFSET = 1 << 40
"""Reach of a copy with an offset of 0, which no decoder accepts."""


def walk(data: bytes, start: cython.Py_ssize_t, limit: cython.Py_ssize_t) -> tuple[int, int, int]:
    """Walk complete elements from data[start] until their output is `limit` bytes or more; stop before a long literal.

    Return where the next element starts, the size of the output, and how many bytes before that output the copies refer
    to."""
    buffer: cython.const[cython.uchar][::1] = data
    at: cython.Py_ssize_t = start
    stop: cython.Py_ssize_t = len(data)
    tag: cython.int
    extra: cython.int
    i: cython.int
    size: cython.longlong
    offset: cython.longlong
    made: cython.longlong = 0
    reach: cython.longlong = 0
    while made < limit and at < stop:
        tag = buffer[at]
        if tag & 3 == 0:
            extra = 0 if tag < 240 else (tag >> 2) - 59
            if extra > stop - at - 1:
                break
            size = (tag >> 2) + 1
            if extra:
                size = 1
                for i in range(extra):
                    size += cython.cast(cython.longlong, buffer[at + 1 + i]) << (8 * i)
            if size > LONG_LITERAL or size > stop - at - 1 - extra:
                break
            at += 1 + extra + size
        else:
            extra = 4 if tag & 3 == 3 else tag & 3
            if extra > stop - at - 1:
                break
            if extra == 1:
                size = (tag >> 2 & 7) + 4
                offset = (tag >> 5) << 8 | buffer[at + 1]
            else:
                size = (tag >> 2) + 1
                offset = 0
                for i in range(extra):
                    offset += cython.cast(cython.longlong, buffer[at + 1 + i]) << (8 * i)
            if offset == 0:
                offset = ZERO_OFFSET + made
            if offset - made > reach:
                reach = offset - made
            at += 1 + extra
        made += size
    return at, made, reach


def literal(data: bytes, start: int) -> tuple[int, int] | None:
    """Return where the bytes of the literal at data[start] start, and their number; None if it is not a literal, or its
    length is not yet complete."""
    tag = data[start] if start < len(data) else 1
    extra = max(0, (tag >> 2) - 59)
    if tag & 3 or len(data) - start - 1 < extra:
        return None
    begin = start + 1 + extra
    return begin, 1 + (int.from_bytes(data[start + 1 : begin], "little") if extra else tag >> 2)
