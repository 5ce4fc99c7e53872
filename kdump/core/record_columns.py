# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The record loop of v2 batches: one pass over the bytes fills integer columns and checks every bound.

This is the one permitted duplicate of the layout in kdump.format.record; a test compares the two, including on corrupt
bytes. Compiled if there is a compiler, otherwise run as Python."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NoReturn

from kdump.format.errors import HEADER_KEY_INVALID, RECORD_MALFORMED, DecodeError
from kdump.format.varint import Bytes, read_varint, read_varlong

try:
    import cython
except ImportError:
    from kdump import nocython as cython

if cython.compiled:
    from cython.cimports.kdump.core.column_numbers import *
    from cython.cimports.kdump.core.integers import plus, varint_at
else:
    from kdump.core.column_numbers import *
    from kdump.core.integers import plus, varint_at

COMPILED: bool = cython.compiled
EVERY_ID = 1 << 40
"""For `may_hold_schema_ids`."""
FEWEST = 16
"""Number of records for which space is allocated first, unless fewer are requested."""


class RecordColumns:
    """Records of one chunk of decompressed payload: `count` rows of RECORD_WIDTH numbers in `block`; each column is
    also available by name. Starts are indexes into `data`.

    `key_size` and `value_size` are -1 for null. `start` and `end` bound a record, including its length field.

    `skimmed`: a single large record, of which `data` has only the key and the beginning of the value (log.skim) and, if
    requested, the keys of its headers from `headers_start` on, with null values; `digest`: of its key, if that is
    truncated too; `header_problem`: why one of its header keys is not valid text, empty if all are."""

    __slots__ = ("block", "count", "data", "digest", "header_problem", "skimmed")

    def __init__(self, data: Bytes) -> None:
        self.data = data
        self.skimmed = False
        self.digest = b""
        self.header_problem = ""
        self.block = array("q")
        self.count = 0

    def __len__(self) -> int:
        return self.count

    def only(self, row: int) -> RecordColumns:
        """Return the columns of one record."""
        found = RecordColumns(self.data)
        found.block, found.count = self.block[row * RECORD_WIDTH : (row + 1) * RECORD_WIDTH], 1
        return found

    def _column(self, number: int) -> memoryview:
        return memoryview(self.block)[number : self.count * RECORD_WIDTH : RECORD_WIDTH]

    start = property(lambda self: self._column(RECORD_START))
    end = property(lambda self: self._column(RECORD_END))
    attributes = property(lambda self: self._column(RECORD_ATTRIBUTES))
    timestamp_delta = property(lambda self: self._column(TIMESTAMP_DELTA))
    offset_delta = property(lambda self: self._column(OFFSET_DELTA))
    key_start = property(lambda self: self._column(KEY_START))
    key_size = property(lambda self: self._column(KEY_SIZE))
    value_start = property(lambda self: self._column(VALUE_START))
    value_size = property(lambda self: self._column(VALUE_SIZE))
    headers_start = property(lambda self: self._column(HEADERS_START))
    headers_count = property(lambda self: self._column(HEADERS_COUNT))


def each_row(columns: RecordColumns) -> Iterator[tuple[int, ...]]:
    """Yield the numbers of each record, in the order of the columns."""
    numbers = iter(columns.block[: columns.count * RECORD_WIDTH])
    return zip(*[numbers] * RECORD_WIDTH)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.bint)
