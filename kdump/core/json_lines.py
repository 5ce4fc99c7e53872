# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Writes JSON lines of records directly from columns: identical to render.inspect_objects.record_object and jsonl.line,
but without creating an object per record. A property test compares the two.

Compiled if a C compiler is available. As plain Python, it is slower than those two, and only that test uses it.
"""

from __future__ import annotations

from typing import NamedTuple

from kdump import jsonl
from kdump.core.header_columns import HeaderColumns
from kdump.core.record_columns import RecordColumns, decode_all, keep_keys

try:
    import cython
except ImportError:
    from kdump import nocython as cython

if cython.compiled:
    from cython.cimports.kdump.core.cells import *  # noqa: F403
    from cython.cimports.kdump.core.column_numbers import *  # noqa: F403
    from cython.cimports.kdump.core.integers import plus, sequence_at
    from cython.cimports.libc.string import memcpy
else:
    from kdump.core.cells import LINE_BYTES
    from kdump.core.column_numbers import (
        ATTRIBUTES,
        BASE_OFFSET,
        BASE_SEQUENCE,
        BASE_TIMESTAMP,
        BATCH_END,
        BATCH_START,
        CODEC,
        HEADER_SIZE,
        HEADER_WIDTH,
        HEADERS_COUNT,
        HEADERS_START,
        IS_CONTROL,
        KEY_SIZE,
        KEY_START,
        LOG_APPEND_TIME,
        OFFSET_DELTA,
        RECORD_ATTRIBUTES,
        RECORD_COUNT,
        RECORD_END,
        RECORD_START,
        RECORD_WIDTH,
        TIMESTAMP_DELTA,
        VALUE_SIZE,
        VALUE_START,
    )
    from kdump.core.integers import plus, sequence_at

COMPILED: bool = cython.compiled
ROOM = 1 << 20
"""Bytes of lines that are collected before they are written."""
MAX_LINE_BYTES = 16 << 20
"""Maximum bytes that one line may need at worst; longer lines are written elsewhere."""

PLAIN, SHORT, LONG, WIDE = 0, 1, 2, 3
"""How JSON encodes a byte: as itself, as a backslash and a letter, as \\u00XX, or depending on the bytes after it."""


def _kinds() -> tuple[bytes, bytes]:
    """For each byte, return how JSON encodes it, and the letter after the backslash (or the byte itself)."""
    kinds, letters = bytearray(256), bytearray(range(256))
    for byte in range(256):
        line = jsonl.line(chr(byte))
        text = line[1 : len(line) - 1]
        kinds[byte] = WIDE if byte >= 0x80 else PLAIN if len(text) == 1 else SHORT if len(text) == 2 else LONG
        if kinds[byte] == SHORT:
            letters[byte] = ord(text[1])
    return bytes(kinds), bytes(letters)


_KINDS: bytes
_LETTERS: bytes
_KINDS, _LETTERS = _kinds()
_HEX: bytes = b"0123456789abcdef"


class LineTemplate(NamedTuple):
    """What all lines of a batch have in common. `head` ends after `"position":`. `middle` starts after the timestamp
    and ends after `"attributes":`. `tail` starts after the headers or, for magic 0 and 1, after the checksum. If
    `append_time` is not None, it is the timestamp of all records. The columns of magic 0 and 1 are those of
    core.message_set."""

    head: bytes
    position: int
    middle: bytes
    tail: bytes
    base_offset: int
    base_timestamp: int
    base_sequence: int
    append_time: int | None
    magic: int = 2


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def put_number(out: cython.p_uchar, at: cython.Py_ssize_t, number: cython.longlong):
    """Write `number` in decimal at out[at:]. Returns the position after it."""
    rest: cython.ulonglong
    digits: cython.Py_ssize_t = 1
    if number < 0:
        out[at] = 45
        at += 1
        rest = -number if not cython.compiled else 0 - cython.cast(cython.ulonglong, number)
    else:
        rest = number
    bound: cython.ulonglong = 10
    while digits < 19 and rest >= bound:
        digits += 1
        bound *= 10
    end: cython.Py_ssize_t = at + digits
    at = end
    while digits > 0:
        digits -= 1
        at -= 1
        out[at] = cython.cast(cython.uchar, 48 + rest % 10)
        rest = rest // 10
    return end


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def put_text(out: cython.p_uchar, at: cython.Py_ssize_t, text: cython.p_uchar, size: cython.Py_ssize_t):
    """Write `text` unchanged at out[at:]. Returns the position after it."""
    if cython.compiled:
        memcpy(out + at, text, size)
    else:
        out[at : at + size] = text
    return at + size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def put_piece(
    out: cython.p_uchar, at: cython.Py_ssize_t, text: cython.p_uchar, start: cython.Py_ssize_t, stop: cython.Py_ssize_t
):
    """Write text[start:stop] at out[at:]. Returns the position after it."""
    if cython.compiled:
        memcpy(out + at, text + start, stop - start)
    else:
        out[at : at + stop - start] = text[start:stop]
    return at + stop - start


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _escape(out: cython.p_uchar, at: cython.Py_ssize_t, point: cython.uint, digits: cython.p_uchar):
    """Write \\uXXXX at out[at:]. Returns the position after it."""
    out[at] = 92
    out[at + 1] = 117
    out[at + 2] = digits[point >> 12 & 15]
    out[at + 3] = digits[point >> 8 & 15]
    out[at + 4] = digits[point >> 4 & 15]
    out[at + 5] = digits[point & 15]
    return at + 6


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _text(
    out: cython.p_uchar,
    to: cython.Py_ssize_t,
    data: cython.p_uchar,
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    kinds: cython.p_uchar,
    letters: cython.p_uchar,
    digits: cython.p_uchar,
):
    """Write data[at:end] as a JSON string at out[to:]. Returns the position after it; -1 if the data is not UTF-8."""
    byte: cython.uint
    kind: cython.uint
    point: cython.uint
    more: cython.Py_ssize_t
    i: cython.Py_ssize_t
    out[to] = 34
    to += 1
    while at < end:
        byte = data[at]
        kind = kinds[byte]
        if kind < 2:
            # Branch-free: quotes are frequent, and the CPU cannot predict where they occur.
            out[to] = 92
            to += kind
            out[to] = letters[byte]
            to += 1
            at += 1
            continue
        if kind == 2:
            to = _escape(out, to, byte, digits)
            at += 1
            continue
        # RFC 3629: no overlong form, no surrogate, nothing beyond U+10FFFF.
        if 0xC2 <= byte <= 0xDF:
            more = 1
            point = byte & 0x1F
        elif 0xE0 <= byte <= 0xEF:
            more = 2
            point = byte & 0x0F
        elif 0xF0 <= byte <= 0xF4:
            more = 3
            point = byte & 0x07
        else:
            return -1
        if at + more >= end:
            return -1
        for i in range(1, more + 1):
            byte = data[at + i]
            if byte & 0xC0 != 0x80:
                return -1
            point = point << 6 | (byte & 0x3F)
        if more == 2 and (point < 0x800 or 0xD800 <= point <= 0xDFFF):
            return -1
        if more == 3 and not 0x10000 <= point <= 0x10FFFF:
            return -1
        # Same as jsonl: control characters, directional marks, separators, and the byte order mark.
        if (
            point < 0xA0
            or (
                0x200E <= point <= 0x206F
                and (point <= 0x200F or 0x2028 <= point <= 0x202E or 0x2066 <= point <= 0x2069)
            )
            or point == 0xFEFF
        ):
            to = _escape(out, to, point, digits)
        else:
            for i in range(more + 1):
                out[to + i] = data[at + i]
            to += more + 1
        at += more + 1
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
def put_bytes(
    out: cython.p_uchar,
    to: cython.Py_ssize_t,
    is_value: cython.bint,
    data: cython.p_uchar,
    at: cython.Py_ssize_t,
    size: cython.longlong,
    kinds: cython.p_uchar,
    letters: cython.p_uchar,
    digits: cython.p_uchar,
):
    """Write the key or value of a record or header (null: size -1) with its JSON key, and with its encoding if it is
    not UTF-8. A comma precedes it, except after an opening brace. Returns the position after it."""
    then: cython.Py_ssize_t
    if out[to - 1] != 123:
        out[to] = 44
        to += 1
    to = put_text(out, to, b'"value":', 8) if is_value else put_text(out, to, b'"key":', 6)
    if size < 0:
        return put_text(out, to, b"null", 4)
    then = _text(out, to, data, at, at + size, kinds, letters, digits)
    if then >= 0:
        return then
    to = _base64(out, to, data, at, at + size)
    if is_value:
        return put_text(out, to, b',"valueEncoding":"base64"', 25)
    return put_text(out, to, b',"keyEncoding":"base64"', 23)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
@cython.returns((cython.longlong, cython.Py_ssize_t))
def header_size(data: cython.p_uchar, position: cython.Py_ssize_t):
    """Return the size of a header's key or value at data[position:], which `decode` has validated, and the position
    after the size."""
    size: cython.longlong = 0
    shift: cython.Py_ssize_t = 0
    while data[position] >= 0x80:
        size |= cython.cast(cython.longlong, data[position] & 0x7F) << shift
        shift += 7
        position += 1
    size |= cython.cast(cython.longlong, data[position]) << shift
    size = cython.cast(cython.uint, size) if cython.compiled else size & (1 << 32) - 1
    return ((size >> 1) ^ -(size & 1), position + 1)


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
@cython.returns((cython.Py_ssize_t, cython.Py_ssize_t))
def _lines(
    out: cython.p_uchar,
    used: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
    data: cython.p_uchar,
    rows: cython.longlong[::1],
    row: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    head: cython.p_uchar,
    head_size: cython.Py_ssize_t,
    batch_position: cython.longlong,
    middle: cython.p_uchar,
    middle_size: cython.Py_ssize_t,
    tail: cython.p_uchar,
    tail_size: cython.Py_ssize_t,
    base_offset: cython.longlong,
    base_timestamp: cython.longlong,
    base_sequence: cython.longlong,
    appended: cython.bint,
    append_time: cython.longlong,
    magic: cython.longlong,
    kinds: cython.p_uchar,
    letters: cython.p_uchar,
    digits: cython.p_uchar,
):
    """Write the lines of the records row..count after the `used` bytes of `out`, which has `size` bytes. Returns the
    first record that is not written, because there is no room, and the number of bytes used."""
    fixed: cython.Py_ssize_t = head_size + middle_size + tail_size + LINE_BYTES
    at: cython.Py_ssize_t
    to: cython.Py_ssize_t
    position: cython.Py_ssize_t
    delta: cython.longlong
    length: cython.longlong
    headers: cython.longlong
    header: cython.longlong
    part: cython.int
    while row < count:
        at = row * RECORD_WIDTH
        headers = rows[at + HEADERS_COUNT]
        if used + fixed + 6 * (rows[at + RECORD_END] - rows[at + RECORD_START]) + 80 * headers > size:
            break
        to = put_text(out, used, head, head_size)
        to = put_number(out, to, batch_position)
        to = put_text(out, to, b',"offset":', 10)
        delta = rows[at + OFFSET_DELTA]
        to = put_number(out, to, plus(base_offset, delta))
        to = put_text(out, to, b',"timestamp":', 13)
        if magic == 0:
            to = put_text(out, to, b"null", 4)
        else:
            to = put_number(out, to, append_time if appended else plus(base_timestamp, rows[at + TIMESTAMP_DELTA]))
        to = put_text(out, to, middle, middle_size)
        to = put_number(out, to, rows[at + RECORD_ATTRIBUTES])
        if magic < 2:
            to = put_text(out, to, b',"offsetDelta":null,"timestampDelta":null,"sequence":null', 57)
        else:
            to = put_text(out, to, b',"offsetDelta":', 15)
            to = put_number(out, to, delta)
            to = put_text(out, to, b',"timestampDelta":', 18)
            to = put_number(out, to, rows[at + TIMESTAMP_DELTA])
            to = put_text(out, to, b',"sequence":', 12)
            to = put_number(out, to, sequence_at(base_sequence, delta))
        to = put_text(out, to, b',"keySize":', 11)
        to = put_number(out, to, rows[at + KEY_SIZE])
        to = put_text(out, to, b',"valueSize":', 13)
        to = put_number(out, to, rows[at + VALUE_SIZE])
        to = put_bytes(out, to, False, data, rows[at + KEY_START], rows[at + KEY_SIZE], kinds, letters, digits)
        to = put_bytes(out, to, True, data, rows[at + VALUE_START], rows[at + VALUE_SIZE], kinds, letters, digits)
        to = put_text(out, to, b',"headers":[', 12)
        position = rows[at + HEADERS_START]
        for header in range(headers):
            if header > 0:
                out[to] = 44
                to += 1
            out[to] = 123
            to += 1
            for part in range(2):
                length, position = header_size(data, position)
                to = put_bytes(out, to, part == 1, data, position, length, kinds, letters, digits)
                if length > 0:
                    position += length
            out[to] = 125
            to += 1
        if magic < 2:
            to = put_text(out, to, b'],"crc":', 8)
            to = put_number(out, to, rows[at + HEADERS_START])
        used = put_text(out, to, tail, tail_size)
        row += 1
    return (row, used)


def write(
    room: bytearray, used: cython.Py_ssize_t, columns: RecordColumns, row: cython.Py_ssize_t, frame: LineTemplate
) -> tuple[int, int]:
    """Write the lines of the columns' records from number `row` on into `room`, after its `used` bytes. Returns the
    first record that is not yet written, and the number of bytes used. Records that do not fit are left for the next
    call, with more room (see `bytes_needed`)."""
    source: cython.const[cython.uchar][::1] = columns.data
    target: cython.uchar[::1] = room
    rows: cython.longlong[::1] = columns.block
    data: cython.p_uchar
    out: cython.p_uchar
    if cython.compiled:
        data = cython.cast(cython.p_uchar, cython.address(source[0]))
        out = cython.address(target[0])
    else:
        data, out = source, target
    all_kinds: bytes = _KINDS
    all_letters: bytes = _LETTERS
    all_digits: bytes = _HEX
    kinds: cython.p_uchar = all_kinds
    letters: cython.p_uchar = all_letters
    digits: cython.p_uchar = all_digits
    first: bytes = frame.head
    second: bytes = frame.middle
    third: bytes = frame.tail
    head: cython.p_uchar = first
    middle: cython.p_uchar = second
    tail: cython.p_uchar = third
    head_size: cython.Py_ssize_t = len(first)
    middle_size: cython.Py_ssize_t = len(second)
    tail_size: cython.Py_ssize_t = len(third)
    count: cython.Py_ssize_t = columns.count
    size: cython.Py_ssize_t = len(room)
    position: cython.longlong = frame.position
    base_offset: cython.longlong = frame.base_offset
    base_timestamp: cython.longlong = frame.base_timestamp
    base_sequence: cython.longlong = frame.base_sequence
    appended: cython.bint = frame.append_time is not None
    append_time: cython.longlong = frame.append_time if appended else 0
    magic: cython.longlong = frame.magic
    with cython.nogil:
        row, used = _lines(
            out, used, size, data, rows, row, count, head, head_size, position, middle, middle_size, tail, tail_size,
            base_offset, base_timestamp, base_sequence, appended, append_time, magic, kinds, letters, digits,
        )  # fmt: skip
    return row, used


def write_batches(
    room: bytearray,
    used: cython.Py_ssize_t,
    columns: RecordColumns,
    heads: HeaderColumns,
    batch: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    head: bytes,
    created: bytes,
    tail: bytes,
    keys: list[bytes],
) -> tuple[int, int]:
    """Write the lines of all records of the valid batches batch..stop. Returns the first batch that is not written, and
    the number of bytes used. It stops at compressed batches, control batches, batches with append time, batches whose
    records cannot be decoded, and batches that do not fit. `columns` must refer to the data of `heads`. `keys`: write
    only records with one of these keys; empty: all."""
    buffer: cython.const[cython.uchar][::1] = columns.data
    target: cython.uchar[::1] = room
    rows: cython.longlong[::1]
    of: cython.longlong[::1] = heads.block
    shift: cython.longlong = heads.shift
    data: cython.p_uchar
    out: cython.p_uchar
    if cython.compiled:
        data = cython.cast(cython.p_uchar, cython.address(buffer[0]))
        out = cython.address(target[0])
    else:
        data, out = buffer, target
    all_kinds: bytes = _KINDS
    all_letters: bytes = _LETTERS
    all_digits: bytes = _HEX
    kinds: cython.p_uchar = all_kinds
    letters: cython.p_uchar = all_letters
    digits: cython.p_uchar = all_digits
    in_front: cython.p_uchar = head
    between: cython.p_uchar = created
    after: cython.p_uchar = tail
    head_size: cython.Py_ssize_t = len(head)
    created_size: cython.Py_ssize_t = len(created)
    tail_size: cython.Py_ssize_t = len(tail)
    size: cython.Py_ssize_t = len(room)
    at: cython.Py_ssize_t
    count: cython.Py_ssize_t
    row: cython.Py_ssize_t
    before: cython.Py_ssize_t
    chosen: cython.bint = bool(keys)
    while batch < stop:
        at = batch * HEADER_WIDTH
        count = of[at + RECORD_COUNT]
        if of[at + ATTRIBUTES] & (CODEC | LOG_APPEND_TIME | IS_CONTROL):
            break
        if not decode_all(columns, of[at + BATCH_START] + HEADER_SIZE, of[at + BATCH_END], count):
            break
        if chosen:
            keep_keys(columns, keys)
            count = columns.count
        rows = columns.block
        before = used
        with cython.nogil:
            row, used = _lines(
                out, used, size, data, rows, 0, count, in_front, head_size, of[at + BATCH_START] + shift, between,
                created_size, after, tail_size, of[at + BASE_OFFSET], of[at + BASE_TIMESTAMP], of[at + BASE_SEQUENCE],
                False, 0, 2, kinds, letters, digits,
            )  # fmt: skip
        if row < count:
            used = before
            break
        batch += 1
    return batch, used


def bytes_needed(columns: RecordColumns, row: int, frame: LineTemplate) -> int:
    """Return a number of bytes that is certainly enough for the line of record number `row`."""
    at = row * RECORD_WIDTH
    size = columns.block[at + RECORD_END] - columns.block[at + RECORD_START]
    fixed = len(frame.head) + len(frame.middle) + len(frame.tail) + LINE_BYTES
    return int(fixed + 6 * size + 80 * columns.block[at + HEADERS_COUNT])
