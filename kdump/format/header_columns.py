# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Headers of valid v2 batches as columns of integers, to examine many of them together.

In ranges first..stop, `stop` is exclusive. Compiled if there is a C compiler; otherwise runs as plain Python.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from kdump.format.batch import BATCH_HEADER, LOG_OVERHEAD, MAX_SEQUENCE, TRANSACTIONAL

try:
    import cython
except ImportError:
    from kdump.format import nocython as cython

if cython.compiled:
    from cython.cimports.kdump.format.numbers import minus, plus
else:
    from kdump.format.numbers import minus, plus

WIDTH = 12
(
    START,
    END,
    BASE,
    LAST,
    EPOCH,
    ATTRIBUTES,
    MAX_TIMESTAMP,
    PRODUCER,
    PRODUCER_EPOCH,
    SEQUENCE,
    RECORDS,
    FIRST_TIMESTAMP,
) = range(12)
"""The columns: start and end of a batch in the buffer, its first and last offset, and fields of its header
(FIRST_TIMESTAMP is baseTimestamp)."""
_FIELDS = ("attributes", "baseTimestamp", "maxTimestamp", "producerId", "producerEpoch", "baseSequence", "recordCount")
assert [BATCH_HEADER.positions[name] for name in _FIELDS] == [21, 27, 35, 43, 51, 53, 57]
assert (BATCH_HEADER.size, LOG_OVERHEAD, MAX_SEQUENCE, TRANSACTIONAL.mask) == (61, 12, 2147483647, 0x10)


class HeaderColumns:
    """Headers of `count` batches, with WIDTH numbers each in `block`. Starts and ends index into `data`; add `shift`
    to get positions in the file."""

    __slots__ = ("block", "count", "data", "shift")

    def __init__(self, data: bytes, shift: int) -> None:
        self.data = data
        self.shift = shift
        self.block = array("q")
        self.count = 0

    def __len__(self) -> int:
        return self.count

    def of(self, row: int, column: int) -> int:
        """Return the number in a row and column."""
        return self.block[row * WIDTH + column]

    def column(self, column: int) -> memoryview:
        """Return a column: one number per batch."""
        return memoryview(self.block)[column : self.count * WIDTH : WIDTH]


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.returns(cython.longlong)
def _integer(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, size: cython.int):
    """Return the signed big-endian integer of `size` bytes at data[at:]."""
    value: cython.ulonglong = 0
    i: cython.int
    for i in range(size):
        value = value << 8 | data[at + i]
    if not cython.compiled:
        return value - (value >> size * 8 - 1 << size * 8)
    if size < 8 and value >> (size * 8 - 1):
        value -= cython.cast(cython.ulonglong, 1) << (size * 8)
    return cython.cast(cython.longlong, value)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.longlong)
def sequence_at(base: cython.longlong, delta: cython.longlong):
    """Like format.batch.sequence: returns -1 if `base` is negative, and wraps to 0."""
    if base < 0:
        return -1
    if base > 2147483647 - delta:
        return delta - (2147483647 - base) - 1
    return base + delta


def read_header_columns(data: bytes, start: cython.Py_ssize_t, stop: cython.Py_ssize_t, shift: int) -> HeaderColumns:
    """Read the headers of the batches that fill data[start:stop]; their lengths must have been validated."""
    buffer: cython.const[cython.uchar][::1] = data
    heads = HeaderColumns(data, shift)
    at: cython.Py_ssize_t = start
    count: cython.Py_ssize_t = 0
    to: cython.Py_ssize_t = 0
    while at < stop:
        at += 12 + _integer(buffer, at + 8, 4)
        count += 1
    heads.block = array("q", bytes(8 * 12 * count))
    heads.count = count
    rows: cython.longlong[::1] = heads.block
    at = start
    while at < stop:
        rows[to] = at
        rows[to + 1] = at + 12 + _integer(buffer, at + 8, 4)
        rows[to + 2] = _integer(buffer, at, 8)
        rows[to + 3] = plus(rows[to + 2], _integer(buffer, at + 23, 4))
        rows[to + 4] = _integer(buffer, at + 12, 4)
        rows[to + 5] = _integer(buffer, at + 21, 2)
        rows[to + 6] = _integer(buffer, at + 35, 8)
        rows[to + 7] = _integer(buffer, at + 43, 8)
        rows[to + 8] = _integer(buffer, at + 51, 2)
        rows[to + 9] = _integer(buffer, at + 53, 4)
        rows[to + 10] = _integer(buffer, at + 57, 4)
        rows[to + 11] = _integer(buffer, at + 27, 8)
        at = rows[to + 1]
        to += 12
    return heads


def within(
    heads: HeaderColumns, column: cython.Py_ssize_t, first: cython.Py_ssize_t, stop: cython.Py_ssize_t,
    low: cython.longlong, high: cython.longlong,
) -> int:  # fmt: skip
    """Return the first batch of first..stop whose number in `column` is outside low..high (inclusive), else `stop`."""
    rows: cython.longlong[::1] = heads.block
    row: cython.Py_ssize_t
    for row in range(first, stop):
        if not low <= rows[row * 12 + column] <= high:
            return row
    return stop


