# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Writes keys, values and headers as JSON into a buffer: identical to kdump.answer.put_bytes and jsonl.

Compiled if a C compiler is available. As plain Python, it is slower than those two, and only tests use it."""

from __future__ import annotations

from kdump import jsonl

try:
    import cython
except ImportError:
    from kdump import nocython as cython

if cython.compiled:
    from cython.cimports.kdump.core.integers import valid_size_at
    from cython.cimports.kdump.core.json_escape import escape_blocks, prepare_blocks
    from cython.cimports.kdump.core.output_buffer import put_text
else:
    from kdump.core.integers import valid_size_at
    from kdump.core.output_buffer import put_text

COMPILED: bool = cython.compiled
PLAIN, SHORT, LONG, WIDE = 0, 1, 2, 3
"""How JSON encodes a byte: as itself, as a backslash and a letter, as \\u00XX, or depending on the bytes after it."""


def _quoting() -> bytes:
    """Return how JSON encodes each byte; from 256 on, for each, the letter after the backslash (or the byte itself);
    from 512 on, the hexadecimal digits."""
    kinds, letters = bytearray(256), bytearray(range(256))
    for byte in range(256):
        line = jsonl.line(chr(byte))
        text = line[1 : len(line) - 1]
        kinds[byte] = WIDE if byte >= 0x80 else PLAIN if len(text) == 1 else SHORT if len(text) == 2 else LONG
        if kinds[byte] == SHORT:
            letters[byte] = ord(text[1])
    return bytes(kinds) + bytes(letters) + b"0123456789abcdef"


if cython.compiled:
    _TABLE = cython.declare(bytes, _quoting())
    _QUOTING = cython.declare(cython.p_uchar, _TABLE)
    _IN_BLOCKS = cython.declare(cython.bint, prepare_blocks())
else:
    _QUOTING = _quoting()


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _escape(out: cython.p_uchar, at: cython.Py_ssize_t, point: cython.uint):
    """Write \\uXXXX at out[at:]. Returns the position after it."""
    out[at] = 92
    out[at + 1] = 117
    out[at + 2] = _QUOTING[512 + (point >> 12 & 15)]
    out[at + 3] = _QUOTING[512 + (point >> 8 & 15)]
    out[at + 4] = _QUOTING[512 + (point >> 4 & 15)]
    out[at + 5] = _QUOTING[512 + (point & 15)]
    return at + 6


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.longlong, cython.Py_ssize_t))
def _character(data: cython.p_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t):
    """Return the code point of the character above U+007F at data[at:end], and its size; -1 if it is not UTF-8 (RFC
    3629): it is truncated or overlong, a surrogate or beyond U+10FFFF."""
    byte: cython.uint = data[at]
    more: cython.Py_ssize_t = 1 if byte < 0xE0 else 2 if byte < 0xF0 else 3
    point: cython.uint = byte & (0x3F >> more)
    i: cython.Py_ssize_t
    if byte < 0xC2 or byte > 0xF4 or at + more >= end:
        return (-1, 0)
    for i in range(1, more + 1):
        byte = data[at + i]
        if byte & 0xC0 != 0x80:
            return (-1, 0)
        point = point << 6 | (byte & 0x3F)
    if more == 2 and (point < 0x800 or 0xD800 <= point <= 0xDFFF):
        return (-1, 0)
    if more == 3 and not 0x10000 <= point <= 0x10FFFF:
        return (-1, 0)
    return (point, more + 1)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.bint)
def _is_escaped(point: cython.longlong):
    """Return whether jsonl escapes a character above U+007F: control characters, directional marks, separators, and the
    byte order mark."""
    if 0x200E <= point <= 0x2069:
        return point <= 0x200F or 0x2028 <= point <= 0x202E or point >= 0x2066
    return point < 0xA0 or point == 0xFEFF


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _text(
    out: cython.p_uchar, to: cython.Py_ssize_t, data: cython.p_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t
):
    """Write data[at:end] as a JSON string at out[to:]. Returns the position after it; -1 if the data is not UTF-8."""
    quoting: cython.p_uchar = _QUOTING  # a local variable: what is written to `out` cannot change it
    byte: cython.uint
    kind: cython.uint
    point: cython.longlong
    size: cython.Py_ssize_t
    i: cython.Py_ssize_t
    then: cython.Py_ssize_t
    in_blocks: cython.bint = False
    if cython.compiled:
        in_blocks = _IN_BLOCKS and end - at >= 8
    out[to] = 34
    to += 1
    while at < end:
        if cython.compiled and in_blocks and data[at] < 0x80 and (at + 1 == end or data[at + 1] < 0x80):
            then = to  # the address of `to` itself would keep it out of a register
            at = escape_blocks(out, cython.address(then), data, at, end)
            to = then
            if at == end:
                break
        byte = data[at]
        kind = quoting[byte]
        while kind < 2:
            # Branch-free: quotes are frequent, and the CPU cannot predict where they occur.
            out[to] = 92
            to += kind
            out[to] = quoting[256 + byte]
            to += 1
            at += 1
            if in_blocks or at == end:
                break
            byte = data[at]
            kind = quoting[byte]
        if kind < 2:
            continue
        if kind == 2:
            to = _escape(out, to, byte)
            at += 1
            continue
        point, size = _character(data, at, end)
        if point < 0:
            return -1
        if _is_escaped(point):
            to = _escape(out, to, point)
        else:
            for i in range(size):
                out[to + i] = data[at + i]
            to += size
        at += size
    out[to] = 34
    return to + 1


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
@cython.returns(cython.Py_ssize_t)
def _base64(
    out: cython.p_uchar, to: cython.Py_ssize_t, data: cython.p_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t
):
    """Write data[at:end] as a base64 (RFC 4648) JSON string at out[to:]. Returns the position after it."""
    letters: cython.p_uchar = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    three: cython.uint
    out[to] = 34
    to += 1
    while at < end:
        three = cython.cast(cython.uint, data[at]) << 16
        if at + 1 < end:
            three |= cython.cast(cython.uint, data[at + 1]) << 8
        if at + 2 < end:
            three |= data[at + 2]
        out[to] = letters[three >> 18]
        out[to + 1] = letters[three >> 12 & 63]
        out[to + 2] = letters[three >> 6 & 63] if at + 1 < end else 61
        out[to + 3] = letters[three & 63] if at + 2 < end else 61
        to += 4
        at += 3
    out[to] = 34
    return to + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def put_json_bytes(
    out: cython.p_uchar,
    to: cython.Py_ssize_t,
    is_value: cython.bint,
    data: cython.p_uchar,
    at: cython.Py_ssize_t,
    size: cython.longlong,
):
    """Write the key or value of a record or header (null: size -1) after its JSON key; then its encoding, if it is not
    UTF-8. Returns the position after it."""
    then: cython.Py_ssize_t
    if size < 0:
        return put_text(out, to, b"null", 4)
    then = _text(out, to, data, at, at + size)
    if then >= 0:
        return then
    to = _base64(out, to, data, at, at + size)
    if is_value:
        return put_text(out, to, b',"valueEncoding":"base64"', 25)
    return put_text(out, to, b',"keyEncoding":"base64"', 23)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def put_json_headers(
    out: cython.p_uchar,
    to: cython.Py_ssize_t,
    data: cython.p_uchar,
    position: cython.Py_ssize_t,
    count: cython.longlong,
):
    """Write the objects of `count` headers, which start at data[position:], with commas between them."""
    size: cython.longlong
    header: cython.longlong
    for header in range(count):
        to = put_text(out, to, b',{"key":', 8) if header else put_text(out, to, b'{"key":', 7)
        size, position = valid_size_at(data, position)
        to = put_json_bytes(out, to, False, data, position, size)
        position += size if size > 0 else 0
        to = put_text(out, to, b',"value":', 9)
        size, position = valid_size_at(data, position)
        to = put_json_bytes(out, to, True, data, position, size)
        position += size if size > 0 else 0
        to = put_text(out, to, b"}", 1)
    return to