def _is_length_cut(data: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, end: cython.Py_ssize_t):
    """Return whether the length field at data[position:] extends past `end`."""
    if end - position >= 5:
        return False
    while position < end and data[position] >= 0x80:
        position += 1
    return position == end


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.longlong, cython.Py_ssize_t, cython.Py_ssize_t))
def _sized_at(data: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, stop: cython.Py_ssize_t):
    """Read a key or value with its size. Returns the size (-1: null), where the bytes start, and the position after
    them; -1 if they extend past `stop` or the size is invalid."""
    start: cython.Py_ssize_t
    size: cython.longlong
    size, start = varint_at(data, position, stop, 32)
    position = start + size if size > 0 else start
    return size, start, -1 if size < -1 or position > stop else position


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.Py_ssize_t, cython.Py_ssize_t))
def _after_headers(
    data: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, stop: cython.Py_ssize_t, count: cython.longlong
):
    """Return the position after `count` headers, and 0; or -1, and where the first invalid one starts."""
    start: cython.Py_ssize_t
    size: cython.longlong
    while count > 0:
        start = position
        size, position = varint_at(data, start, stop, 32)
        if position < 0 or size < 0 or position + size > stop:
            return -1, start
        size, position = varint_at(data, position + size, stop, 32)
        if position >= 0 and size > 0:
            position += size
        if position < 0 or size < -1 or position > stop:
            return -1, start
        count -= 1
    return position, 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.Py_ssize_t, cython.Py_ssize_t))
def _read_fields(
    data: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, stop: cython.Py_ssize_t,
    rows: cython.longlong[::1], at: cython.Py_ssize_t,
):  # fmt: skip
    """Read what follows the length of the record that ends at `stop` into the row that starts at rows[at]. Returns
    `stop` and ROWS_READ; or the status of the invalid field, with what read_rows returns if it is of a header."""
    number: cython.longlong = data[position]
    start: cython.Py_ssize_t
    rows[at + RECORD_ATTRIBUTES] = number - 256 if number > 127 else number
    number, position = varint_at(data, position + 1, stop, 64)
    if position < 0:
        return position, RECORD_INVALID
    rows[at + TIMESTAMP_DELTA] = number
    number, position = varint_at(data, position, stop, 32)
    if position < 0:
        return position, RECORD_INVALID
    rows[at + OFFSET_DELTA] = number
    number, start, position = _sized_at(data, position, stop)
    if position < 0:
        return position, RECORD_INVALID
    rows[at + KEY_START] = start
    rows[at + KEY_SIZE] = number
    number, start, position = _sized_at(data, position, stop)
    if position < 0:
        return position, RECORD_INVALID
    rows[at + VALUE_START] = start
    rows[at + VALUE_SIZE] = number
    number, position = varint_at(data, position, stop, 32)
    # A header takes at least two bytes; a larger count is impossible, and would cost time.
    if position < 0 or number < 0 or number * 2 > stop - position:
        return position, RECORD_INVALID
    rows[at + HEADERS_START] = position
    rows[at + HEADERS_COUNT] = number
    position, start = _after_headers(data, position, stop, number)
    if position < 0:
        return start, HEADER_INVALID
    return position, ROWS_READ if position == stop else BYTES_LEFT_OVER


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.Py_ssize_t, cython.Py_ssize_t, cython.Py_ssize_t))
def read_rows(
    data: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, end: cython.Py_ssize_t,
    count: cython.longlong, final: cython.bint, rows: cython.longlong[::1], at: cython.Py_ssize_t,
    room: cython.Py_ssize_t,
):  # fmt: skip
    """Read up to `count` records of data[position:end] into rows[at:room]. Without `final`, stops before a record that
    extends past `end`. Returns the position after the last record, the end of its row, and ROWS_READ or NO_ROOM; or
    instead of the position, where the next record is invalid: RECORD_INVALID (where it starts), HEADER_INVALID (where
    that header starts), BYTES_LEFT_OVER (after its last field)."""
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    place: cython.Py_ssize_t
    status: cython.Py_ssize_t
    length: cython.longlong
    while count > 0:
        if at == room:
            return position, at, NO_ROOM
        start = position
        if not final and _is_length_cut(data, start, end):
            return start, at, ROWS_READ
        length, position = varint_at(data, start, end, 32)
        if position < 0 or length <= 0:
            return start, at, RECORD_INVALID
        stop = position + length
        if stop > end:
            return start, at, RECORD_INVALID if final else ROWS_READ
        place, status = _read_fields(data, position, stop, rows, at)
        if status != ROWS_READ:
            return start if status == RECORD_INVALID else place, at, status
        rows[at + RECORD_START] = start
        rows[at + RECORD_END] = position = stop
        at += RECORD_WIDTH
        count -= 1
    return position, at, ROWS_READ


