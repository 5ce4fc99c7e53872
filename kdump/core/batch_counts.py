# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Decodes and counts many small batches at a time for stats.

Compiled if a compiler is available, and otherwise run as Python."""

from __future__ import annotations

from array import array
from typing import NamedTuple

from kdump.core.header_columns import HeaderColumns
from kdump.core.record_columns import RecordColumns
from kdump.format.errors import DecodeError

try:
    import cython
except ImportError:
    from kdump import nocython as cython

if cython.compiled:
    from cython.cimports.kdump.core.column_numbers import *
    from cython.cimports.kdump.core.integers import size_class
    from cython.cimports.kdump.core.record_columns import decode
else:
    from kdump.core.column_numbers import *
    from kdump.core.integers import size_class
    from kdump.core.record_columns import decode


def decode_batches(
    heads: HeaderColumns,
    row: cython.Py_ssize_t,
    columns: RecordColumns,
    most: cython.longlong,
    special: cython.longlong,
    bases_of: array[int],
    ends_of: array[int],
) -> int:
    """Replace the records in the columns by those of the batches from `row` on, `most` at most. Put the base timestamp
    of each batch, and the number of records up to its end, into the arrays, whose length limits the number of batches.

    Returns the first batch that is left, for lack of room, because it has an attribute bit of `special`, or because its
    records cannot be decoded. `columns` must refer to the data of `heads`."""
    rows: cython.longlong[::1] = heads.block
    bases: cython.longlong[::1] = bases_of
    ends: cython.longlong[::1] = ends_of
    first: cython.Py_ssize_t = row
    stop: cython.Py_ssize_t = min(heads.count, row + len(bases_of))
    place: cython.Py_ssize_t
    end: cython.Py_ssize_t
    before: cython.longlong = 0
    count: cython.longlong
    columns.count = 0
    while row < stop:
        place = row * HEADER_WIDTH
        count = rows[place + RECORD_COUNT]
        end = rows[place + BATCH_END]
        if rows[place + ATTRIBUTES] & special or before + count > most:
            break
        try:
            is_whole = decode(columns, rows[place + BATCH_START] + HEADER_SIZE, end, count, True) == end
        except DecodeError:
            is_whole = False
        if not is_whole or columns.count - before != count:
            columns.count = before
            break
        before += count
        bases[row - first] = rows[place + BASE_TIMESTAMP]
        ends[row - first] = before
        row += 1
    return row


class BatchCounts(NamedTuple):
    """Sums over batches. `largest`, `fullest`: rows of the first with the most bytes and with the most records."""

    records: int
    bytes: int
    empty: int
    transactional: int
    transactional_records: int
    idempotent: int
    largest: int
    fullest: int


def count_batches(
    heads: HeaderColumns,
    first: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    records_of: array[int],
    sizes_of: array[int],
) -> BatchCounts:
    """Count the batches first..stop (`stop` excluded), and add them to the classes of record counts and of sizes in
    bytes."""
    rows: cython.longlong[::1] = heads.block
    record_classes: cython.longlong[::1] = records_of
    size_classes: cython.longlong[::1] = sizes_of
    row: cython.Py_ssize_t
    place: cython.Py_ssize_t
    size: cython.longlong
    count: cython.longlong
    records: cython.longlong = 0
    total: cython.longlong = 0
    empty: cython.longlong = 0
    transactional: cython.longlong = 0
    in_transactions: cython.longlong = 0
    idempotent: cython.longlong = 0
    most_bytes: cython.longlong = -1
    most_records: cython.longlong = -1
    largest: cython.Py_ssize_t = first
    fullest: cython.Py_ssize_t = first
    for row in range(first, stop):
        place = row * HEADER_WIDTH
        size = rows[place + BATCH_END] - rows[place + BATCH_START]
        count = rows[place + RECORD_COUNT]
        records += count
        total += size
        record_classes[size_class(count)] += 1
        size_classes[size_class(size)] += 1
        if count == 0:
            empty += 1
        if rows[place + ATTRIBUTES] & IS_TRANSACTIONAL:
            transactional += 1
            in_transactions += count
        if rows[place + PRODUCER_ID] >= 0:
            idempotent += 1
        if size > most_bytes:
            most_bytes, largest = size, row
        if count > most_records:
            most_records, fullest = count, row
    return BatchCounts(records, total, empty, transactional, in_transactions, idempotent, largest, fullest)