def are_adjacent(heads: HeaderColumns, first: cython.Py_ssize_t, stop: cython.Py_ssize_t, last: cython.longlong) -> int:
    """Return the first batch of first..stop whose base offset is not the previous last offset plus 1, else `stop`.

    For the batch `first`, the previous last offset is `last`.
    """
    rows: cython.longlong[::1] = heads.block
    row: cython.Py_ssize_t
    for row in range(first, stop):
        if rows[row * 12 + 2] != plus(last, 1):
            return row
        last = rows[row * 12 + 3]
    return stop


def is_plain_batch(
    heads: HeaderColumns,
    first: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    flags: cython.longlong,
    most: cython.longlong,
) -> int:
    """Return the first batch of first..stop with attribute bits outside `flags`, more than `most` bytes, or
    inconsistent producer ID, epoch and sequence; else `stop`."""
    rows: cython.longlong[::1] = heads.block
    row: cython.Py_ssize_t
    at: cython.Py_ssize_t
    for row in range(first, stop):
        at = row * 12
        if rows[at + 5] & ~flags or rows[at + 1] - rows[at] > most:
            return row
        if rows[at + 7] < 0:
            if rows[at + 5] & 0x10:
                return row
        elif rows[at + 8] < 0 or rows[at + 9] < 0:
            return row
    return stop


class ProducerWrites(NamedTuple):
    """Batches of one producer: rows of the first and the last, and number of records, batches and bytes."""

    first: int
    last: int
    records: int
    batches: int
    bytes: int


def producer_writes(
    heads: HeaderColumns, first: cython.Py_ssize_t, stop: cython.Py_ssize_t, sequences: cython.bint
) -> tuple[int, list[ProducerWrites]]:
    """Group the batches first..stop by producer; return the row at which grouping stopped, and the Chains.

    The batches of a chain have the same producer epoch, are all transactional or all not, and with `sequences` have
    consecutive sequence numbers. Grouping stops at the first batch that would violate this, else at `stop`. Batches
    without a producer ID are ignored. The chains are in the order of their last batches.
    """
    rows: cython.longlong[::1] = heads.block
    row: cython.Py_ssize_t
    at: cython.Py_ssize_t
    before: cython.Py_ssize_t
    place: cython.Py_ssize_t
    size: cython.Py_ssize_t = 8
    expected: cython.longlong
    while size < 2 * (stop - first):
        size *= 2
    mask: cython.Py_ssize_t = size - 1
    # A hash table by producer ID: row of its last batch + 1 (0: free slot), row of its first batch, and the sums.
    block = array("q", bytes(8 * 5 * size))
    table: cython.longlong[::1] = block
    for row in range(first, stop):
        at = row * 12
        if rows[at + 7] < 0:
            continue
        place = (rows[at + 7] ^ rows[at + 7] >> 16) & mask
        while table[place * 5] and rows[(table[place * 5] - 1) * 12 + 7] != rows[at + 7]:
            place = (place + 1) & mask
        if table[place * 5]:
            before = (table[place * 5] - 1) * 12
            if rows[at + 8] != rows[before + 8] or (rows[at + 5] ^ rows[before + 5]) & 0x10:
                stop = row
                break
            expected = sequence_at(rows[before + 9], minus(rows[before + 3], rows[before + 2]) + 1)
            if sequences and rows[at + 9] != expected:
                stop = row
                break
        else:
            table[place * 5 + 1] = row
        table[place * 5] = row + 1
        table[place * 5 + 2] += rows[at + 10]
        table[place * 5 + 3] += 1
        table[place * 5 + 4] += rows[at + 1] - rows[at]
    found = [
        ProducerWrites(block[place + 1], block[place] - 1, block[place + 2], block[place + 3], block[place + 4])
        for place in range(0, 5 * size, 5)
        if table[place]
    ]
    found.sort(key=_last)
    return stop, found


def _last(chain: ProducerWrites) -> int:
    return chain.last


def missing_records(heads: HeaderColumns, first: cython.Py_ssize_t, stop: cython.Py_ssize_t) -> bool:
    """Return True if any batch of first..stop has fewer records than offsets."""
    rows: cython.longlong[::1] = heads.block
    row: cython.Py_ssize_t
    missing: cython.bint = False
    for row in range(first, stop):
        missing = missing or rows[row * 12 + 10] < minus(rows[row * 12 + 3], rows[row * 12 + 2]) + 1
    return missing


def largest(
    heads: HeaderColumns, column: cython.Py_ssize_t, first: cython.Py_ssize_t, stop: cython.Py_ssize_t,
    most: cython.longlong = 0x7FFFFFFFFFFFFFFF,
) -> int:  # fmt: skip
    """Return the largest non-negative number in `column` of the batches first..stop that is at most `most`, else -1."""
    rows: cython.longlong[::1] = heads.block
    row: cython.Py_ssize_t
    found: cython.longlong = -1
    for row in range(first, stop):
        if found < rows[row * 12 + column] <= most:
            found = rows[row * 12 + column]
    return found


def total(heads: HeaderColumns, column: cython.Py_ssize_t, first: cython.Py_ssize_t, stop: cython.Py_ssize_t) -> int:
    """Return the sum of `column` over the batches first..stop; for 32-bit numbers, so that it cannot overflow."""
    rows: cython.longlong[::1] = heads.block
    row: cython.Py_ssize_t
    found: cython.longlong = 0
    for row in range(first, stop):
        found += rows[row * 12 + column]
    return found
