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
    program: cython.const[cython.longlong][::1],
    node: cython.Py_ssize_t,
    data: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    state: cython.longlong[::1],
) -> cython.Py_ssize_t:
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
def _after(
    program: cython.const[cython.longlong][::1],
    node: cython.Py_ssize_t,
    data: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    depth: cython.Py_ssize_t,
    state: cython.longlong[::1],
) -> cython.Py_ssize_t:
    """Return the position after the value of a node at data[at:end]; -1 if it does not fit. `state`: how many steps it
    may take; the digits that no integer may have, as for _has_digits (0: any)."""
    kind: cython.longlong = program[node]
    count: cython.longlong
    number: cython.longlong
    i: cython.Py_ssize_t
    fields: cython.Py_ssize_t
    state[0] -= 1
    if depth > NODE_DEPTH or state[0] < 0:
        return -1
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
    if kind == NODE_SAME:
        return _after(program, program[node + 1], data, at, end, depth + 1, state)
    if kind == NODE_RECORD:
        for i in range(program[node + 1]):
            at = _after(program, program[node + 2 + i], data, at, end, depth + 1, state)
            if at < 0:
                return -1
        return at
    if kind == NODE_MESSAGE:
        fields, i = program[node + 1], 0
        while 0 <= at < end:
            number, at = bits_at(data, at, end)
            count = 0
            while count < fields and program[node + 2 + 2 * i] != number:  # fields come in order
                i = i + 1 if i + 1 < fields else 0
                count += 1
            if at < 0 or count == fields:
                return -1
            at = _after(program, program[node + 3 + 2 * i], data, at, end, depth + 1, state)
        return at
    if kind == NODE_ITEMS:
        while 0 <= at < end:
            at = _after(program, program[node + 1], data, at, end, depth + 1, state)
        return at
    if kind == NODE_ANY:
        return end
    if kind == NODE_TEXT:
        return end if _is_utf8(data, at, end) else -1
    if kind == NODE_BLOCK:
        number, at = bits_at(data, at, end)
        if at < 0 or number < 0 or number > end - at:
            return -1
        return at + number if _after(program, program[node + 1], data, at, at + number, depth + 1, state) >= 0 else -1
    if kind == NODE_CHOICE:
        # Indexes of a message: none, which is the first, or one of fewer than 64. Others are left to the decoder.
        if at >= end:
            return -1
        number = 0
        if data[at] == 2 and at + 1 < end and data[at + 1] < 128 and data[at + 1] % 2 == 0:
            at += 1
            number = data[at] >> 1
        elif data[at] != 0:
            return -1
        if number >= program[node + 1]:
            return -1
        return _after(program, program[node + 2 + number], data, at + 1, end, depth + 1, state)
    number, at = varint_at(data, at, end, 64)
    if at < 0:
        return -1
    if kind in (NODE_BYTES, NODE_STRING):
        if number < 0 or number > end - at:
            return -1
        return at + number if kind == NODE_BYTES or _is_utf8(data, at, at + number) else -1
    if kind == NODE_UNION:
        if number < 0 or number >= program[node + 1]:
            return -1
        return _after(program, program[node + 2 + number], data, at, end, depth + 1, state)
    while number != 0:
        count = number
        if count < 0:
            count = -count
            number, at = varint_at(data, at, end, 64)
            if at < 0 or count < 0:
                return -1
        while count > 0:
            if kind == NODE_MAP:
                number, at = varint_at(data, at, end, 64)
                if at < 0 or number < 0 or number > end - at:
                    return -1
                at += number
            at = _after(program, program[node + 1], data, at, end, depth + 1, state)
            if at < 0:
                return -1
            count -= 1
        number, at = varint_at(data, at, end, 64)
        if at < 0:
            return -1
    return at


def fits(program: array[int], data: bytes, start: int) -> bool:
    """Return whether the bytes from `start` on are exactly one value of a schema."""
    state = array("q", (16 + 4 * len(data), 0, 0))
    return _after(program, 0, data, start, len(data), 0, state) == len(data)


def candidate_rows(
    columns: RecordColumns,
    parts: cython.longlong,
    needles: list[bytes],
    of_number: bool,
    program_of: Callable[[int], array[int]],
    digits: tuple[int, int] | None,
) -> list[int]:
    """Return the numbers of the records that have one of the needles in one of the parts, and of those of which these
    bytes do not show that they have none: what is neither text as it is nor fits the program of the schema with its
    ID, which `program_of` returns (it may add needles). `of_number`: a number is looked for; `digits`: so is an integer
    with these digits in its text, as a power of ten and a number."""
    data: cython.const[cython.uchar][::1] = columns.data
    rows: cython.longlong[::1] = columns.block
    state: cython.longlong[::1] = array("q", (0, *(digits or (0, 0))))
    program: cython.const[cython.longlong][::1] = array("q", (NODE_NULL,))
    needle: cython.const[cython.uchar][::1]
    count: cython.Py_ssize_t = columns.count
    number: cython.Py_ssize_t
    at: cython.Py_ssize_t
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    position: cython.Py_ssize_t
    part: cython.Py_ssize_t
    left: cython.longlong
    size: cython.longlong
    schema: cython.longlong
    known: cython.longlong = -1
    is_sure: cython.bint
    numeric: cython.bint = of_number
    if columns.skimmed:
        return list(range(columns.count))
    found = array("q", bytes(8 * count))
    marks: cython.longlong[::1] = found
    for number in range(count):
        at = number * RECORD_WIDTH
        is_sure = True
        for part in range(2):
            if not parts & (1 << part):
                continue
            start, size = rows[at + KEY_START], rows[at + KEY_SIZE]
            if part:
                start, size = rows[at + VALUE_START], rows[at + VALUE_SIZE]
            if size <= 0:
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
                is_sure = _is_plain(data, start, stop, numeric)
            if not is_sure:
                break
        left = rows[at + HEADERS_COUNT]
        if is_sure and left > 0:
            position, stop = rows[at + HEADERS_START], rows[at + RECORD_END]
            needle = MARK
            is_sure = not _has(data, position, stop, needle, len(MARK))
            while parts & IN_HEADERS and is_sure and left > 0:
                size, position = varint_at(data, position, stop, 32)
                position += size
                size, position = varint_at(data, position, stop, 32)
                if size > 0:
                    is_sure = _is_plain(data, position, position + size, numeric)
                    position += size
                left -= 1
        if not is_sure:
            marks[number] = 1
    for wanted in needles:
        needle = wanted
        size = len(wanted)
        for number in range(count):
            at = number * RECORD_WIDTH
            if marks[number]:
                continue
            start = rows[at + KEY_START]
            if parts & IN_KEYS and _has(data, start, start + rows[at + KEY_SIZE], needle, size):
                marks[number] = 1
            start = rows[at + VALUE_START]
            if parts & IN_VALUES and _has(data, start, start + rows[at + VALUE_SIZE], needle, size):
                marks[number] = 1
            if parts & IN_HEADERS and _has(data, rows[at + HEADERS_START], rows[at + RECORD_END], needle, size):
                marks[number] = 1
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
