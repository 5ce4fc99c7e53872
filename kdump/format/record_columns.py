# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The record loop of v2 batches: one pass over the bytes fills integer columns and checks every bound.

This is the one permitted duplicate of the layout in kdump.format.record; a test compares the two, including on corrupt
bytes. Compiled if there is a compiler, otherwise run as Python.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple

from kdump.format.errors import DecodeError
from kdump.format.varint import Bytes, read_varint, read_varlong

try:
    import cython
except ImportError:
    from kdump.format import nocython as cython

if cython.compiled:
    from cython.cimports.kdump.format.numbers import plus
else:
    from kdump.format.numbers import plus

COMPILED: bool = cython.compiled
WIDTH = 11
"""Number of columns; see RecordColumns."""
TIMESTAMP_DELTA, OFFSET_DELTA, KEY_START, VALUE_START, HEADERS_START = 3, 4, 5, 7, 9
"""Indexes of these columns; the sizes and the count are in the columns after them."""
FEWEST = 16
"""Number of records for which space is allocated first, unless fewer are requested."""


class RecordColumns:
    """Records of one chunk of decompressed payload: `count` rows of WIDTH numbers in `block`; each column is also
    available by name. Starts are indexes into `data`.

    `key_size` and `value_size` are -1 for null. `start` and `end` bound a record, including its length field.

    `skimmed`: a single large record, of which `data` has only the key and the beginning of the value (log.skim) and, if
    requested, the keys of its headers from `headers_start` on, with null values; `digest`: of its key, if that is
    truncated too; `odd`: why one of its header keys is not valid text, empty if all are.
    """

    __slots__ = ("block", "count", "data", "digest", "odd", "skimmed")

    def __init__(self, data: Bytes) -> None:
        self.data = data
        self.skimmed = False
        self.digest = b""
        self.odd = ""
        self.block = array("q")
        self.count = 0

    def __len__(self) -> int:
        return self.count

    def _column(self, number: int) -> memoryview:
        return memoryview(self.block)[number : self.count * WIDTH : WIDTH]

    start = property(lambda self: self._column(0))
    end = property(lambda self: self._column(1))
    attributes = property(lambda self: self._column(2))
    timestamp_delta = property(lambda self: self._column(3))
    offset_delta = property(lambda self: self._column(4))
    key_start = property(lambda self: self._column(5))
    key_size = property(lambda self: self._column(6))
    value_start = property(lambda self: self._column(7))
    value_size = property(lambda self: self._column(8))
    headers_start = property(lambda self: self._column(9))
    headers_count = property(lambda self: self._column(10))


def each_row(columns: RecordColumns) -> Iterator[tuple[int, ...]]:
    """Yield the numbers of each record, in the order of the columns."""
    numbers = iter(columns.block[: columns.count * WIDTH])
    return zip(*[numbers] * WIDTH)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.returns((cython.longlong, cython.Py_ssize_t))
def _number(
    data: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, end: cython.Py_ssize_t, bits: cython.uint
):
    """Return a zigzag varint of at most `bits` bits and the position after it, as format.varint reads it; -1 as the
    position if that would raise."""
    value: cython.ulonglong = 0
    shift: cython.uint = 0
    byte: cython.ulonglong
    while position < end and shift < bits:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if not cython.compiled:
                value &= (1 << bits) - 1
            elif bits == 32:
                value = cython.cast(cython.uint, value)
            return (cython.cast(cython.longlong, (value >> 1) ^ -(value & 1)), position)
        shift += 7
    return (0, -1)


