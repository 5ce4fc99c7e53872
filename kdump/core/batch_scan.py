# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Finds batch runs: validates many v2 batches at a time, as far as the batches in a buffer are valid beyond doubt.

Compiled if there is a C compiler; otherwise runs as plain Python."""

from __future__ import annotations

from array import array
from typing import NamedTuple

from kdump.core.header_columns import HeaderColumns
from kdump.format.batch_header import max_records
from kdump.format.checksum import castagnoli

try:
    import cython
except ImportError:
    from kdump import nocython as cython

if cython.compiled:
    from cython.cimports.kdump.core.column_numbers import *
    from cython.cimports.kdump.core.integers import int16_at, int32_at, int64_at, plus, uint32_at
else:
    from kdump.core.column_numbers import *
    from kdump.core.integers import int16_at, int32_at, int64_at, plus, uint32_at

POLYNOMIAL = 0x82F63B78
FIRST_ROWS = 64
"""Number of headers for which there is room at first."""
FURTHEST = 1 << 62
"""Offsets from here on, and in file names above this, end a batch run, so that sums stay within 64 bits."""


class ValidRun(NamedTuple):
    """A batch run: consecutive valid batches. `stop` is the position in the buffer after the last one; `headers` has
    a row for each; `before` is the last offset of the second-to-last one (the given `latest` if there is only one);
    `unchained` is the bytes of the batches that only their checksums confirm."""

    stop: int
    headers: HeaderColumns
    records: int
    first_offset: int
    last_offset: int
    before: int
    unchained: int

    @property
    def batches(self) -> int:
        return len(self.headers)


def crc_tables(polynomial: int) -> array[int]:
    """Return eight tables of 256 entries: the effect of a byte on the CRC 0 to 7 bytes later."""
    table = array("I", bytes(4 * 8 * 256))
    for number in range(256):
        value = number
        for _ in range(8):
            value = value >> 1 ^ (polynomial if value & 1 else 0)
        table[number] = value
    for number in range(256, 8 * 256):
        value = table[number - 256]
        table[number] = value >> 8 ^ table[value & 0xFF]
    return table


_TABLES = crc_tables(POLYNOMIAL) if cython.compiled else array("I", [0])


@cython.cfunc
@cython.exceptval(check=False)
@cython.returns(cython.uint)
def crc(data: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t, table: cython.p_uint):
    """Return the CRC of data[at:end] with the polynomial of `table` (see crc_tables), eight bytes at a time. Used only
    when compiled: in plain Python, the library is faster."""
    value: cython.uint = 0
    value = ~value
    while at + 8 <= end:
        value ^= (
            cython.cast(cython.uint, data[at])
            | cython.cast(cython.uint, data[at + 1]) << 8
            | cython.cast(cython.uint, data[at + 2]) << 16
            | cython.cast(cython.uint, data[at + 3]) << 24
        )
        value = (
            table[1792 + (value & 0xFF)]
            ^ table[1536 + (value >> 8 & 0xFF)]
            ^ table[1280 + (value >> 16 & 0xFF)]
            ^ table[1024 + (value >> 24)]
            ^ table[768 + data[at + 4]]
            ^ table[512 + data[at + 5]]
            ^ table[256 + data[at + 6]]
            ^ table[data[at + 7]]
        )
        at += 8
    while at < end:
        value = value >> 8 ^ table[(value ^ data[at]) & 0xFF]
        at += 1
    return ~value


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.returns(cython.longlong)
def _offset(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t):
    """Return the INT64 at data[at:]; -1 if it is negative or not below FURTHEST."""
    high: cython.longlong = uint32_at(data, at)
    if high >= 0x40000000:
        return -1
    return high << 32 | uint32_at(data, at + 4)


def checksum_holds(data: bytes | memoryview, at: int, end: int) -> bool:
    """Return True if the stored CRC-32C of the batch data[at:end] matches its bytes."""
    stored = int.from_bytes(data[at + CRC_AT : at + ATTRIBUTES_AT], "big")
    return castagnoli(memoryview(data)[at + ATTRIBUTES_AT : end]) == stored


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def read_header(
    data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, rows: cython.longlong[::1], to: cython.Py_ssize_t
):
    """Read the header at data[at:] into the row that starts at rows[to]. Returns the end of the batch."""
    end: cython.Py_ssize_t = at + LOG_OVERHEAD + int32_at(data, at + LENGTH_AT)
    base: cython.longlong = int64_at(data, at)
    rows[to + BATCH_START] = at
    rows[to + BATCH_END] = end
    rows[to + BASE_OFFSET] = base
    rows[to + LAST_OFFSET] = plus(base, int32_at(data, at + LAST_OFFSET_DELTA_AT))
    rows[to + LEADER_EPOCH] = int32_at(data, at + LEADER_EPOCH_AT)
    rows[to + ATTRIBUTES] = int16_at(data, at + ATTRIBUTES_AT)
    rows[to + MAX_TIMESTAMP] = int64_at(data, at + MAX_TIMESTAMP_AT)
    rows[to + PRODUCER_ID] = int64_at(data, at + PRODUCER_ID_AT)
    rows[to + PRODUCER_EPOCH] = int16_at(data, at + PRODUCER_EPOCH_AT)
    rows[to + BASE_SEQUENCE] = int32_at(data, at + BASE_SEQUENCE_AT)
    rows[to + RECORD_COUNT] = int32_at(data, at + RECORD_COUNT_AT)
    rows[to + BASE_TIMESTAMP] = int64_at(data, at + BASE_TIMESTAMP_AT)
    return end


def read_one_header(data: bytes, position: int) -> HeaderColumns:
    """Read the header of a batch at `position` in its file, of which `data` has at least the header. Its length may be
    anything."""
    if len(data) < HEADER_SIZE:
        raise ValueError(f"{len(data)} bytes are not a header")
    buffer: cython.const[cython.uchar][::1] = data
    heads = HeaderColumns(data, position)
    heads.block = array("q", bytes(8 * HEADER_WIDTH))
    heads.count = 1
    rows: cython.longlong[::1] = heads.block
    read_header(buffer, 0, rows, 0)
    return heads


@cython.cfunc
@cython.inline
@cython.exceptval(-1)
@cython.returns(cython.Py_ssize_t)
def _end_of(
    data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, size: cython.Py_ssize_t, largest: cython.longlong
):
    """Return the end of the batch at data[at:]; 0 if it is not v2, is not within `size` and `largest`, or has no room
    for its records."""
    length: cython.longlong
    records: cython.longlong
    room: cython.longlong
    if size - at < HEADER_SIZE or data[at + MAGIC_AT] != 2:
        return 0
    length = int32_at(data, at + LENGTH_AT)
    if length < MIN_BATCH_LENGTH or length + LOG_OVERHEAD > size - at or length + LOG_OVERHEAD > largest:
        return 0
    records = int32_at(data, at + RECORD_COUNT_AT)
    room = length - MIN_BATCH_LENGTH
    if records < 0 or (
        records * MIN_RECORD_SIZE > room and records > max_records(room, data[at + ATTRIBUTES_AT + 1] & CODEC)
    ):
        return 0
    return at + LOG_OVERHEAD + length


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.returns(cython.bint)
def _follows(
    data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, size: cython.Py_ssize_t, source_end: cython.longlong,
    last: cython.longlong, reach: cython.longlong,
):  # fmt: skip
    """Return whether data[at:] is the header of a batch that ends by `source_end`, with an offset up to `reach` above
    `last`."""
    length: cython.longlong
    if size - at <= MAGIC_AT or data[at + MAGIC_AT] > 2:
        return False
    length = int32_at(data, at + LENGTH_AT)
    if length <= MAGIC_AT - LOG_OVERHEAD or at + LOG_OVERHEAD + length > source_end:
        return False
    return last < _offset(data, at) <= last + reach


@cython.cfunc
@cython.inline
@cython.exceptval(-1)
@cython.returns(cython.bint)
def _checksum_matches(
    data: cython.const[cython.uchar][::1], view: memoryview, at: cython.Py_ssize_t, end: cython.Py_ssize_t,
    table: cython.uint[::1],
):  # fmt: skip
    """Return whether the stored CRC-32C of the batch data[at:end] matches. `view`: the same bytes as `data`."""
    stored: cython.longlong = uint32_at(data, at + CRC_AT)
    if cython.compiled and end - at < SMALL_BATCH:
        return crc(cython.address(data[0]), at + ATTRIBUTES_AT, end, cython.address(table[0])) == stored
    return castagnoli(view[at + ATTRIBUTES_AT : end]) == stored


def scan_valid_batches(
    buffer: bytes, position: cython.Py_ssize_t, *, source_end: cython.longlong, largest: cython.longlong,
    latest: cython.longlong, lowest: cython.longlong, highest: cython.longlong, budget: cython.longlong,
    check: cython.bint, reach: cython.longlong = 1,
) -> ValidRun | None:  # fmt: skip
    """Return the run of batches from `position` on that are valid beyond doubt, None if the first is not.

    Each is completely in the buffer, has at most `largest` bytes, room for its records, and offsets above those of the
    batch before it (the first: above `latest`), the last in lowest..highest. With `check`, its checksum matches;
    otherwise, a header with an offset up to `reach` above its last follows, whose batch ends by `source_end` (in the
    buffer: the end of the source, or of its known part), or it ends there and its checksum matches. `budget` limits the
    bytes of batches that no such header follows."""
    data: cython.const[cython.uchar][::1] = buffer
    view = memoryview(buffer)
    table: cython.uint[::1] = _TABLES
    size: cython.Py_ssize_t = len(buffer)
    at: cython.Py_ssize_t = position
    end: cython.Py_ssize_t
    base: cython.longlong
    delta: cython.longlong
    last: cython.longlong = latest
    records: cython.longlong = 0
    unchained: cython.longlong = 0
    count: cython.Py_ssize_t = 0
    follows: cython.bint
    headers = HeaderColumns(buffer, 0)
    headers.block = array("q", bytes(8 * HEADER_WIDTH * FIRST_ROWS))
    rows: cython.longlong[::1] = headers.block
    while (end := _end_of(data, at, size, largest)) > 0:
        base = _offset(data, at)
        delta = int32_at(data, at + LAST_OFFSET_DELTA_AT)
        if base <= last or delta < 0 or not lowest <= base + delta <= highest:
            break
        follows = _follows(data, end, size, source_end, base + delta, reach)
        if not follows:
            if unchained + end - at > budget or not (check or end == source_end):
                break
            unchained += end - at
        if (check or not follows) and not _checksum_matches(data, view, at, end, table):
            break
        if count * HEADER_WIDTH == len(rows):
            headers.block = headers.block + array("q", bytes(8 * HEADER_WIDTH * count))
            rows = headers.block
        read_header(data, at, rows, count * HEADER_WIDTH)
        count += 1
        records += int32_at(data, at + RECORD_COUNT_AT)
        last = base + delta
        at = end
    if count == 0:
        return None
    headers.count = count
    before = rows[(count - 2) * HEADER_WIDTH + LAST_OFFSET] if count > 1 else latest
    return ValidRun(at, headers, records, rows[BASE_OFFSET], last, before, unchained)
