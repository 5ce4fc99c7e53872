# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Writes times, keys, values and headers as tables show them into a buffer: identical to kdump.render.times.iso and
kdump.render.escape.bytes_text, which write the special cases.

Compiled if a C compiler is available. As plain Python, it is slower than those two, and only tests use it."""

from __future__ import annotations

from kdump.text import is_hidden

try:
    import cython
except ImportError:
    from kdump import nocython as cython

if cython.compiled:
    from cython.cimports.kdump.core.integers import valid_size_at
    from cython.cimports.kdump.core.output_buffer import put_text
else:
    from kdump.core.integers import valid_size_at
    from kdump.core.output_buffer import put_text

COMPILED: bool = cython.compiled
MAX_PLAIN = 0x20000
"""Characters from here on are rare, and left to others."""

if cython.compiled:
    _TABLE = cython.declare(bytes, b"")
    _PLAIN = cython.declare(cython.p_uchar, _TABLE)
    _KNOWN = cython.declare(cython.longlong, 0)
else:
    _PLAIN, _KNOWN = b"", 0


def know_plain_characters() -> bool:
    """Find out, once, which characters are shown as they are. Returns False if they are known already."""
    global _TABLE, _PLAIN, _KNOWN
    if _KNOWN:
        return False
    characters = map(chr, range(MAX_PLAIN))
    # Spaces may be the end of a line, which has none.
    _TABLE = bytes([not is_hidden(character) and not character.isspace() for character in characters])
    _PLAIN = _TABLE
    _KNOWN = MAX_PLAIN
    return True


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _digits(
    out: cython.p_uchar, at: cython.Py_ssize_t, number: cython.longlong, size: cython.Py_ssize_t, after: cython.uchar
):
    """Write `number` with `size` digits, then one more character, at out[at:]. Returns the position after it."""
    i: cython.Py_ssize_t
    for i in range(size):
        out[at + size - 1 - i] = cython.cast(cython.uchar, 48 + number % 10)
        number = number // 10
    out[at + size] = after
    return at + size + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def put_time(out: cython.p_uchar, at: cython.Py_ssize_t, milliseconds: cython.longlong):
    """Write epoch ms at out[at:] as render.times.iso does in UTC. Returns the position after it; -1 for times before
    1970 (except -1, "no timestamp") and after the year 9999."""
    if milliseconds == -1:
        return put_text(out, at, b"-1", 2)
    days: cython.longlong = milliseconds // 86400000
    if milliseconds < 0 or days > 2932896:
        return -1
    rest: cython.longlong = milliseconds % 86400000
    # Converts days to a civil date; days count from March 1 of year 0, in eras of 400 years.
    days += 719468
    era: cython.longlong = days // 146097
    day: cython.longlong = days % 146097
    year: cython.longlong = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day -= 365 * year + year // 4 - year // 100
    month: cython.longlong = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5 - 1
    month += 3
    year += era * 400
    if month > 12:
        month -= 12
        year += 1
    at = _digits(out, at, year, 4, 45)
    at = _digits(out, at, month, 2, 45)
    at = _digits(out, at, day, 2, 84)
    at = _digits(out, at, rest // 3600000, 2, 58)
    at = _digits(out, at, rest // 60000 % 60, 2, 58)
    at = _digits(out, at, rest // 1000 % 60, 2, 46)
    return _digits(out, at, rest % 1000, 3, 90)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _put_hex(out: cython.p_uchar, to: cython.Py_ssize_t, byte: cython.uint):
    """Write a byte as two hexadecimal digits at out[to:]. Returns the position after them."""
    digits: cython.p_uchar = b"0123456789abcdef"
    out[to] = digits[byte >> 4]
    out[to + 1] = digits[byte & 15]
    return to + 2


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.longlong)
def _point(data: cython.p_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t):
    """Return the character of that many bytes at data[at:]; -1 if they are not UTF-8 (RFC 3629)."""
    point: cython.longlong = data[at] & (0x7F >> size)
    least: cython.longlong = 0x80 if size == 2 else 0x800 if size == 3 else 0x10000
    i: cython.Py_ssize_t
    for i in range(1, size):
        if data[at + i] & 0xC0 != 0x80:
            return -1
        point = point << 6 | (data[at + i] & 0x3F)
    return -1 if point < least or 0xD800 <= point <= 0xDFFF or point > 0x10FFFF else point


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def put_plain_bytes(
    out: cython.p_uchar,
    to: cython.Py_ssize_t,
    data: cython.p_uchar,
    at: cython.Py_ssize_t,
    size: cython.longlong,
    is_last: cython.bint,
):
    """Write a key or value like render.escape.bytes_text. Returns the position after it; -1 for text that is not ASCII,
    unless it is the last cell of its row, which needs no width, and its characters are known to be plain."""
    special: cython.uint = 0
    i: cython.Py_ssize_t
    if size < 0:
        return put_text(out, to, b"null", 4)
    for i in range(size):
        special |= (
            ((data[at + i] - 32) & 0xFF) > 94
            if not cython.compiled
            else cython.cast(cython.uchar, data[at + i] - 32) > 94
        )
        out[to + i] = data[at + i]
    return _put_special(out, to, data, at, at + size, is_last) if special else to + size


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _put_special(
    out: cython.p_uchar,
    to: cython.Py_ssize_t,
    data: cython.p_uchar,
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    is_last: cython.bint,
):
    """Write data[at:end] as put_plain_bytes does, with escapes, or in hexadecimal."""
    plain: cython.p_uchar = _PLAIN
    is_plain: cython.bint = True
    start: cython.Py_ssize_t = at
    begun: cython.Py_ssize_t = to
    byte: cython.uint
    point: cython.longlong
    more: cython.Py_ssize_t
    i: cython.Py_ssize_t
    while at < end:
        byte = data[at]
        if 32 <= byte < 127:
            out[to] = byte
            to += 1
            at += 1
        elif byte < 128:
            out[to] = 92
            to += 2
            if byte == 0:
                out[to - 1] = 48
            elif byte == 9:
                out[to - 1] = 116
            elif byte == 10:
                out[to - 1] = 110
            elif byte == 13:
                out[to - 1] = 114
            else:
                out[to - 1] = 120
                to = _put_hex(out, to, byte)
            at += 1
        else:
            more = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            point = _point(data, at, more) if 0xC0 <= byte < 0xF8 and at + more <= end else -1
            if point < 0:
                to = put_text(out, begun, b"0x", 2)
                for i in range(start, end):
                    to = _put_hex(out, to, data[i])
                return to
            is_plain = is_plain and is_last and point < _KNOWN and plain[point]
            for i in range(more):
                out[to + i] = data[at + i]
            to += more
            at += more
    return to if is_plain else -1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def put_plain_headers(
    out: cython.p_uchar, to: cython.Py_ssize_t, data: cython.p_uchar, position: cython.Py_ssize_t,
    count: cython.longlong,
):  # fmt: skip
    """Write headers as key=value, key=value. Returns -1 if one has text that is not ASCII."""
    header: cython.longlong
    length: cython.longlong
    part: cython.int
    for header in range(count):
        if header:
            to = put_text(out, to, b", ", 2)
        for part in range(2):
            length, position = valid_size_at(data, position)
            if part:
                to = put_text(out, to, b"=", 1)
            to = put_plain_bytes(out, to, data, position, length, False)
            if to < 0:
                return -1
            if length > 0:
                position += length
    return to