def decode(
    columns: RecordColumns,
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.longlong,
    final: cython.bint,
) -> int:
    """Append up to `count` records of columns.data[position:end] to the columns; return the position after the last.

    Stops before a record that extends past `end` if more bytes will come (`final` is false). Raises DecodeError at the
    first invalid field; the records before it stay in the columns.
    """
    data: cython.const[cython.uchar][::1] = columns.data
    rows: cython.longlong[::1]
    at: cython.Py_ssize_t = columns.count * WIDTH
    room: cython.Py_ssize_t
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    key_start: cython.Py_ssize_t
    value_start: cython.Py_ssize_t
    headers_start: cython.Py_ssize_t
    size_at: cython.Py_ssize_t
    header_at: cython.Py_ssize_t
    length: cython.longlong
    timestamp_delta: cython.longlong
    offset_delta: cython.longlong
    key_size: cython.longlong
    value_size: cython.longlong
    headers_count: cython.longlong
    header: cython.longlong
    size: cython.longlong
    attributes: cython.longlong
    rows = columns.block
    room = len(columns.block)
    try:
        while count > 0:
            start = position
            # The length field itself may be split by the end of the chunk.
            if not final and end - position < 5 and not _whole_varint(columns.data, position, end):
                position = start
                break
            length, position = _number(data, position, end, 32)
            if position < 0:
                raise _wrong(columns.data, start, end, 32, "length")
            stop = position + length
            if stop > end or length < 0:
                if length < 0:
                    raise DecodeError("Record", "length", start, f"length {length} is negative")
                if final:
                    raise past_end(start, length, end - position)
                position = start
                break
            if length == 0:
                raise DecodeError("Record", "attributes", position, "length 0 leaves no room for a record")
            attributes = data[position]
            size_at = position + 1
            timestamp_delta, position = _number(data, size_at, stop, 64)
            if position < 0:
                raise _wrong(columns.data, size_at, stop, 64, "timestampDelta")
            size_at = position
            offset_delta, position = _number(data, size_at, stop, 32)
            if position < 0:
                raise _wrong(columns.data, size_at, stop, 32, "offsetDelta")
            size_at = position
            key_size, key_start = _number(data, size_at, stop, 32)
            if key_start < 0:
                raise _wrong(columns.data, size_at, stop, 32, "keySize")
            position = key_start + key_size if key_size > 0 else key_start
            if key_size < -1 or position > stop:
                raise DecodeError("Record", "keySize", size_at, f"keySize {key_size}, {stop - key_start} bytes left")
            size_at = position
            value_size, value_start = _number(data, size_at, stop, 32)
            if value_start < 0:
                raise _wrong(columns.data, size_at, stop, 32, "valueSize")
            position = value_start + value_size if value_size > 0 else value_start
            if value_size < -1 or position > stop:
                reason = f"valueSize {value_size}, {stop - value_start} bytes left"
                raise DecodeError("Record", "valueSize", size_at, reason)
            size_at = position
            headers_count, headers_start = _number(data, size_at, stop, 32)
            if headers_start < 0:
                raise _wrong(columns.data, size_at, stop, 32, "headersCount")
            position = headers_start
            if headers_count:
                # A header takes at least two bytes; a larger count is impossible, and would cost time.
                if headers_count < 0 or headers_count * 2 > stop - position:
                    reason = f"headersCount {headers_count}, {stop - position} bytes left"
                    raise DecodeError("Record", "headersCount", size_at, reason)
                header = 0
                while header < headers_count:
                    header_at = position
                    size, position = _number(data, header_at, stop, 32)
                    if position >= 0 and size >= 0 and position + size <= stop:
                        size, position = _number(data, position + size, stop, 32)
                        if position >= 0 and size > 0:
                            position += size
                        if position >= 0 and size >= -1 and position <= stop:
                            header += 1
                            continue
                    raise _wrong_header(columns.data, header_at, stop)
            if position != stop:
                reason = f"{stop - position} bytes are left over in the record"
                raise DecodeError("Record", "length", start, f"length {length}: {reason}")
            if at == room:
                rows, room = _roomier(columns, at, count)
            rows[at] = start
            rows[at + 1] = stop
            rows[at + 2] = attributes - 256 if attributes > 127 else attributes
            rows[at + 3] = timestamp_delta
            rows[at + 4] = offset_delta
            rows[at + 5] = key_start
            rows[at + 6] = key_size
            rows[at + 7] = value_start
            rows[at + 8] = value_size
            rows[at + 9] = headers_start
            rows[at + 10] = headers_count
            at += WIDTH
            count -= 1
    finally:
        columns.count = at // WIDTH
    return position