@cython.ccall
@cython.returns(cython.Py_ssize_t)
@cython.exceptval(-1, check=False)
def decode(
    columns: RecordColumns,
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.longlong,
    final: cython.bint,
) -> int:
    """Append up to `count` records of columns.data[position:end] to the columns; return the position after the last.

    Stops before a record that extends past `end` if more bytes will come (`final` is false). Raises DecodeError at the
    first invalid field; the records before it stay in the columns."""
    data: cython.const[cython.uchar][::1] = columns.data
    rows: cython.longlong[::1] = columns.block
    room: cython.Py_ssize_t = len(columns.block)
    at: cython.Py_ssize_t = columns.count * RECORD_WIDTH
    begun: cython.Py_ssize_t
    place: cython.Py_ssize_t
    status: cython.Py_ssize_t
    while True:
        begun = at
        place, at, status = read_rows(data, position, end, count, final, rows, at, room)
        columns.count = at // RECORD_WIDTH
        count -= (at - begun) // RECORD_WIDTH
        if status == ROWS_READ:
            return place
        if status != NO_ROOM:
            _raise_error(
                columns.data, rows[at - RECORD_WIDTH + RECORD_END] if at > begun else position, end, place, status
            )
        position = place
        rows, room = _roomier(columns, at, count)


@cython.ccall
@cython.returns(cython.bint)
@cython.exceptval(-1, check=False)
def decode_all(
    columns: RecordColumns, position: cython.Py_ssize_t, end: cython.Py_ssize_t, count: cython.longlong
) -> bool:
    """Replace the records in the columns by the `count` records that fill columns.data[position:end]. Returns False if
    the bytes are not exactly that."""
    columns.count = 0
    try:
        return decode(columns, position, end, count, True) == end and columns.count == count
    except DecodeError:
        return False


