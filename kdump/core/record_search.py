# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Rules records out of a search by their bytes, before they are decoded: most have nothing in them that is looked for.

Compiled if a C compiler is available, otherwise run as Python."""

from __future__ import annotations

from array import array
from collections.abc import Callable

from kdump.core.record_columns import RecordColumns

try:
    import cython
except ImportError:
    from kdump import nocython as cython

if cython.compiled:
    from cython.cimports.kdump.core.column_numbers import *
    from cython.cimports.kdump.core.integers import bits_at, double_at, rounded, uint32_at, varint_at
else:
    from kdump.core.column_numbers import *
    from kdump.core.integers import bits_at, double_at, rounded, uint32_at, varint_at

COMPILED: bool = cython.compiled
MARK = b"_schema_id"
"""A header key with this in it may hold the ID of a schema."""


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _has(
    data: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    needle: cython.const[cython.uchar][::1],
    size: cython.Py_ssize_t,
) -> cython.bint:
    """Return whether data[start:end] contains the needle."""
    first: cython.uchar = needle[0]
    i: cython.Py_ssize_t
    while start + size <= end:
        if data[start] == first:
            i = 1
            while i < size and data[start + i] == needle[i]:
                i += 1
            if i == size:
                return True
        start += 1
    return False


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _is_utf8(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    """Return whether data[at:end] is UTF-8."""
    left: cython.Py_ssize_t = 0
    low: cython.uchar = 0x80
    high: cython.uchar = 0xBF
    byte: cython.uchar
    while at < end:
        byte = data[at]
        at += 1
        if left:
            if byte < low or byte > high:
                return False
            left -= 1
            low, high = 0x80, 0xBF
        elif byte >= 0x80:
            if byte < 0xC2 or byte > 0xF4:
                return False
            left = 1 if byte < 0xE0 else 2 if byte < 0xF0 else 3
            low = 0xA0 if byte == 0xE0 else 0x90 if byte == 0xF0 else 0x80
            high = 0x9F if byte == 0xED else 0x8F if byte == 0xF4 else 0xBF
    return left == 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _is_plain(
    data: cython.const[cython.uchar][::1], start: cython.Py_ssize_t, end: cython.Py_ssize_t, of_number: cython.bint
) -> cython.bint:
    """Return whether data[start:end] is text as it is: UTF-8 without control characters and, if it begins like JSON,
    without escapes and, `of_number`, without numbers that may be equal to one with other digits: in scientific
    notation, or fractions of many digits. 2, 4 or 8 bytes are a number otherwise."""
    size: cython.Py_ssize_t = end - start
    is_number: cython.bint = size == 2 or size == 4 or size == 8
    is_json: cython.bint = False
    in_string: cython.bint = False
    is_ascii: cython.bint = True
    is_fraction: cython.bint = False
    digits: cython.Py_ssize_t = 0
    before: cython.uchar = 0
    byte: cython.uchar
    at: cython.Py_ssize_t = start
    while at < end and (data[at] == 32 or data[at] == 9 or data[at] == 10 or data[at] == 13):
        at += 1
    if at < end:
        is_json = data[at] == 123 or data[at] == 91 or data[at] == 34
    while at < end:
        byte = data[at]
        at += 1
        if byte < 0x20:
            if byte != 9 and byte != 10 and byte != 13:
                return is_number
        elif byte >= 0x80:
            is_ascii = False
        elif is_json:
            if byte == 92:
                return False
            if byte == 34:
                in_string = not in_string
                digits, is_fraction = 0, False
            elif of_number and (byte == 101 or byte == 69) and 48 <= before <= 57:
                # Of text, only the notation of decimals (1E+2) is a number: many texts have a digit before an e.
                if not in_string or (byte == 69 and at < end and (data[at] == 43 or data[at] == 45)):
                    return False
            elif of_number and not in_string:
                if 48 <= byte <= 57:
                    digits += 1
                    if is_fraction and digits > EXACT_DIGITS:
                        return False
                elif byte == 46:
                    is_fraction = True
                else:
                    digits, is_fraction = 0, False
        before = byte
    return is_ascii or _is_utf8(data, start, end) or is_number


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _has_digits(value: cython.longlong, power: cython.longlong, digits: cython.longlong) -> cython.bint:
    """Return whether the text of an integer has the digits of a text in it, given as a power of ten and a number."""
    if value == 0:
        return power == 10 and digits == 0
    while value >= power // 10:
        if value % power == digits:
            return True
        value //= 10
    return False


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _may_have_digits(value: cython.double, power: cython.longlong, digits: cython.longlong) -> cython.bint:
    """Return whether the text of a number may have digits in it, as for _has_digits. One that is a decimal fraction of
    at most EXACT_DIGITS digits has exactly these; others may have any."""
    scale: cython.longlong = 1
    whole: cython.longlong
    part: cython.longlong
    if value < 0:
        value = -value
    if value == 0:
        return power == 10 and digits == 0
    if not 0.0001 <= value < 1000000000:
        return True
    while scale <= 1000000:
        whole = rounded(value * scale)
        if whole / cython.cast(cython.double, scale) == value:
            if _has_digits(whole // scale, power, digits):
                return True
            if scale == 1:
                return power == 10 and digits == 0  # 4.0
            part = whole % scale
            while scale >= power:
                if part % power == digits:
                    return True
                part //= 10
                scale //= 10
            return False
        scale *= 10
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _varint(
    program: cython.const[cython.longlong][::1], node: cython.Py_ssize_t, data: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t, end: cython.Py_ssize_t, state: cython.longlong[::1],
) -> cython.Py_ssize_t:  # fmt: skip
    """Return the position after a varint; -1 if it is longer than it has to be, out of range, or has digits that are
    looked for."""
    number: cython.longlong
    at: cython.Py_ssize_t
    number, at = bits_at(data, start, end)
    if program[node + 1] == 2:
        number, end = varint_at(data, start, end, 64)
    if at < 0 or number < program[node + 2] or number > program[node + 3]:
        return -1
    if state[1] and program[node + 3] > 1:  # a boolean has no digits
        if number < 0 and (program[node + 1] == 0 or number == program[node + 2]):
            return -1
        if _has_digits(-number if number < 0 else number, state[1], state[2]):
            return -1
    return at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _after_leaf(
    program: cython.const[cython.longlong][::1], node: cython.Py_ssize_t, data: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t, end: cython.Py_ssize_t, state: cython.longlong[::1],
) -> cython.Py_ssize_t:  # fmt: skip
    """As _after, for a value without others in it."""
    kind: cython.longlong = program[node]
    size: cython.longlong
    if kind == NODE_VARINT:
        return _varint(program, node, data, at, end, state)
    if kind == NODE_NULL:
        return at
    if kind == NODE_FIXED:
        return at + program[node + 1] if end - at >= program[node + 1] else -1
    if kind == NODE_DOUBLE:
        if end - at < 8 or (state[1] and _may_have_digits(double_at(data, at), state[1], state[2])):
            return -1
        return at + 8
    if kind == NODE_ANY:
        return end
    if kind == NODE_TEXT:
        return end if _is_utf8(data, at, end) else -1
    size, at = varint_at(data, at, end, 64)
    if at < 0 or size < 0 or size > end - at:
        return -1
    return at + size if kind == NODE_BYTES or _is_utf8(data, at, at + size) else -1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _after(
    program: cython.const[cython.longlong][::1], node: cython.Py_ssize_t, data: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t, end: cython.Py_ssize_t, depth: cython.Py_ssize_t, state: cython.longlong[::1],
) -> cython.Py_ssize_t:  # fmt: skip
    """Return the position after the value of a node at data[at:end]; -1 if it does not fit. `state`: how many steps it
    may take; the digits that no integer may have, as for _has_digits (0: any)."""
    kind: cython.longlong = program[node]
    number: cython.longlong = 0
    i: cython.Py_ssize_t
    state[0] -= 1
    if depth > NODE_DEPTH or state[0] < 0:
        return -1
    if kind <= NODE_DOUBLE:
        return _after_leaf(program, node, data, at, end, state)
    if kind == NODE_SAME:
        return _after(program, program[node + 1], data, at, end, depth + 1, state)
    if kind == NODE_RECORD:
        for i in range(program[node + 1]):
            at = _after(program, program[node + 2 + i], data, at, end, depth + 1, state)
            if at < 0:
                return -1
        return at
    if kind == NODE_MESSAGE:
        return _after_fields(program, node, data, at, end, depth, state)
    if kind == NODE_ITEMS:
        while 0 <= at < end:
            at = _after(program, program[node + 1], data, at, end, depth + 1, state)
        return at
    if kind in (NODE_ARRAY, NODE_MAP):
        return _after_blocks(program, node, data, at, end, depth, state)
    if kind == NODE_BLOCK:
        number, at = bits_at(data, at, end)
        if at < 0 or number < 0 or number > end - at:
            return -1
        return at + number if _after(program, program[node + 1], data, at, at + number, depth + 1, state) >= 0 else -1
    if kind == NODE_UNION:
        number, at = varint_at(data, at, end, 64)
    # Indexes of a message: none, which is the first, or one of fewer than 64. Others are left to the decoder.
    elif at + 1 < end and data[at] == 2 and data[at + 1] < 128 and data[at + 1] % 2 == 0:
        number, at = data[at + 1] >> 1, at + 2
    else:
        at = at + 1 if at < end and data[at] == 0 else -1
    if at < 0 or number < 0 or number >= program[node + 1]:
        return -1
    return _after(program, program[node + 2 + number], data, at, end, depth + 1, state)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _after_fields(
    program: cython.const[cython.longlong][::1], node: cython.Py_ssize_t, data: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t, end: cython.Py_ssize_t, depth: cython.Py_ssize_t, state: cython.longlong[::1],
) -> cython.Py_ssize_t:  # fmt: skip
    """As _after, for the fields of a Protobuf message, which usually come in the order of the schema."""
    fields: cython.Py_ssize_t = program[node + 1]
    count: cython.Py_ssize_t
    number: cython.longlong
    i: cython.Py_ssize_t = 0
    while 0 <= at < end:
        number, at = bits_at(data, at, end)
        count = 0
        while count < fields and program[node + 2 + 2 * i] != number:
            i = i + 1 if i + 1 < fields else 0
            count += 1
        if at < 0 or count == fields:
            return -1
        at = _after(program, program[node + 3 + 2 * i], data, at, end, depth + 1, state)
    return at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _after_blocks(
    program: cython.const[cython.longlong][::1], node: cython.Py_ssize_t, data: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t, end: cython.Py_ssize_t, depth: cython.Py_ssize_t, state: cython.longlong[::1],
) -> cython.Py_ssize_t:  # fmt: skip
    """As _after, for the blocks of an Avro array or map, each after its number of items: if it is negative, the size in
    bytes comes next. The last has none."""
    count: cython.longlong
    size: cython.longlong
    while True:
        count, at = varint_at(data, at, end, 64)
        if at < 0 or count == 0:
            return at
        if count < 0:
            count = -count
            size, at = varint_at(data, at, end, 64)
            if at < 0 or count < 0:
                return -1
        while count > 0:
            if program[node] == NODE_MAP:
                size, at = varint_at(data, at, end, 64)
                if at < 0 or size < 0 or size > end - at:
                    return -1
                at += size
            at = _after(program, program[node + 1], data, at, end, depth + 1, state)
            if at < 0:
                return -1
            count -= 1


def fits(program: array[int], data: bytes, start: int) -> bool:
    """Return whether the bytes from `start` on are exactly one value of a schema."""
    state = array("q", (16 + 4 * len(data), 0, 0))
    return _after(program, 0, data, start, len(data), 0, state) == len(data)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _are_headers_plain(
    data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t, count: cython.longlong,
    of_number: cython.bint,
) -> cython.bint:  # fmt: skip
    """Return whether the values of `count` headers from data[at:] on are plain, as for _is_plain."""
    size: cython.longlong
    while count > 0:
        size, at = varint_at(data, at, end, 32)
        at += size
        size, at = varint_at(data, at, end, 32)
        if size > 0:
            if not _is_plain(data, at, at + size, of_number):
                return False
            at += size
        count -= 1
    return True


@cython.cfunc
@cython.exceptval(check=False)
def _mark_matches(
    data: cython.const[cython.uchar][::1], rows: cython.longlong[::1], count: cython.Py_ssize_t,
    parts: cython.longlong, needle: cython.const[cython.uchar][::1], marks: cython.longlong[::1],
) -> cython.void:  # fmt: skip
    """Mark the records that have the needle in one of the parts."""
    size: cython.Py_ssize_t = len(needle)
    number: cython.Py_ssize_t
    at: cython.Py_ssize_t
    key: cython.Py_ssize_t
    value: cython.Py_ssize_t
    for number in range(count):
        at = number * RECORD_WIDTH
        if marks[number]:
            continue
        key, value = rows[at + KEY_START], rows[at + VALUE_START]
        if (
            (parts & IN_KEYS and _has(data, key, key + rows[at + KEY_SIZE], needle, size))
            or (parts & IN_VALUES and _has(data, value, value + rows[at + VALUE_SIZE], needle, size))
            or (parts & IN_HEADERS and _has(data, rows[at + HEADERS_START], rows[at + RECORD_END], needle, size))
        ):
            marks[number] = 1


@cython.cfunc
def _mark_unsure(
    columns: RecordColumns, parts: cython.longlong, of_number: cython.bint, program_of: Callable[[int], array[int]],
    state: cython.longlong[::1], marks: cython.longlong[::1],
) -> None:  # fmt: skip
    """Mark the records whose bytes do not show what is in them: neither text as it is, nor what fits the program of the
    schema with its ID. `state`: as for _after."""
    data: cython.const[cython.uchar][::1] = columns.data
    rows: cython.longlong[::1] = columns.block
    program: cython.const[cython.longlong][::1] = array("q", (NODE_NULL,))
    mark: cython.const[cython.uchar][::1] = MARK
    number: cython.Py_ssize_t
    at: cython.Py_ssize_t
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    part: cython.Py_ssize_t
    size: cython.longlong
    schema: cython.longlong
    known: cython.longlong = -1
    is_sure: cython.bint
    for number in range(columns.count):
        at = number * RECORD_WIDTH
        is_sure = True
        for part in range(2):
            start, size = rows[at + KEY_START], rows[at + KEY_SIZE]
            if part:
                start, size = rows[at + VALUE_START], rows[at + VALUE_SIZE]
            if size <= 0 or not is_sure or not parts & (1 << part):
                continue
            stop = start + size
            if data[start] == 0 and size >= 5:
                schema = uint32_at(data, start + 1)
                if schema != known:
                    known = schema
                    program = program_of(schema)
                if program[0] != NODE_NULL:
                    state[0] = 16 + 4 * size
                    is_sure = _after(program, 0, data, start + 5, stop, 0, state) == stop
                else:
                    is_sure = size == 8
            else:
                is_sure = _is_plain(data, start, stop, of_number)
        start, stop = rows[at + HEADERS_START], rows[at + RECORD_END]
        if is_sure and rows[at + HEADERS_COUNT] > 0:
            is_sure = not _has(data, start, stop, mark, len(mark))
            if is_sure and parts & IN_HEADERS:
                is_sure = _are_headers_plain(data, start, stop, rows[at + HEADERS_COUNT], of_number)
        if not is_sure:
            marks[number] = 1


def candidate_rows(
    columns: RecordColumns,
    parts: int,
    needles: list[bytes],
    of_number: bool,
    program_of: Callable[[int], array[int]],
    digits: tuple[int, int] | None,
) -> list[int]:
    """Return the numbers of the records that have one of the needles in one of the parts, and of those of which these
    bytes do not show that they have none: what is neither text as it is nor fits the program of the schema with its
    ID, which `program_of` returns (it may add needles). `of_number`: a number is looked for; `digits`: so is an integer
    with these digits in its text, as a power of ten and a number."""
    if columns.skimmed:
        return list(range(columns.count))
    data: cython.const[cython.uchar][::1] = columns.data
    rows: cython.longlong[::1] = columns.block
    count: cython.Py_ssize_t = columns.count
    marks: cython.longlong[::1] = array("q", bytes(8 * count))
    _mark_unsure(columns, parts, of_number, program_of, array("q", (0, *(digits or (0, 0)))), marks)
    for needle in needles:
        _mark_matches(data, rows, count, parts, needle, marks)
    return [number for number in range(count) if marks[number]]


def note_newest(
    columns: RecordColumns, base_offset: cython.longlong, newest: dict[int, int], most: cython.Py_ssize_t
) -> bool:
    """Note the offset of each record by the hash of its key, for keys that are there or, up to `most`, new. Return
    whether each key is there."""
    data: cython.const[cython.uchar][::1] = columns.data
    rows: cython.longlong[::1] = columns.block
    number: cython.Py_ssize_t
    start: cython.Py_ssize_t
    is_noted: cython.bint = True
    for number in range(columns.count):
        start = number * RECORD_WIDTH
        if rows[start + KEY_SIZE] < 0:
            continue
        key = hash(bytes(data[rows[start + KEY_START] : rows[start + KEY_START] + rows[start + KEY_SIZE]]))
        if key in newest or len(newest) < most:
            newest[key] = base_offset + rows[start + OFFSET_DELTA]
        else:
            is_noted = False
    return is_noted