def _roomier(columns: RecordColumns, at: int, count: int) -> tuple[array[int], int]:
    """Enlarge the block: double it, but for at most `count` more records, because the count is only a claim."""
    more = min(count, max(FEWEST, at // WIDTH))
    columns.block = columns.block[:at] + array("q", bytes(8 * WIDTH * more))
    return columns.block, len(columns.block)


def past_end(position: int, length: int, left: int) -> DecodeError:
    """Return the error for a record whose length exceeds the `left` bytes after it."""
    return DecodeError("Record", "length", position, f"length {length} extends past the end, {left} bytes left")


def _whole_varint(data: Bytes, position: int, end: int) -> bool:
    return any(byte < 0x80 for byte in data[position:end])


def _wrong(data: Bytes, position: int, stop: int, bits: int, field: str) -> DecodeError:
    """Return the error for a number that cannot be read."""
    try:
        (read_varint if bits == 32 else read_varlong)(data, position, stop, "Record", field)
    except DecodeError as error:
        return error
    raise AssertionError(f"{field} at {position} can be read")


def _wrong_header(data: Bytes, position: int, stop: int) -> DecodeError:
    """Return the error for a header that cannot be read."""
    start = position
    try:
        size, position = read_varint(data, position, stop, "RecordHeader", "headerKeySize")
        if size < 0 or position + size > stop:
            # DefaultRecord.readHeaders: a null header key is an error, unlike a null header value.
            code = "header-key-invalid" if size == -1 else "record-malformed"
            reason = f"headerKeySize {size}, {stop - position} bytes left"
            return DecodeError("RecordHeader", "headerKeySize", start, reason, code)
        start = position + size
        size, position = read_varint(data, start, stop, "RecordHeader", "headerValueSize")
    except DecodeError as error:
        return error
    reason = f"headerValueSize {size}, {stop - position} bytes left"
    return DecodeError("RecordHeader", "headerValueSize", start, reason)


def headers(data: Bytes, position: int, count: int, end: int) -> list[tuple[bytes, bytes | None]]:
    """Return the headers that `decode` has checked: keys and values as stored."""
    pairs = each_header(memoryview(data), position, count, end)
    return [(bytes(key), None if value is None else bytes(value)) for key, value in pairs]


def each_header(
    data: memoryview, position: int, count: int, end: int
) -> Iterator[tuple[memoryview, memoryview | None]]:
    """Like `headers`, but yields them one by one, as views."""
    for _ in range(count):
        size, position = read_varint(data, position, end, "RecordHeader", "headerKeySize")
        key = data[position : position + size]
        size, position = read_varint(data, position + size, end, "RecordHeader", "headerValueSize")
        value = None if size < 0 else data[position : position + size]
        position += max(0, size)
        yield key, value


def keep_between(
    columns: RecordColumns,
    column: cython.Py_ssize_t,
    base: cython.longlong,
    first: cython.longlong,
    last: cython.longlong,
) -> None:
    """Keep the records whose number in the given column, added to `base` as a Java long, is within first..last."""
    rows: cython.longlong[::1] = columns.block
    count: cython.Py_ssize_t = columns.count
    at: cython.Py_ssize_t
    to: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    for at in range(0, count * 11, 11):
        if first <= plus(base, rows[at + column]) <= last:
            if to < at:
                for i in range(11):
                    rows[to + i] = rows[at + i]
            to += 11
    columns.count = to // 11


def keep_keys(columns: RecordColumns, keys: list[bytes]) -> None:
    """Keep the records with one of these keys."""
    data: cython.const[cython.uchar][::1] = columns.data
    rows: cython.longlong[::1] = columns.block
    count: cython.Py_ssize_t = columns.count
    at: cython.Py_ssize_t
    to: cython.Py_ssize_t = 0
    size: cython.Py_ssize_t
    start: cython.Py_ssize_t
    i: cython.Py_ssize_t
    key: cython.const[cython.uchar][::1]
    kept = array("q", bytes(8 * count))
    marks: cython.longlong[::1] = kept
    for wanted in keys:
        key = wanted
        size = len(wanted)
        for at in range(count):
            if rows[at * 11 + 6] == size:
                start = rows[at * 11 + 5]
                i = 0
                while i < size and data[start + i] == key[i]:
                    i += 1
                if i == size:
                    marks[at] = 1
    for at in range(count):
        if marks[at]:
            for i in range(11):
                rows[to + i] = rows[at * 11 + i]
            to += 11
    columns.count = to // 11


def keep_rows(columns: RecordColumns, numbers: list[int]) -> None:
    """Keep the records with these indexes, which must be in ascending order."""
    block = columns.block
    for to, number in enumerate(numbers):
        if to != number:
            block[to * WIDTH : (to + 1) * WIDTH] = block[number * WIDTH : (number + 1) * WIDTH]
    columns.count = len(numbers)


class RecordCheck(NamedTuple):
    """What verify needs to know about the records in columns. `misplaced`: number of offset deltas that are not above
    all previous ones, or exceed lastOffsetDelta; `wrong_delta` and `wrong_behind`: the first of these, and the largest
    delta before it; `last`: the largest delta. `reserved`: number of records whose attributes are not 0. `unkeyed`:
    number of null keys; `first_unkeyed`: offset delta of the first."""

    misplaced: int
    wrong_delta: int
    wrong_behind: int
    last: int
    largest_timestamp: int
    reserved: int
    unkeyed: int
    first_unkeyed: int


def check_records(
    columns: RecordColumns, last: cython.longlong, end: cython.longlong, base: cython.longlong
) -> RecordCheck:
    """Compute a RecordCheck in one pass over the columns, which must not be empty. `last`: the largest offset delta
    before them; `end`: the batch's lastOffsetDelta; `base`: its baseTimestamp."""
    rows: cython.longlong[::1] = columns.block
    at: cython.Py_ssize_t
    delta: cython.longlong
    misplaced: cython.longlong = 0
    wrong_delta: cython.longlong = 0
    wrong_behind: cython.longlong = 0
    largest: cython.longlong = plus(base, rows[3])
    timestamp: cython.longlong
    reserved: cython.longlong = 0
    unkeyed: cython.longlong = 0
    first_unkeyed: cython.longlong = 0
    for at in range(0, columns.count * 11, 11):
        delta = rows[at + 4]
        if not last < delta <= end:
            if misplaced == 0:
                wrong_delta, wrong_behind = delta, last
            misplaced += 1
        if delta > last:
            last = delta
        timestamp = plus(base, rows[at + 3])
        if timestamp > largest:
            largest = timestamp
        if rows[at + 2] != 0:
            reserved += 1
        if rows[at + 6] < 0:
            if unkeyed == 0:
                first_unkeyed = delta
            unkeyed += 1
    return RecordCheck(misplaced, wrong_delta, wrong_behind, last, largest, reserved, unkeyed, first_unkeyed)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.returns(cython.bint)
def _is_text(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, stop: cython.Py_ssize_t):
    """Return True if data[at:stop] is UTF-8 (RFC 3629, as in Python) without a null character."""
    lead: cython.uint
    more: cython.int
    low: cython.uint
    high: cython.uint
    while at < stop:
        lead = data[at]
        at += 1
        if 0 < lead < 0x80:
            continue
        if lead < 0xC2 or lead > 0xF4:
            return False
        more = 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3
        # The byte after the lead is bounded to exclude overlong forms, surrogates and values above U+10FFFF.
        low = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
        high = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
        while more:
            if at == stop or not low <= data[at] <= high:
                return False
            low, high = 0x80, 0xBF
            at += 1
            more -= 1
    return True


def invalid_header(columns: RecordColumns, row: cython.Py_ssize_t) -> int:
    """Return the index of the first record, from `row` on, with a header key that is not UTF-8 or contains a null
    character; the number of records if there is none."""
    if columns.skimmed:
        return row if columns.odd and row == 0 else 1
    data: cython.const[cython.uchar][::1] = columns.data
    rows: cython.longlong[::1] = columns.block
    count: cython.Py_ssize_t = columns.count
    position: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    left: cython.longlong
    size: cython.longlong
    while row < count:
        position = rows[row * 11 + 9]
        stop = rows[row * 11 + 1]
        left = rows[row * 11 + 10]
        while left > 0:
            size, position = _number(data, position, stop, 32)
            if not _is_text(data, position, position + size):
                return row
            size, position = _number(data, position + size, stop, 32)
            if size > 0:
                position += size
            left -= 1
        row += 1
    return count


def walk_headers(
    columns: RecordColumns, position: cython.Py_ssize_t, end: cython.Py_ssize_t, left: cython.longlong
) -> tuple[int, int, int]:
    """Walk up to `left` headers that are completely within columns.data[position:end]. Return the position after the
    last, how many are left, and the position of the first whose key is not valid text (-1: none). Also stops before an
    invalid header."""
    data: cython.const[cython.uchar][::1] = columns.data
    odd: cython.Py_ssize_t = -1
    begun: cython.Py_ssize_t
    key: cython.Py_ssize_t
    size: cython.longlong
    while left > 0:
        begun = position
        size, key = _number(data, position, end, 32)
        if key < 0 or size < 0 or size > end - key:
            break
        position = key + size
        if odd < 0 and not _is_text(data, key, position):
            odd = begun
        size, position = _number(data, position, end, 32)
        if position < 0 or size < -1 or size > end - position:
            position = begun
            break
        if size > 0:
            position += size
        left -= 1
    else:
        begun = position
    return begun, left, odd
