# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Checks records in columns: whether they decode, agree with the header of their batch, and have valid header keys.

Compiled if there is a C compiler; otherwise runs as plain Python."""

from __future__ import annotations

from array import array
from typing import NamedTuple

from kdump.core.header_columns import HeaderColumns
from kdump.core.record_columns import RecordColumns

try:
    import cython
except ImportError:
    from kdump import nocython as cython

if cython.compiled:
    from cython.cimports.kdump.core.column_numbers import *
    from cython.cimports.kdump.core.integers import int16_at, minus, plus, varint_at
    from cython.cimports.kdump.core.record_columns import read_rows
else:
    from kdump.core.column_numbers import *
    from kdump.core.integers import int16_at, minus, plus, varint_at
    from kdump.core.record_columns import read_rows


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.bint)
def _agrees(
    head: cython.longlong[::1],
    place: cython.Py_ssize_t,
    data: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    rows: cython.longlong[::1],
    keyed: cython.bint,
):
    """What records_agree returns for the batch whose header starts at head[place]. `rows` has room for RECORDS_AT_ONCE
    records."""
    count: cython.longlong = head[place + RECORD_COUNT]
    offsets: cython.longlong = minus(head[place + LAST_OFFSET], head[place + BASE_OFFSET])
    room: cython.Py_ssize_t = RECORDS_AT_ONCE * RECORD_WIDTH
    at: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    status: cython.Py_ssize_t
    last: cython.longlong = -1
    latest: cython.longlong = -1
    timestamp: cython.longlong
    if count == 0:
        return position == end
    while count > 0:
        position, stop, status = read_rows(data, position, end, count, True, rows, 0, room)
        if status != ROWS_READ and status != NO_ROOM:
            return False
        count -= stop // RECORD_WIDTH
        at = 0
        while at < stop:
            if (
                not last < rows[at + OFFSET_DELTA] <= offsets
                or rows[at + RECORD_ATTRIBUTES] != 0
                or (keyed and rows[at + KEY_SIZE] < 0)
            ):
                return False
            last = rows[at + OFFSET_DELTA]
            timestamp = plus(head[place + BASE_TIMESTAMP], rows[at + TIMESTAMP_DELTA])
            if timestamp > latest:
                latest = timestamp
            if rows[at + HEADERS_COUNT] and not _has_valid_headers(data, rows, at):
                return False
            at += RECORD_WIDTH
    if position != end:
        return False
    if head[place + ATTRIBUTES] & LOG_APPEND_TIME:  # LogAppendTime: the records' own timestamps are not used
        return True
    return latest == head[place + MAX_TIMESTAMP]


def records_agree(heads: HeaderColumns, row: cython.Py_ssize_t, payload: bytes, keyed: cython.bint) -> bool:
    """Return True if the records in `payload`, the decompressed payload of batch number `row`, are as its header says.

    Their number and largest timestamp match the header, their offset deltas ascend and do not exceed the last one, they
    have no attributes, and header keys are valid text; with `keyed`, no key is null. False only means that the batch
    needs a closer look."""
    head: cython.longlong[::1] = heads.block
    data: cython.const[cython.uchar][::1] = payload
    rows: cython.longlong[::1] = array("q", bytes(8 * RECORD_WIDTH * RECORDS_AT_ONCE))
    end: cython.Py_ssize_t = len(payload)
    agrees: cython.bint
    with cython.nogil:
        agrees = _agrees(head, row * HEADER_WIDTH, data, 0, end, rows, keyed)
    return agrees


def count_valid_batches(
    heads: HeaderColumns, first: cython.Py_ssize_t, stop: cython.Py_ssize_t, keyed: cython.bint
) -> int:
    """Return the first batch of first..stop (exclusive) that is compressed or fails records_agree, else `stop`. Other
    threads run meanwhile."""
    head: cython.longlong[::1] = heads.block
    data: cython.const[cython.uchar][::1] = heads.data
    rows: cython.longlong[::1] = array("q", bytes(8 * RECORD_WIDTH * RECORDS_AT_ONCE))
    row: cython.Py_ssize_t = first
    place: cython.Py_ssize_t
    with cython.nogil:
        while row < stop:
            place = row * HEADER_WIDTH
            if head[place + ATTRIBUTES] & CODEC or not _agrees(
                head, place, data, head[place + BATCH_START] + HEADER_SIZE, head[place + BATCH_END], rows, keyed
            ):
                break
            row += 1
    return row


def count_known_batches(
    heads: HeaderColumns, first: cython.Py_ssize_t, stop: cython.Py_ssize_t, highest: array[int]
) -> int:
    """Return the first batch of first..stop (exclusive) that is compressed, does not decode, or has a record of a
    coordinator's topic that is newer: with a type of key that `highest` does not have, or a version of the value above
    highest[type]. Returns `stop` if there is none."""
    head: cython.longlong[::1] = heads.block
    data: cython.const[cython.uchar][::1] = heads.data
    rows: cython.longlong[::1] = array("q", bytes(8 * RECORD_WIDTH * RECORDS_AT_ONCE))
    versions: cython.longlong[::1] = highest
    types: cython.Py_ssize_t = len(highest)
    row: cython.Py_ssize_t = first
    place: cython.Py_ssize_t
    with cython.nogil:
        while row < stop:
            place = row * HEADER_WIDTH
            if head[place + ATTRIBUTES] & CODEC or not _are_known(head, place, data, rows, versions, types):
                break
            row += 1
    return row


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.bint)
def _are_known(
    head: cython.longlong[::1],
    place: cython.Py_ssize_t,
    data: cython.const[cython.uchar][::1],
    rows: cython.longlong[::1],
    highest: cython.longlong[::1],
    types: cython.Py_ssize_t,
):
    """Return True if no record of the batch whose header starts at head[place] stops count_known_batches."""
    count: cython.longlong = head[place + RECORD_COUNT]
    position: cython.Py_ssize_t = head[place + BATCH_START] + HEADER_SIZE
    end: cython.Py_ssize_t = head[place + BATCH_END]
    room: cython.Py_ssize_t = RECORDS_AT_ONCE * RECORD_WIDTH
    at: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    status: cython.Py_ssize_t
    kind: cython.longlong
    while count > 0:
        position, stop, status = read_rows(data, position, end, count, True, rows, 0, room)
        if status != ROWS_READ and status != NO_ROOM:
            return False
        count -= stop // RECORD_WIDTH
        at = 0
        while at < stop:
            if rows[at + KEY_SIZE] >= 2:
                kind = int16_at(data, rows[at + KEY_START])
                if kind >= types or (
                    kind >= 0 and rows[at + VALUE_SIZE] >= 2 and int16_at(data, rows[at + VALUE_START]) > highest[kind]
                ):
                    return False
            at += RECORD_WIDTH
    return position == end


class RecordCheck(NamedTuple):
    """What verify needs to know about the records in columns. `misplaced`: number of offset deltas that are not above
    all previous ones, or exceed lastOffsetDelta; `wrong_delta` and `wrong_previous`: the first of these, and the
    largest delta before it; `last`: the largest delta. `reserved`: number of records whose attributes are not 0.
    `unkeyed`: number of null keys; `first_unkeyed`: offset delta of the first."""

    misplaced: int
    wrong_delta: int
    wrong_previous: int
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
    wrong_previous: cython.longlong = 0
    largest: cython.longlong = plus(base, rows[TIMESTAMP_DELTA])
    timestamp: cython.longlong
    reserved: cython.longlong = 0
    unkeyed: cython.longlong = 0
    first_unkeyed: cython.longlong = 0
    count: cython.Py_ssize_t = columns.count
    number: cython.Py_ssize_t
    for number in range(count):
        at = number * RECORD_WIDTH
        delta = rows[at + OFFSET_DELTA]
        if not last < delta <= end:
            if misplaced == 0:
                wrong_delta, wrong_previous = delta, last
            misplaced += 1
        if delta > last:
            last = delta
        timestamp = plus(base, rows[at + TIMESTAMP_DELTA])
        if timestamp > largest:
            largest = timestamp
        if rows[at + RECORD_ATTRIBUTES] != 0:
            reserved += 1
        if rows[at + KEY_SIZE] < 0:
            if unkeyed == 0:
                first_unkeyed = delta
            unkeyed += 1
    return RecordCheck(misplaced, wrong_delta, wrong_previous, last, largest, reserved, unkeyed, first_unkeyed)


@cython.cfunc
@cython.inline
@cython.nogil
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


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(cython.bint)
def _has_valid_headers(data: cython.const[cython.uchar][::1], rows: cython.longlong[::1], at: cython.Py_ssize_t):
    """Return True if the header keys of the record in the row that starts at rows[at] are UTF-8 without a null
    character."""
    position: cython.Py_ssize_t = rows[at + HEADERS_START]
    stop: cython.Py_ssize_t = rows[at + RECORD_END]
    left: cython.longlong = rows[at + HEADERS_COUNT]
    size: cython.longlong
    while left > 0:
        size, position = varint_at(data, position, stop, 32)
        if not _is_text(data, position, position + size):
            return False
        size, position = varint_at(data, position + size, stop, 32)
        if size > 0:
            position += size
        left -= 1
    return True


def invalid_header(columns: RecordColumns, row: cython.Py_ssize_t) -> int:
    """Return the index of the first record, from `row` on, with a header key that is not UTF-8 or contains a null
    character; the number of records if there is none."""
    if columns.skimmed:
        return row if columns.header_problem and row == 0 else 1
    data: cython.const[cython.uchar][::1] = columns.data
    rows: cython.longlong[::1] = columns.block
    count: cython.Py_ssize_t = columns.count
    while row < count and _has_valid_headers(data, rows, row * RECORD_WIDTH):
        row += 1
    return row


def walk_headers(
    columns: RecordColumns, position: cython.Py_ssize_t, end: cython.Py_ssize_t, left: cython.longlong
) -> tuple[int, int, int]:
    """Walk up to `left` headers that are completely within columns.data[position:end]. Return the position after the
    last, how many are left, and the position of the first whose key is not valid text (-1: none). Also stops before an
    invalid header."""
    data: cython.const[cython.uchar][::1] = columns.data
    invalid: cython.Py_ssize_t = -1
    begun: cython.Py_ssize_t
    key: cython.Py_ssize_t
    size: cython.longlong
    while left > 0:
        begun = position
        size, key = varint_at(data, position, end, 32)
        if key < 0 or size < 0 or size > end - key:
            break
        position = key + size
        if invalid < 0 and not _is_text(data, key, position):
            invalid = begun
        size, position = varint_at(data, position, end, 32)
        if position < 0 or size < -1 or size > end - position:
            position = begun
            break
        if size > 0:
            position += size
        left -= 1
    else:
        begun = position
    return begun, left, invalid