def _roomier(columns: RecordColumns, at: int, count: int) -> tuple[array[int], int]:
    """Enlarge the block: double it, but for at most `count` more records, because the count is only a claim."""
    more = min(count, max(FEWEST, at // RECORD_WIDTH))
    columns.block = columns.block[:at] + array("q", bytes(8 * RECORD_WIDTH * more))
    return columns.block, len(columns.block)


def past_end(position: int, length: int, left: int) -> DecodeError:
    """Return the error for a record whose length exceeds the `left` bytes after it."""
    return DecodeError("Record", "length", position, f"length {length} extends past the end, {left} bytes left")


def _raise_error(data: Bytes, position: int, end: int, place: int, status: int) -> NoReturn:
    """Raise the DecodeError for the invalid record at data[position:end]. `place` and `status` are those of read_rows:
    the headers before, of which there may be millions, are not read again."""
    start = position
    length, position = read_varint(data, position, end, "Record", "length")
    stop = position + length
    if length < 0:
        raise DecodeError("Record", "length", start, f"length {length} is negative")
    if stop > end:
        raise past_end(start, length, end - position)
    if length == 0:
        raise DecodeError("Record", "attributes", position, "length 0 leaves no room for a record")
    if status == HEADER_INVALID:
        _raise_header_error(data, place, stop)
    if status == BYTES_LEFT_OVER:
        reason = f"{stop - place} bytes are left over in the record"
        raise DecodeError("Record", "length", start, f"length {length}: {reason}")
    _, position = read_varlong(data, position + 1, stop, "Record", "timestampDelta")
    _, position = read_varint(data, position, stop, "Record", "offsetDelta")
    for field, lowest, least in (("keySize", -1, 1), ("valueSize", -1, 1), ("headersCount", 0, 2)):
        size_at = position
        size, position = read_varint(data, size_at, stop, "Record", field)
        if not lowest <= size <= (stop - position) // least:
            raise DecodeError("Record", field, size_at, f"{field} {size}, {stop - position} bytes left")
        position += max(0, size)
    raise AssertionError(f"the record at {start} can be read")


def _raise_header_error(data: Bytes, position: int, stop: int) -> NoReturn:
    """Raise the DecodeError for the invalid header at data[position:stop]."""
    start = position
    size, position = read_varint(data, position, stop, "RecordHeader", "headerKeySize")
    if size < 0 or position + size > stop:
        # DefaultRecord.readHeaders: a null header key is an error, unlike a null header value.
        code = HEADER_KEY_INVALID if size == -1 else RECORD_MALFORMED
        reason = f"headerKeySize {size}, {stop - position} bytes left"
        raise DecodeError("RecordHeader", "headerKeySize", start, reason, code)
    start = position + size
    size, position = read_varint(data, start, stop, "RecordHeader", "headerValueSize")
    reason = f"headerValueSize {size}, {stop - position} bytes left"
    raise DecodeError("RecordHeader", "headerValueSize", start, reason)


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
    number: cython.Py_ssize_t
    at: cython.Py_ssize_t
    to: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    for number in range(count):
        at = number * RECORD_WIDTH
        if first <= plus(base, rows[at + column]) <= last:
            if to < at:
                for i in range(RECORD_WIDTH):
                    rows[to + i] = rows[at + i]
            to += RECORD_WIDTH
    columns.count = to // RECORD_WIDTH


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
            if rows[at * RECORD_WIDTH + KEY_SIZE] == size:
                start = rows[at * RECORD_WIDTH + KEY_START]
                i = 0
                while i < size and data[start + i] == key[i]:
                    i += 1
                if i == size:
                    marks[at] = 1
    for at in range(count):
        if marks[at]:
            for i in range(RECORD_WIDTH):
                rows[to + i] = rows[at * RECORD_WIDTH + i]
            to += RECORD_WIDTH
    columns.count = to // RECORD_WIDTH


def may_hold_schema_ids(columns: RecordColumns, highest: cython.longlong) -> bool:
    """Return whether a key, value or header of the records may hold the ID or GUID of a schema: 0 and an ID, 1 and a
    GUID, or a header whose key ends in _schema_id. ID 0 is none; nor is one above `highest` in 8 bytes, which are a
    number. EVERY_ID: all first bytes count."""
    data: cython.const[cython.uchar][::1] = columns.data
    rows: cython.longlong[::1] = columns.block
    end: cython.longlong = len(columns.data)
    count: cython.Py_ssize_t = columns.count
    at: cython.Py_ssize_t
    number: cython.Py_ssize_t
    start: cython.longlong
    size: cython.longlong
    schema_id: cython.longlong
    for number in range(count):
        at = number * RECORD_WIDTH
        for column in range(2):
            start, size = rows[at + KEY_START], rows[at + KEY_SIZE]
            if column:
                start, size = rows[at + VALUE_START], rows[at + VALUE_SIZE]
            if size < 5 or start + 5 > end or data[start] > 1:
                continue
            if data[start]:
                if size >= 17:
                    return True
                continue
            schema_id = data[start + 1]  # wide, before it is multiplied
            schema_id = ((schema_id * 256 + data[start + 2]) * 256 + data[start + 3]) * 256 + data[start + 4]
            if highest == EVERY_ID or (schema_id > 0 and (size != 8 or schema_id <= highest)):
                return True
        if rows[at + HEADERS_COUNT] > 0:
            start, size = rows[at + HEADERS_START], rows[at + RECORD_END]
            size = end if size > end else size
            while start + 10 <= size:
                if (
                    data[start] == 95
                    and data[start + 1] == 115  # s
                    and data[start + 2] == 99  # c
                    and data[start + 3] == 104  # h
                    and data[start + 8] == 105  # i
                    and data[start + 9] == 100  # d
                ):
                    return True
                start += 1
    return False


def keep_rows(columns: RecordColumns, numbers: list[int]) -> None:
    """Keep the records with these indexes, which must be in ascending order."""
    block = columns.block
    for to, number in enumerate(numbers):
        if to != number:
            block[to * RECORD_WIDTH : (to + 1) * RECORD_WIDTH] = block[
                number * RECORD_WIDTH : (number + 1) * RECORD_WIDTH
            ]
    columns.count = len(numbers)
