# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Columns of records and batches -> the buffers of Arrow arrays: numbers, and concatenated bytes.

Creates no object per record or batch. Compiled if there is a C compiler; otherwise runs as plain Python."""

from __future__ import annotations

from array import array

from kdump.core.header_columns import HeaderColumns
from kdump.core.record_columns import RecordColumns, decode, headers
from kdump.format.errors import DecodeError

try:
    import cython
except ImportError:
    from kdump import nocython as cython

if cython.compiled:
    from cython.cimports.kdump.core.column_numbers import *
    from cython.cimports.kdump.core.integers import minus, plus, sequence_at, uint32_at, varint_at
    from cython.cimports.libc.string import memcpy
else:
    from kdump.core.column_numbers import *
    from kdump.core.integers import minus, plus, sequence_at, uint32_at, varint_at


class ArrowStrings:
    """Byte strings, concatenated in `data`. `ends` contains a 0 and then the end of each string in `data`, `there` one
    byte per string, 0 for null."""

    __slots__ = ("data", "ends", "there")

    def __init__(self) -> None:
        self.data = bytearray()
        self.ends = array("i", [0])
        self.there = bytearray()

    def __len__(self) -> int:
        return len(self.there)

    def add(self, value: bytes | None) -> None:
        """Append one string, or null."""
        if value is not None:
            self.data += value
        self.ends.append(len(self.data))
        self.there.append(value is not None)


class ArrowLists:
    """Record headers: all their keys and values, and in `ends` a 0 and then the end of each record's list."""

    __slots__ = ("ends", "keys", "values")

    def __init__(self) -> None:
        self.ends = array("i", [0])
        self.keys = ArrowStrings()
        self.values = ArrowStrings()

    def add(self, headers: list[tuple[bytes, bytes | None]]) -> None:
        """Append the headers of one record."""
        for key, value in headers:
            self.keys.add(key)
            self.values.add(value)
        self.ends.append(len(self.keys))


def decode_run(
    columns: RecordColumns, heads: HeaderColumns, row: cython.Py_ssize_t, most: cython.Py_ssize_t,
    out: array[int], number: cython.Py_ssize_t,
) -> int:  # fmt: skip
    """Replace the records in the columns by those of the batches from `row` on, which `columns.data` has. Returns the
    batch that follows: it is compressed, a control batch, has another type of timestamps than the first, cannot be
    decoded, or there are `most` records. `out` gets the number of the batch of each record, counted from `number`."""
    block: cython.longlong[::1] = heads.block
    at: cython.Py_ssize_t
    begun: cython.Py_ssize_t
    count: cython.longlong
    type_of_times: cython.longlong = 0
    columns.count = 0
    while row < heads.count and columns.count < most:
        at = row * HEADER_WIDTH
        count = block[at + RECORD_COUNT]
        if block[at + ATTRIBUTES] & (CODEC | IS_CONTROL) or count < 0:
            break
        begun = columns.count
        if not begun:
            type_of_times = block[at + ATTRIBUTES] & LOG_APPEND_TIME
        elif block[at + ATTRIBUTES] & LOG_APPEND_TIME != type_of_times:
            break
        try:
            is_valid = decode(columns, block[at + BATCH_START] + HEADER_SIZE, block[at + BATCH_END], count, True)
            is_valid = is_valid == block[at + BATCH_END] and columns.count - begun == count
        except DecodeError:
            is_valid = False
        if not is_valid:
            columns.count = begun
            break
        out.extend(array("i", [number]) * count)
        number += 1
        row += 1
    return row


def numbers(out: array[int], columns: RecordColumns, column: cython.Py_ssize_t) -> None:
    """Append the numbers in `column`, one per record."""
    rows: cython.longlong[::1] = columns.block
    count: cython.Py_ssize_t = columns.count
    at: cython.Py_ssize_t = len(out)
    row: cython.Py_ssize_t
    if count == 0:
        return
    out.frombytes(bytes(8 * count))
    made: cython.longlong[::1] = out
    for row in range(count):
        made[at + row] = rows[row * RECORD_WIDTH + column]


