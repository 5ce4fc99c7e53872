# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Writes times, keys, values and headers as tables show them into a buffer: identical to kdump.render.times.iso and
kdump.render.escape.shown, which write the special cases.

Compiled if a C compiler is available. As plain Python, it is slower than those two, and only tests use it.
"""

from __future__ import annotations

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
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def put_plain_bytes(
    out: cython.p_uchar, to: cython.Py_ssize_t, data: cython.p_uchar, at: cython.Py_ssize_t, size: cython.longlong
):
    """Write a key or value like render.escape.shown. Returns -1 if it is neither null nor printable ASCII."""
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
    return -1 if special else to + size


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def put_plain_headers(
    out: cython.p_uchar, to: cython.Py_ssize_t, data: cython.p_uchar, position: cython.Py_ssize_t,
    count: cython.longlong,
):  # fmt: skip
    """Write headers as key=value, key=value. Returns -1 if they are not printable ASCII."""
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
            to = put_plain_bytes(out, to, data, position, length)
            if to < 0:
                return -1
            if length > 0:
                position += length
    return to
