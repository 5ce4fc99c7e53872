# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Headers of valid v2 batches as columns of integers, to examine many of them together.

In ranges first..stop, `stop` is exclusive. Compiled if there is a C compiler; otherwise runs as plain Python."""

from __future__ import annotations

from array import array
from typing import NamedTuple

try:
    import cython
except ImportError:
    from kdump import nocython as cython

if cython.compiled:
    from cython.cimports.kdump.core.column_numbers import *
    from cython.cimports.kdump.core.integers import minus, plus, sequence_at
else:
    from kdump.core.column_numbers import *
    from kdump.core.integers import minus, plus, sequence_at


class HeaderColumns:
    """Headers of `count` batches, with HEADER_WIDTH numbers each in `block`. Starts and ends index into `data`; add
    `shift` to get positions in the file."""

    __slots__ = ("block", "count", "data", "grouped", "shift")

    def __init__(self, data: bytes, shift: int) -> None:
        self.data = data
        self.shift = shift
        self.block = array("q")
        self.count = 0
        self.grouped: tuple[int, int, bool, list[ProducerWrites]] | None = None
        """What producer_writes was last called with, and has returned: several watchers ask for the same batches."""

    def __len__(self) -> int:
        return self.count

    def of(self, row: int, column: int) -> int:
        """Return the number in a row and column."""
        return self.block[row * HEADER_WIDTH + column]

    def row(self, row: int) -> array[int]:
        """Return the numbers in a row: for whoever needs several."""
        return self.block[row * HEADER_WIDTH : (row + 1) * HEADER_WIDTH]

    def column(self, column: int) -> memoryview:
        """Return a column: one number per batch."""
        return memoryview(self.block)[column : self.count * HEADER_WIDTH : HEADER_WIDTH]


def wrapper_header(position: int, base_offset: int, append_time: int | None) -> HeaderColumns:
    """Return the columns for a wrapper at `position` whose messages have relative offsets from `base_offset`, their own
    timestamps, or, if it is not None, that append time."""
    heads = HeaderColumns(b"", position)
    heads.block, heads.count = array("q", bytes(8 * HEADER_WIDTH)), 1
    heads.block[BASE_OFFSET] = base_offset
    heads.block[BASE_SEQUENCE] = -1
    if append_time is not None:
        heads.block[ATTRIBUTES] = LOG_APPEND_TIME
        heads.block[MAX_TIMESTAMP] = append_time
    return heads


def within(
    heads: HeaderColumns, column: cython.Py_ssize_t, first: cython.Py_ssize_t, stop: cython.Py_ssize_t,
    low: cython.longlong, high: cython.longlong,
) -> int:  # fmt: skip
    """Return the first batch of first..stop whose number in `column` is outside low..high (inclusive), else `stop`."""
    rows: cython.longlong[::1] = heads.block
    row: cython.Py_ssize_t
    for row in range(first, stop):
        if not low <= rows[row * HEADER_WIDTH + column] <= high:
            return row
    return stop


def are_adjacent(heads: HeaderColumns, first: cython.Py_ssize_t, stop: cython.Py_ssize_t, last: cython.longlong) -> int:
    """Return the first batch of first..stop whose base offset is not the previous last offset plus 1, else `stop`.

    For the batch `first`, the previous last offset is `last`."""
    rows: cython.longlong[::1] = heads.block
    row: cython.Py_ssize_t
    for row in range(first, stop):
        if rows[row * HEADER_WIDTH + BASE_OFFSET] != plus(last, 1):
            return row
        last = rows[row * HEADER_WIDTH + LAST_OFFSET]
    return stop


def is_plain_batch(
    heads: HeaderColumns,
    first: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    flags: cython.longlong,
    most: cython.longlong,
    markers: cython.bint = False,
) -> int:
    """Return the first batch of first..stop with attribute bits outside `flags`, more than `most` bytes, or
    inconsistent producer ID, epoch and sequence; else `stop`. `markers`: one for which is_marker is true is none."""
    rows: cython.longlong[::1] = heads.block
    row: cython.Py_ssize_t
    at: cython.Py_ssize_t
    for row in range(first, stop):
        at = row * HEADER_WIDTH
        if markers and rows[at + ATTRIBUTES] == IS_TRANSACTIONAL | IS_CONTROL and is_marker(heads, row):
            continue
        if rows[at + ATTRIBUTES] & ~flags or rows[at + BATCH_END] - rows[at + BATCH_START] > most:
            return row
        if rows[at + PRODUCER_ID] < 0:
            if rows[at + ATTRIBUTES] & IS_TRANSACTIONAL:
                return row
        elif rows[at + PRODUCER_EPOCH] < 0 or rows[at + BASE_SEQUENCE] < 0:
            return row
    return stop


def is_marker(heads: HeaderColumns, row: cython.Py_ssize_t) -> bool:
    """Return True if a valid batch is a transaction marker exactly as brokers write it."""
    rows: cython.longlong[::1] = heads.block
    at: cython.Py_ssize_t = row * HEADER_WIDTH
    place: cython.Py_ssize_t = rows[at + BATCH_START] + HEADER_SIZE
    data: cython.const[cython.uchar][::1]
    if rows[at + ATTRIBUTES] != IS_TRANSACTIONAL | IS_CONTROL or rows[at + RECORD_COUNT] != 1:
        return False
    if rows[at + BATCH_END] - rows[at + BATCH_START] != MARKER_SIZE:
        return False
    if rows[at + PRODUCER_ID] < 0 or rows[at + PRODUCER_EPOCH] < 0 or rows[at + LAST_OFFSET] != rows[at + BASE_OFFSET]:
        return False
    if rows[at + BASE_TIMESTAMP] < 0 or rows[at + BASE_TIMESTAMP] != rows[at + MAX_TIMESTAMP]:
        return False
    data = heads.data
    if rows[at + BATCH_END] > len(data):
        return False
    # The record: its length, attributes and deltas; the key with its size, version and type; the value with its size,
    # version and coordinator epoch; no headers.
    if data[place] != 0x20 or data[place + 1] or data[place + 2] or data[place + 3]:
        return False
    if data[place + 4] != 0x08 or data[place + 5] or data[place + 6] or data[place + 7] or data[place + 8] > 1:
        return False
    return data[place + 9] == 0x0C and not (data[place + 10] or data[place + 11] or data[place + 16])


class ProducerWrites(NamedTuple):
    """Batches of one producer up to a transaction marker: rows of the first and the last (-1: only the marker), and
    number of records, batches and bytes, all without the marker; its row, -1 for none. Among the batches that were
    grouped, the producer has: `is_next`, an earlier marker; `is_checked`, earlier data, which its sequence was compared
    with."""

    first: int
    last: int
    records: int
    batches: int
    bytes: int
    marker: int
    is_next: bool
    is_checked: bool

    @property
    def begins(self) -> int:
        """The row of the first batch, which may be the marker."""
        return self.marker if self.first < 0 else self.first


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _place_of(
    producer: cython.longlong, rows: cython.longlong[::1], table: cython.longlong[::1], mask: cython.Py_ssize_t
):
    """Return where the numbers of a producer are in the hash table of producer_writes, or go."""
    place: cython.Py_ssize_t = (producer ^ producer >> 16) & mask
    while table[place * 8] and rows[(table[place * 8] - 1) * HEADER_WIDTH + PRODUCER_ID] != producer:
        place = (place + 1) & mask
    return place * 8


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.returns(cython.bint)
def _continues(
    at: cython.Py_ssize_t, rows: cython.longlong[::1], place: cython.Py_ssize_t, table: cython.longlong[::1],
    sequences: cython.bint,
):  # fmt: skip
    """Return whether the batch in rows[at:] may follow what its producer has written before (see producer_writes)."""
    before: cython.Py_ssize_t = (table[place] - 1) * HEADER_WIDTH
    data: cython.Py_ssize_t = (table[place + 2] - 1) * HEADER_WIDTH
    if rows[at + ATTRIBUTES] & IS_CONTROL:
        return rows[at + PRODUCER_EPOCH] >= rows[before + PRODUCER_EPOCH]
    if rows[at + PRODUCER_EPOCH] != rows[before + PRODUCER_EPOCH]:
        return False
    if table[place + 1] and (rows[at + ATTRIBUTES] ^ rows[before + ATTRIBUTES]) & IS_TRANSACTIONAL:
        return False
    if not sequences or data < 0 or rows[at + PRODUCER_EPOCH] != rows[data + PRODUCER_EPOCH]:
        return True
    return rows[at + BASE_SEQUENCE] == sequence_at(
        rows[data + BASE_SEQUENCE], minus(rows[data + LAST_OFFSET], rows[data + BASE_OFFSET]) + 1
    )


def producer_writes(
    heads: HeaderColumns, first: cython.Py_ssize_t, stop: cython.Py_ssize_t, sequences: cython.bint
) -> tuple[int, list[ProducerWrites]]:
    """Group the batches first..stop by producer; return the row at which grouping stopped, and their ProducerWrites.

    The batches of a chain have the same producer epoch, are all transactional or all not, and with `sequences` have
    consecutive sequence numbers. A transaction marker has that epoch or a higher one, and ends a chain; the next one
    has the marker's epoch and, if that is the epoch of the producer's last data, with `sequences` continues it.
    Grouping stops at the first batch that would violate this, else at `stop`. Batches without a producer ID are
    ignored. The chains are in the order of their last batches. Control batches must be transaction markers."""
    rows: cython.longlong[::1] = heads.block
    row: cython.Py_ssize_t
    at: cython.Py_ssize_t
    place: cython.Py_ssize_t
    size: cython.Py_ssize_t = 8
    if heads.grouped is not None and heads.grouped[:2] == (first, stop) and (heads.grouped[2] or not sequences):
        return stop, heads.grouped[3]
    while size < 2 * (stop - first):
        size *= 2
    mask: cython.Py_ssize_t = size - 1
    # A hash table by producer ID, of rows + 1 (0: none): its last batch, the first of its chain, its last data batch
    # and its last marker; then the sums of its chain, and the last data batch before it.
    block = array("q", bytes(8 * 8 * size))
    table: cython.longlong[::1] = block
    found: list[ProducerWrites] = []
    for row in range(first, stop):
        at = row * HEADER_WIDTH
        if rows[at + PRODUCER_ID] < 0:
            continue
        place = _place_of(rows[at + PRODUCER_ID], rows, table, mask)
        if table[place] and not _continues(at, rows, place, table, sequences):
            stop = row
            break
        table[place] = row + 1
        if rows[at + ATTRIBUTES] & IS_CONTROL:
            found.append(_chain(table, place, row))
            table[place + 3] = row + 1
            table[place + 1] = table[place + 4] = table[place + 5] = table[place + 6] = 0
            continue
        if not table[place + 1]:
            table[place + 1] = row + 1
            table[place + 7] = table[place + 2]
        table[place + 2] = row + 1
        table[place + 4] += rows[at + RECORD_COUNT]
        table[place + 5] += 1
        table[place + 6] += rows[at + BATCH_END] - rows[at + BATCH_START]
    for place in range(0, 8 * size, 8):
        if table[place + 1]:
            found.append(_chain(table, place, -1))
    found.sort(key=_last)
    heads.grouped = (first, stop, sequences, found)
    return stop, found


@cython.cfunc
def _chain(table: cython.longlong[::1], place: cython.Py_ssize_t, marker: cython.Py_ssize_t) -> ProducerWrites:
    """Return the chain of a producer, whose numbers start at table[place]."""
    first: cython.Py_ssize_t = table[place + 1] - 1
    last: cython.Py_ssize_t = table[place + 2] - 1
    records, batches, size = table[place + 4], table[place + 5], table[place + 6]
    is_next, is_checked = table[place + 3] > 0, first >= 0 and table[place + 7] > 0
    return ProducerWrites(first, last if first >= 0 else -1, records, batches, size, marker, is_next, is_checked)


def _last(chain: ProducerWrites) -> int:
    return chain.last if chain.marker < 0 else chain.marker


def cleaned_batch(heads: HeaderColumns, first: cython.Py_ssize_t, stop: cython.Py_ssize_t) -> int:
    """Return the first batch of first..stop with fewer records than offsets, or a delete horizon; else `stop`."""
    rows: cython.longlong[::1] = heads.block
    row: cython.Py_ssize_t
    at: cython.Py_ssize_t
    for row in range(first, stop):
        at = row * HEADER_WIDTH
        if rows[at + RECORD_COUNT] < minus(rows[at + LAST_OFFSET], rows[at + BASE_OFFSET]) + 1:
            return row
        if rows[at + ATTRIBUTES] & HAS_DELETE_HORIZON:
            return row
    return stop


def largest(
    heads: HeaderColumns, column: cython.Py_ssize_t, first: cython.Py_ssize_t, stop: cython.Py_ssize_t,
    most: cython.longlong = 0x7FFFFFFFFFFFFFFF,
) -> int:  # fmt: skip
    """Return the largest non-negative number in `column` of the batches first..stop that is at most `most`, else -1."""
    rows: cython.longlong[::1] = heads.block
    row: cython.Py_ssize_t
    found: cython.longlong = -1
    for row in range(first, stop):
        if found < rows[row * HEADER_WIDTH + column] <= most:
            found = rows[row * HEADER_WIDTH + column]
    return found


def total(heads: HeaderColumns, column: cython.Py_ssize_t, first: cython.Py_ssize_t, stop: cython.Py_ssize_t) -> int:
    """Return the sum of `column` over the batches first..stop; for 32-bit numbers, so that it cannot overflow."""
    rows: cython.longlong[::1] = heads.block
    row: cython.Py_ssize_t
    found: cython.longlong = 0
    for row in range(first, stop):
        found += rows[row * HEADER_WIDTH + column]
    return found


class HeaderSums(NamedTuple):
    """Sums over valid batches: number of records; the smallest timestamp of a first record and the largest
    maxTimestamp (epoch ms, -1 if there is none); `codecs`: a bit for each codec ID."""

    records: int
    oldest: int
    newest: int
    codecs: int


def header_sums(heads: HeaderColumns, last: cython.longlong) -> HeaderSums | None:
    """Return the sums of all batches; None if their offsets do not rise from above `last`."""
    rows: cython.longlong[::1] = heads.block
    at: cython.Py_ssize_t
    row: cython.Py_ssize_t
    records: cython.longlong = 0
    oldest: cython.longlong = -1
    newest: cython.longlong = -1
    first: cython.longlong
    codecs: cython.longlong = 0
    for row in range(heads.count):
        at = row * HEADER_WIDTH
        if rows[at + BASE_OFFSET] <= last or rows[at + LAST_OFFSET] < rows[at + BASE_OFFSET]:
            return None
        last = rows[at + LAST_OFFSET]
        records += rows[at + RECORD_COUNT]
        codecs |= 1 << (rows[at + ATTRIBUTES] & CODEC)
        if rows[at + MAX_TIMESTAMP] > newest:
            newest = rows[at + MAX_TIMESTAMP]
        first = rows[at + BASE_TIMESTAMP]
        if rows[at + ATTRIBUTES] & (LOG_APPEND_TIME | HAS_DELETE_HORIZON) or not rows[at + RECORD_COUNT]:
            first = rows[at + MAX_TIMESTAMP]
        if first >= 0 and (first < oldest or oldest < 0):
            oldest = first
    return HeaderSums(records, oldest, newest, codecs)


class CodecTotals(NamedTuple):
    """Number of batches, records and bytes of one codec."""

    codec: int
    batches: int
    records: int
    bytes: int


def by_codec(heads: HeaderColumns, first: cython.Py_ssize_t, stop: cython.Py_ssize_t) -> list[CodecTotals]:
    """Return the totals of the batches first..stop by codec; a negative record count is ignored."""
    rows: cython.longlong[::1] = heads.block
    row: cython.Py_ssize_t
    at: cython.Py_ssize_t
    place: cython.Py_ssize_t
    block = array("q", bytes(8 * 24))
    sums: cython.longlong[::1] = block
    for row in range(first, stop):
        at = row * HEADER_WIDTH
        place = 3 * (rows[at + ATTRIBUTES] & CODEC)
        sums[place] += 1
        if rows[at + RECORD_COUNT] > 0:
            sums[place + 1] += rows[at + RECORD_COUNT]
        sums[place + 2] += rows[at + BATCH_END] - rows[at + BATCH_START]
    return [
        CodecTotals(codec, block[3 * codec], block[3 * codec + 1], block[3 * codec + 2])
        for codec in range(8)
        if block[3 * codec]
    ]


class BatchAges(NamedTuple):
    """The smallest baseTimestamp and the largest maxTimestamp of batches with a non-negative maxTimestamp (epoch ms, -1
    if there is none), and the number of batches with records and a negative maxTimestamp."""

    oldest: int
    newest: int
    negative: int


def batch_ages(heads: HeaderColumns, first: cython.Py_ssize_t, stop: cython.Py_ssize_t) -> BatchAges:
    """Return the BatchAges of the batches first..stop, none of which may have a delete horizon."""
    rows: cython.longlong[::1] = heads.block
    row: cython.Py_ssize_t
    at: cython.Py_ssize_t
    oldest: cython.longlong = -1
    newest: cython.longlong = -1
    negative: cython.longlong = 0
    for row in range(first, stop):
        at = row * HEADER_WIDTH
        if rows[at + MAX_TIMESTAMP] < 0:
            if rows[at + RECORD_COUNT] > 0:
                negative += 1
            continue
        if rows[at + MAX_TIMESTAMP] > newest:
            newest = rows[at + MAX_TIMESTAMP]
        if rows[at + BASE_TIMESTAMP] >= 0 and (oldest < 0 or rows[at + BASE_TIMESTAMP] < oldest):
            oldest = rows[at + BASE_TIMESTAMP]
    return BatchAges(oldest, newest, negative)


def add_producers(
    sums: dict[tuple[int, int], list[int]], heads: HeaderColumns, first: cython.Py_ssize_t, stop: cython.Py_ssize_t
) -> None:
    """Add the batches first..stop to `sums`: by producer ID and epoch, the number of batches, of records and of bytes,
    the smallest and the largest maxTimestamp, and the first and the last offset. Ignores batches without a producer ID,
    and negative record counts."""
    rows: cython.longlong[::1] = heads.block
    row: cython.Py_ssize_t = first
    at: cython.Py_ssize_t
    producer: cython.longlong
    epoch: cython.longlong
    batches: cython.longlong
    records: cython.longlong
    size: cython.longlong
    oldest: cython.longlong
    newest: cython.longlong
    base: cython.longlong
    last: cython.longlong = 0
    while row < stop:
        at = row * HEADER_WIDTH
        producer, epoch = rows[at + PRODUCER_ID], rows[at + PRODUCER_EPOCH]
        batches = records = size = 0
        oldest = newest = rows[at + MAX_TIMESTAMP]
        base = rows[at + BASE_OFFSET]
        while row < stop and rows[at + PRODUCER_ID] == producer and rows[at + PRODUCER_EPOCH] == epoch:
            batches += 1
            if rows[at + RECORD_COUNT] > 0:
                records += rows[at + RECORD_COUNT]
            size += rows[at + BATCH_END] - rows[at + BATCH_START]
            if rows[at + MAX_TIMESTAMP] < oldest:
                oldest = rows[at + MAX_TIMESTAMP]
            if rows[at + MAX_TIMESTAMP] > newest:
                newest = rows[at + MAX_TIMESTAMP]
            last = rows[at + LAST_OFFSET]
            row += 1
            at += HEADER_WIDTH
        if producer < 0:
            continue
        found = sums.get((producer, epoch))
        if found is None:
            sums[producer, epoch] = [batches, records, size, oldest, newest, base, last]
        else:
            found[0] += batches
            found[1] += records
            found[2] += size
            found[3] = min(found[3], oldest)
            found[4] = max(found[4], newest)
            found[5] = min(found[5], base)
            found[6] = max(found[6], last)
