# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Finds batch runs: validates many v2 batches at a time, as far as the batches in a buffer are valid beyond doubt.

Compiled if there is a C compiler; otherwise runs as plain Python.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from kdump.format.batch import BATCH_HEADER, CRC_START, LOG_OVERHEAD, MIN_BATCH_LENGTH, MIN_RECORD_SIZE, max_records
from kdump.format.checksum import castagnoli

try:
    import cython
except ImportError:
    from kdump.format import nocython as cython

POLYNOMIAL = 0x82F63B78
SMALL = 512
"""Covered bytes below which the table is faster than a call of the library."""
FURTHEST = 1 << 62
"""Offsets from here on, and in file names above this, end a batch run, so that sums stay within 64 bits."""
assert (BATCH_HEADER.size, CRC_START, LOG_OVERHEAD, MIN_BATCH_LENGTH, MIN_RECORD_SIZE) == (61, 21, 12, 49, 7)
assert [BATCH_HEADER.positions[name] for name in ("crc", "lastOffsetDelta", "recordCount")] == [17, 23, 57]


class ValidRun(NamedTuple):
    """A batch run: consecutive valid batches. `stop` is the position in the buffer after the last one; `before` is the
    last offset of the second-to-last one (the given `latest` if there is only one); `unchained` is the bytes of the
    batches that only their checksums confirm."""

    stop: int
    batches: int
    records: int
    first_offset: int
    last_offset: int
    before: int
    unchained: int


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
def crc(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t, table: cython.uint[::1]):
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
def _uint32(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t):
    return (
        cython.cast(cython.longlong, data[at]) << 24
        | cython.cast(cython.longlong, data[at + 1]) << 16
        | cython.cast(cython.longlong, data[at + 2]) << 8
        | data[at + 3]
    )


@cython.cfunc
@cython.exceptval(check=False)
@cython.returns(cython.longlong)
def int32(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t):
    """Return the INT32 at data[at:]."""
    value: cython.longlong = _uint32(data, at)
    return value - (value >> 31 << 32)


@cython.cfunc
@cython.exceptval(check=False)
@cython.returns(cython.longlong)
def int64(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t):
    """Return the INT64 at data[at:]."""
    if not cython.compiled:
        return int.from_bytes(data[at : at + 8], "big", signed=True)
    high: cython.ulonglong = _uint32(data, at)
    return cython.cast(cython.longlong, high << 32 | cython.cast(cython.ulonglong, _uint32(data, at + 4)))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.returns(cython.longlong)
def _offset(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t):
    """Return the INT64 at data[at:]; -1 if it is negative or not below FURTHEST."""
    high: cython.longlong = _uint32(data, at)
    if high >= 0x40000000:
        return -1
    return high << 32 | _uint32(data, at + 4)


def checksum_holds(data: bytes | memoryview, at: int, end: int) -> bool:
    """Return True if the stored CRC-32C of the batch data[at:end] matches its bytes."""
    stored = int.from_bytes(data[at + 17 : at + 21], "big")
    return castagnoli(memoryview(data)[at + 21 : end]) == stored


def scan_valid_batches(
    buffer: bytes,
    position: cython.Py_ssize_t,
    *,
    source_end: cython.longlong,
    largest: cython.longlong,
    latest: cython.longlong,
    lowest: cython.longlong,
    highest: cython.longlong,
    budget: cython.longlong,
    check: cython.bint,
) -> ValidRun | None:
    """Return the run of batches from `position` on that are valid beyond doubt, None if the first is not.

    Each is completely in the buffer, has at most `largest` bytes and room for its records, and has offsets above those
    of the batch before it (the first: above `latest`), with its last offset in lowest..highest. With `check`, its
    checksum matches; otherwise, a header with exactly the next offset follows, whose batch ends by `source_end` (a
    position in the buffer: the end of the source, or of its known part). `budget` limits the bytes of batches that no
    such header follows.
    """
    data: cython.const[cython.uchar][::1] = buffer
    view = memoryview(buffer)
    table: cython.uint[::1] = _TABLES
    size: cython.Py_ssize_t = len(buffer)
    at: cython.Py_ssize_t = position
    end: cython.Py_ssize_t
    length: cython.longlong
    base: cython.longlong
    delta: cython.longlong
    last: cython.longlong = latest
    before: cython.longlong = latest
    first: cython.longlong = -1
    records: cython.longlong = 0
    record_count: cython.longlong
    unchained: cython.longlong = 0
    count: cython.Py_ssize_t = 0
    stored: cython.longlong
    follows: cython.bint
    while size - at >= 61 and data[at + 16] == 2:
        length = int32(data, at + 8)
        if length < 49 or length + 12 > size - at or length + 12 > largest:
            break
        end = at + 12 + length
        base = _offset(data, at)
        delta = int32(data, at + 23)
        record_count = int32(data, at + 57)
        if base <= last or delta < 0 or record_count < 0 or not lowest <= base + delta <= highest:
            break
        if record_count * 7 > end - at - 61 and record_count > max_records(end - at, data[at + 22] & 7):
            break
        follows = False
        if size - end >= 17 and data[end + 16] <= 2:
            length = int32(data, end + 8)
            follows = length >= 5 and end + 12 + length <= source_end and _offset(data, end) == base + delta + 1
        if not check:
            if not follows:
                break
        else:
            if not follows:
                unchained += end - at
                if unchained > budget:
                    unchained -= end - at
                    break
            stored = _uint32(data, at + 17)
            if cython.compiled and end - at < SMALL:
                if crc(data, at + 21, end, table) != stored:
                    break
            elif castagnoli(view[at + 21 : end]) != stored:
                break
        if count == 0:
            first = base
        count += 1
        records += record_count
        before = last
        last = base + delta
        at = end
    if count == 0:
        return None
    return ValidRun(at, count, records, first, last, before, unchained)