def numbers_from(
    out: array[int], columns: RecordColumns, column: cython.Py_ssize_t, bases: array[int], batch_of: array[int],
    are_sequences: cython.bint = False,
) -> None:  # fmt: skip
    """Append the numbers in `column`, one per record, plus the base of its batch; the sums wrap at 64 bits, as in Java,
    or as format.batch_header.sequence computes sequence numbers. `batch_of`: the batch of each record, of which those
    in the columns are the last."""
    rows: cython.longlong[::1] = columns.block
    base: cython.longlong[::1] = bases
    number: cython.int[::1] = batch_of
    count: cython.Py_ssize_t = columns.count
    at: cython.Py_ssize_t = len(out)
    first: cython.Py_ssize_t = len(batch_of) - columns.count
    delta: cython.longlong
    row: cython.Py_ssize_t
    if count == 0:
        return
    out.frombytes(bytes(8 * count))
    made: cython.longlong[::1] = out
    for row in range(count):
        delta = rows[row * RECORD_WIDTH + column]
        if are_sequences:
            made[at + row] = sequence_at(base[number[first + row]], delta)
        else:
            made[at + row] = plus(base[number[first + row]], delta)


def pieces(out: ArrowStrings, columns: RecordColumns, column: cython.Py_ssize_t) -> None:
    """Append one string per record: `column` contains its start, the next column its size in bytes, -1 for null."""
    data: cython.const[cython.uchar][::1] = columns.data
    rows: cython.longlong[::1] = columns.block
    count: cython.Py_ssize_t = columns.count
    first: cython.Py_ssize_t = len(out.there)
    to: cython.Py_ssize_t = len(out.data)
    total: cython.Py_ssize_t = 0
    row: cython.Py_ssize_t
    start: cython.Py_ssize_t
    size: cython.longlong
    if count == 0:
        return
    for row in range(count):
        size = rows[row * RECORD_WIDTH + column + 1]
        if size > 0:
            total += size
    out.data.extend(bytes(total))
    out.ends.frombytes(bytes(4 * count))
    out.there.extend(bytes(count))
    there: cython.uchar[::1] = out.there
    ends: cython.int[::1] = out.ends
    if total == 0:
        for row in range(count):
            there[first + row] = rows[row * RECORD_WIDTH + column + 1] >= 0
            ends[first + row + 1] = to
        return
    made: cython.uchar[::1] = out.data
    for row in range(count):
        size = rows[row * RECORD_WIDTH + column + 1]
        there[first + row] = size >= 0
        if size > 0:
            start = rows[row * RECORD_WIDTH + column]
            if cython.compiled:
                memcpy(cython.address(made[to]), cython.address(data[start]), size)
            else:
                made[to : to + size] = data[start : start + size]
            to += size
        ends[first + row + 1] = to


def header_lists(out: ArrowLists, columns: RecordColumns) -> None:
    """Append the headers of each record; `decode` must have checked them."""
    if not cython.compiled:
        for each in range(columns.count):
            at = each * RECORD_WIDTH
            block = columns.block
            out.add(headers(columns.data, block[at + HEADERS_START], block[at + HEADERS_COUNT], block[at + RECORD_END]))
        return
    rows: cython.longlong[::1] = columns.block
    count: cython.Py_ssize_t = columns.count
    row: cython.Py_ssize_t
    left: cython.longlong
    most: cython.Py_ssize_t = 0
    all_headers: cython.longlong = 0
    last: cython.Py_ssize_t = len(out.keys.there)
    start: cython.Py_ssize_t = len(out.ends)
    key_end: cython.Py_ssize_t = len(out.keys.data)
    value_end: cython.Py_ssize_t = len(out.values.data)
    if count == 0:
        return
    for row in range(count):
        left = rows[row * RECORD_WIDTH + HEADERS_COUNT]
        if left > 0:
            all_headers += left
            most += rows[row * RECORD_WIDTH + RECORD_END] - rows[row * RECORD_WIDTH + HEADERS_START]
    out.ends.frombytes(bytes(4 * count))
    list_ends: cython.int[::1] = out.ends
    if all_headers == 0:
        for row in range(count):
            list_ends[start + row] = last
        return
    for each_bytes in (out.keys, out.values):
        each_bytes.data.extend(bytes(most))
        each_bytes.ends.frombytes(bytes(4 * all_headers))
        each_bytes.there.extend(bytes(all_headers))
    _fill(out, columns, start, last, key_end, value_end)
    del out.keys.data[out.keys.ends[len(out.keys.ends) - 1] :]
    del out.values.data[out.values.ends[len(out.values.ends) - 1] :]


