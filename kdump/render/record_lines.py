# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""JSON lines of records straight from columns: what render.objects.record_object and render.jsonl.line give, with no
object a record. A property test holds the two together.

Compiled where there is a compiler. As plain Python it is slower than the two, and serves that test alone.
"""

from __future__ import annotations

from typing import NamedTuple

from kdump.format.batch import MAX_SEQUENCE
from kdump.format.columns import WIDTH, Columns, decode, keep_keys
from kdump.format.errors import DecodeError
from kdump.format.heads import Heads
from kdump.render import jsonl

try:
    import cython
except ImportError:
    from kdump.format import nocython as cython

if cython.compiled:
    from cython.cimports.kdump.format.heads import sequence_at
    from cython.cimports.libc.string import memcpy
else:
    from kdump.format.heads import sequence_at

COMPILED: bool = cython.compiled
ROOM = 1 << 20
"""Bytes of lines that are gathered."""
MOST = 16 << 20
"""Bytes that one line may need at worst, to be written here."""
FAR = 1 << 62
FIXED = 400
"""Bytes that the keys and numbers of a line take at most, together."""
assert (WIDTH, MAX_SEQUENCE) == (11, 2147483647)

PLAIN, SHORT, LONG, WIDE = 0, 1, 2, 3
"""What JSON makes of a byte: itself, a backslash and a letter, \\u00XX, or it depends on those behind it."""


def _kinds() -> tuple[bytes, bytes]:
    """For each byte, what JSON makes of it, and the letter behind the backslash (or the byte itself)."""
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


class Frame(NamedTuple):
    """What all lines of a batch have in common. `head` ends behind `"position":`, `middle` begins behind the timestamp
    and ends behind `"attributes":`, `tail` begins behind the headers, or, in magic 0 and 1, behind the checksum. All
    records have `append_time`, if it is not None; the columns of magic 0 and 1 are those of format.message_set."""

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
    """`number` in decimal at out[at:]; the position behind it."""
    rest: cython.ulonglong
    digits: cython.Py_ssize_t = 1
    if number < 0:
        out[at] = 45
        at += 1
        rest = -number
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
    """`text` as it is at out[at:]; the position behind it."""
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
    """text[start:stop] at out[at:]; the position behind it."""
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
    """\\uXXXX at out[at:]; the position behind it."""
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
    """data[at:end] as a JSON string at out[to:], and the position behind it; -1 if it is not UTF-8."""
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
            # Without a branch: a quote in every other word cannot be foreseen.
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
        # As jsonl has it: controls, marks of direction, separators, and the byte order mark.
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
    """data[at:end] as a JSON string in base64 (RFC 4648) at out[to:]; the position behind it."""
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
    """A key or a value of a record or header (null: size -1) with its JSON key, and its encoding if it is not UTF-8;
    with a comma before it, but behind a brace. The position behind it."""
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
    """The size of a header's key or value, which `decode` has found to be right, at data[position:], and the position
    behind it."""
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
    """The lines of records row..count behind the `used` bytes of `out`, of `size`: the first record that is not
    written, because there is no room or because its timestamp is out of reach, and the bytes that are used."""
    fixed: cython.Py_ssize_t = head_size + middle_size + tail_size + 400
    far: cython.longlong = cython.cast(cython.longlong, 1) << 62
    at: cython.Py_ssize_t
    to: cython.Py_ssize_t
    position: cython.Py_ssize_t
    delta: cython.longlong
    length: cython.longlong
    headers: cython.longlong
    header: cython.longlong
    part: cython.int
    while row < count:
        at = row * 11
        headers = rows[at + 10]
        if not -far <= rows[at + 3] <= far or used + fixed + 6 * (rows[at + 1] - rows[at]) + 80 * headers > size:
            break
        to = put_text(out, used, head, head_size)
        to = put_number(out, to, batch_position)
        to = put_text(out, to, b',"offset":', 10)
        delta = rows[at + 4]
        to = put_number(out, to, base_offset + delta)
        to = put_text(out, to, b',"timestamp":', 13)
        if magic == 0:
            to = put_text(out, to, b"null", 4)
        else:
            to = put_number(out, to, append_time if appended else base_timestamp + rows[at + 3])
        to = put_text(out, to, middle, middle_size)
        to = put_number(out, to, rows[at + 2])
        if magic < 2:
            to = put_text(out, to, b',"offsetDelta":null,"timestampDelta":null,"sequence":null', 57)
        else:
            to = put_text(out, to, b',"offsetDelta":', 15)
            to = put_number(out, to, delta)
            to = put_text(out, to, b',"timestampDelta":', 18)
            to = put_number(out, to, rows[at + 3])
            to = put_text(out, to, b',"sequence":', 12)
            to = put_number(out, to, sequence_at(base_sequence, delta))
        to = put_text(out, to, b',"keySize":', 11)
        to = put_number(out, to, rows[at + 6])
        to = put_text(out, to, b',"valueSize":', 13)
        to = put_number(out, to, rows[at + 8])
        to = put_bytes(out, to, False, data, rows[at + 5], rows[at + 6], kinds, letters, digits)
        to = put_bytes(out, to, True, data, rows[at + 7], rows[at + 8], kinds, letters, digits)
        to = put_text(out, to, b',"headers":[', 12)
        position = rows[at + 9]
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
            to = put_number(out, to, rows[at + 9])
        used = put_text(out, to, tail, tail_size)
        row += 1
    return (row, used)


def write(
    room: bytearray, used: cython.Py_ssize_t, columns: Columns, row: cython.Py_ssize_t, frame: Frame
) -> tuple[int, int]:
    """Write the lines of the columns' records from number `row` on into `room`, behind the `used` bytes: the number of
    the first record that is not yet written, and the bytes that are used now. What does not fit stays for the next
    call, when there is more room (see `needed`); and what `fits` not."""
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
    columns: Columns,
    heads: Heads,
    batch: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    head: bytes,
    created: bytes,
    tail: bytes,
    keys: list[bytes],
) -> tuple[int, int]:
    """Write the lines of all records of the batches batch..stop, which are sound: the first batch that is not written,
    and the bytes that are used now. Not written is one that is compressed, a control batch or with append time, one
    whose records do not decode or do not fit, and what there is no room for. `columns` are over the data of `heads`.
    `keys`: only records with one of these; all, if there are none."""
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
    behind: cython.p_uchar = tail
    head_size: cython.Py_ssize_t = len(head)
    created_size: cython.Py_ssize_t = len(created)
    tail_size: cython.Py_ssize_t = len(tail)
    size: cython.Py_ssize_t = len(room)
    far: cython.longlong = cython.cast(cython.longlong, 1) << 62
    at: cython.Py_ssize_t
    count: cython.Py_ssize_t
    row: cython.Py_ssize_t
    before: cython.Py_ssize_t
    chosen: cython.bint = bool(keys)
    while batch < stop:
        at = batch * 12
        count = of[at + 10]
        if of[at + 5] & 0x2F or not -far <= of[at + 11] <= far:
            break
        columns.count = 0
        try:
            if decode(columns, of[at] + 61, of[at + 1], count, True) != of[at + 1] or columns.count != count:
                break
        except DecodeError:
            break
        if chosen:
            keep_keys(columns, keys)
            count = columns.count
        rows = columns.block
        before = used
        with cython.nogil:
            row, used = _lines(
                out, used, size, data, rows, 0, count, in_front, head_size, of[at] + shift, between, created_size,
                behind, tail_size, of[at + 2], of[at + 11], of[at + 9], False, 0, 2, kinds, letters, digits,
            )  # fmt: skip
        if row < count:
            used = before
            break
        batch += 1
    return batch, used


def fits(columns: Columns, frame: Frame) -> bool:
    """Whether all numbers of the records fit into 64 bits; no real one comes near that."""
    rows: cython.longlong[::1] = columns.block
    far: cython.longlong = cython.cast(cython.longlong, 1) << 62
    at: cython.Py_ssize_t
    beyond: cython.bint = False
    for at in range(3, columns.count * 11, 11):
        beyond = beyond or not -far <= rows[at] <= far
    bases = (frame.base_offset, frame.base_timestamp, frame.append_time or 0)
    return not beyond and all(-FAR <= base <= FAR for base in bases)


def needed(columns: Columns, row: int, frame: Frame) -> int:
    """Bytes of room that the line of record number `row` is sure to fit into."""
    at = row * WIDTH
    size = columns.block[at + 1] - columns.block[at]
    fixed = len(frame.head) + len(frame.middle) + len(frame.tail) + FIXED
    return int(fixed + 6 * size + 80 * columns.block[at + 10])
