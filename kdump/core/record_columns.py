# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The record loop of v2 batches: one pass over the bytes fills integer columns and checks every bound.

This is the one permitted duplicate of the layout in kdump.format.record; a test compares the two, including on corrupt
bytes. Compiled if there is a compiler, otherwise run as Python.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from kdump.format.errors import DecodeError
from kdump.format.varint import Bytes, read_varint, read_varlong

try:
    import cython
except ImportError:
    from kdump import nocython as cython

if cython.compiled:
    from cython.cimports.kdump.core.column_numbers import *  # noqa: F403
    from cython.cimports.kdump.core.integers import plus, varint_at
else:
    from kdump.core.column_numbers import (
        HEADERS_COUNT,
        HEADERS_START,
        KEY_SIZE,
        KEY_START,
        OFFSET_DELTA,
        RECORD_ATTRIBUTES,
        RECORD_END,
        RECORD_START,
        RECORD_WIDTH,
        TIMESTAMP_DELTA,
        VALUE_SIZE,
        VALUE_START,
    )
    from kdump.core.integers import plus, varint_at

COMPILED: bool = cython.compiled
FEWEST = 16
"""Number of records for which space is allocated first, unless fewer are requested."""


class RecordColumns:
    """Records of one chunk of decompressed payload: `count` rows of RECORD_WIDTH numbers in `block`; each column is
    also available by name. Starts are indexes into `data`.

    `key_size` and `value_size` are -1 for null. `start` and `end` bound a record, including its length field.

    `skimmed`: a single large record, of which `data` has only the key and the beginning of the value (log.skim) and, if
    requested, the keys of its headers from `headers_start` on, with null values; `digest`: of its key, if that is
    truncated too; `header_problem`: why one of its header keys is not valid text, empty if all are.
    """

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
    first invalid field; the records before it stay in the columns.
    """
    data: cython.const[cython.uchar][::1] = columns.data
    rows: cython.longlong[::1]
    at: cython.Py_ssize_t = columns.count * RECORD_WIDTH
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
            length, position = varint_at(data, position, end, 32)
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
            timestamp_delta, position = varint_at(data, size_at, stop, 64)
            if position < 0:
                raise _wrong(columns.data, size_at, stop, 64, "timestampDelta")
            size_at = position
            offset_delta, position = varint_at(data, size_at, stop, 32)
            if position < 0:
                raise _wrong(columns.data, size_at, stop, 32, "offsetDelta")
            size_at = position
            key_size, key_start = varint_at(data, size_at, stop, 32)
            if key_start < 0:
                raise _wrong(columns.data, size_at, stop, 32, "keySize")
            position = key_start + key_size if key_size > 0 else key_start
            if key_size < -1 or position > stop:
                raise DecodeError("Record", "keySize", size_at, f"keySize {key_size}, {stop - key_start} bytes left")
            size_at = position
            value_size, value_start = varint_at(data, size_at, stop, 32)
            if value_start < 0:
                raise _wrong(columns.data, size_at, stop, 32, "valueSize")
            position = value_start + value_size if value_size > 0 else value_start
            if value_size < -1 or position > stop:
                reason = f"valueSize {value_size}, {stop - value_start} bytes left"
                raise DecodeError("Record", "valueSize", size_at, reason)
            size_at = position
            headers_count, headers_start = varint_at(data, size_at, stop, 32)
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
                    size, position = varint_at(data, header_at, stop, 32)
                    if position >= 0 and size >= 0 and position + size <= stop:
                        size, position = varint_at(data, position + size, stop, 32)
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
            rows[at + RECORD_START] = start
            rows[at + RECORD_END] = stop
            rows[at + RECORD_ATTRIBUTES] = attributes - 256 if attributes > 127 else attributes
            rows[at + TIMESTAMP_DELTA] = timestamp_delta
            rows[at + OFFSET_DELTA] = offset_delta
            rows[at + KEY_START] = key_start
            rows[at + KEY_SIZE] = key_size
            rows[at + VALUE_START] = value_start
            rows[at + VALUE_SIZE] = value_size
            rows[at + HEADERS_START] = headers_start
            rows[at + HEADERS_COUNT] = headers_count
            at += RECORD_WIDTH
            count -= 1
    finally:
        columns.count = at // RECORD_WIDTH
    return position


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


def keep_rows(columns: RecordColumns, numbers: list[int]) -> None:
    """Keep the records with these indexes, which must be in ascending order."""
    block = columns.block
    for to, number in enumerate(numbers):
        if to != number:
            block[to * RECORD_WIDTH : (to + 1) * RECORD_WIDTH] = block[
                number * RECORD_WIDTH : (number + 1) * RECORD_WIDTH
            ]
    columns.count = len(numbers)