def _fill(
    out: ArrowLists,
    columns: RecordColumns,
    at: cython.Py_ssize_t,
    number: cython.Py_ssize_t,
    key_end: cython.Py_ssize_t,
    value_end: cython.Py_ssize_t,
) -> None:
    """Copy the keys and values into the space reserved for them."""
    data: cython.const[cython.uchar][::1] = columns.data
    rows: cython.longlong[::1] = columns.block
    list_ends: cython.int[::1] = out.ends
    keys: cython.uchar[::1] = out.keys.data
    values: cython.uchar[::1] = out.values.data
    key_ends: cython.int[::1] = out.keys.ends
    value_ends: cython.int[::1] = out.values.ends
    key_there: cython.uchar[::1] = out.keys.there
    value_there: cython.uchar[::1] = out.values.there
    count: cython.Py_ssize_t = columns.count
    row: cython.Py_ssize_t
    position: cython.Py_ssize_t
    end: cython.Py_ssize_t
    left: cython.longlong
    size: cython.longlong
    for row in range(count):
        left = rows[row * RECORD_WIDTH + HEADERS_COUNT]
        position = rows[row * RECORD_WIDTH + HEADERS_START]
        end = rows[row * RECORD_WIDTH + RECORD_END]
        while left > 0:
            size, position = varint_at(data, position, end, 32)
            if size > 0:
                if cython.compiled:
                    memcpy(cython.address(keys[key_end]), cython.address(data[position]), size)
                key_end += size
                position += size
            key_there[number] = 1
            key_ends[number + 1] = key_end
            size, position = varint_at(data, position, end, 32)
            if size > 0:
                if cython.compiled:
                    memcpy(cython.address(values[value_end]), cython.address(data[position]), size)
                value_end += size
                position += size
            value_there[number] = size >= 0
            value_ends[number + 1] = value_end
            number += 1
            left -= 1
        list_ends[at + row] = number


def batch_numbers(
    out: array[int], heads: HeaderColumns, first: cython.Py_ssize_t, stop: cython.Py_ssize_t,
    column: cython.Py_ssize_t, less: cython.Py_ssize_t = -1, more: cython.longlong = 0,
) -> None:  # fmt: skip
    """Append `column` of the batches first..stop, minus the column `less` unless that is negative, plus `more`."""
    rows: cython.longlong[::1] = heads.block
    at: cython.Py_ssize_t = len(out) - first
    row: cython.Py_ssize_t
    if first == stop:
        return
    out.frombytes(bytes(8 * (stop - first)))
    made: cython.longlong[::1] = out
    for row in range(first, stop):
        made[at + row] = plus(rows[row * HEADER_WIDTH + column], more)
        if less >= 0:
            made[at + row] = minus(made[at + row], rows[row * HEADER_WIDTH + less])


def batch_checksums(out: array[int], heads: HeaderColumns, first: cython.Py_ssize_t, stop: cython.Py_ssize_t) -> None:
    """Append the stored checksums of the batches first..stop."""
    data: cython.const[cython.uchar][::1] = heads.data
    rows: cython.longlong[::1] = heads.block
    at: cython.Py_ssize_t = len(out) - first
    row: cython.Py_ssize_t
    if first == stop:
        return
    out.frombytes(bytes(8 * (stop - first)))
    made: cython.longlong[::1] = out
    for row in range(first, stop):
        made[at + row] = uint32_at(data, rows[row * HEADER_WIDTH + BATCH_START] + CRC_AT)


def batch_last_sequences(
    out: array[int], heads: HeaderColumns, first: cython.Py_ssize_t, stop: cython.Py_ssize_t
) -> None:
    """Append the last sequence numbers of the batches first..stop, as format.batch_header.sequence computes them."""
    rows: cython.longlong[::1] = heads.block
    at: cython.Py_ssize_t = len(out) - first
    row: cython.Py_ssize_t
    delta: cython.longlong
    if first == stop:
        return
    out.frombytes(bytes(8 * (stop - first)))
    made: cython.longlong[::1] = out
    for row in range(first, stop):
        delta = minus(rows[row * HEADER_WIDTH + LAST_OFFSET], rows[row * HEADER_WIDTH + BASE_OFFSET])
        made[at + row] = sequence_at(rows[row * HEADER_WIDTH + BASE_SEQUENCE], delta)


def bits(flags: bytearray) -> bytearray:
    """Return bytes that are 0 or 1 as bits, the least significant first."""
    count: cython.Py_ssize_t = len(flags)
    row: cython.Py_ssize_t
    packed = bytearray((count + 7) // 8)
    if count == 0:
        return packed
    given: cython.uchar[::1] = flags
    made: cython.uchar[::1] = packed
    for row in range(count):
        if given[row]:
            made[row >> 3] |= 1 << (row & 7)
    return packed


def taken_numbers(values: array[int], rows: array[int]) -> array[int]:
    """Return the values with the numbers `rows`."""
    count: cython.Py_ssize_t = len(rows)
    row: cython.Py_ssize_t
    taken = array("q", bytes(8 * count))
    if count == 0:
        return taken
    made: cython.longlong[::1] = taken
    number: cython.int[::1] = rows
    given: cython.longlong[::1] = values
    for row in range(count):
        made[row] = given[number[row]]
    return taken


def taken_strings(values: ArrowStrings, rows: array[int]) -> ArrowStrings:
    """Return the strings with the numbers `rows`."""
    out = ArrowStrings()
    count: cython.Py_ssize_t = len(rows)
    row: cython.Py_ssize_t
    total: cython.Py_ssize_t = 0
    to: cython.Py_ssize_t = 0
    start: cython.Py_ssize_t
    size: cython.Py_ssize_t
    if count == 0:
        return out
    number: cython.int[::1] = rows
    given: cython.int[::1] = values.ends
    there: cython.uchar[::1] = values.there
    for row in range(count):
        total += given[number[row] + 1] - given[number[row]]
    out.data, out.there = bytearray(total), bytearray(count)
    out.ends = array("i", bytes(4 * (count + 1)))
    taken: cython.uchar[::1] = out.there
    ends: cython.int[::1] = out.ends
    data: cython.uchar[::1] = values.data or bytearray(1)
    made: cython.uchar[::1] = out.data or bytearray(1)
    for row in range(count):
        start, size = given[number[row]], given[number[row] + 1] - given[number[row]]
        if size > 0:
            if cython.compiled:
                memcpy(cython.address(made[to]), cython.address(data[start]), size)
            else:
                made[to : to + size] = data[start : start + size]
            to += size
        taken[row] = there[number[row]]
        ends[row + 1] = to
    return out


def scaled_within(
    values: array[int], there: bytearray, first: cython.longlong, last: cython.longlong, factor: cython.longlong
) -> array[int]:
    """Return the values times `factor`; clears `there` at those outside first..last, which are 0."""
    count: cython.Py_ssize_t = len(values)
    row: cython.Py_ssize_t
    out = array("q", bytes(8 * count))
    if count == 0:
        return out
    made: cython.longlong[::1] = out
    given: cython.longlong[::1] = values
    flags: cython.uchar[::1] = there
    for row in range(count):
        if first <= given[row] <= last:
            made[row] = given[row] * factor
        else:
            flags[row] = 0
    return out
