# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Quick check of records: whether they decode and agree with the header of their batch.

Compiled if there is a C compiler; otherwise runs as plain Python.
"""

from __future__ import annotations

from kdump.format.errors import DecodeError
from kdump.format.header_columns import HeaderColumns
from kdump.format.record_columns import RecordColumns, decode, invalid_header

try:
    import cython
except ImportError:
    from kdump.format import nocython as cython

if cython.compiled:
    from cython.cimports.kdump.format.numbers import minus, plus
else:
    from kdump.format.numbers import minus, plus


def records_agree(
    heads: HeaderColumns, row: cython.Py_ssize_t, columns: RecordColumns, start: int, end: int, keyed: bool
) -> bool:
    """Return True if the records in columns.data[start:end], the payload of batch number `row`, are as its header says.

    Their number and largest timestamp match the header, their offset deltas ascend and do not exceed the last one, they
    have no attributes, and header keys are valid text; with `keyed`, no key is null. False only means that the batch
    needs a closer look.
    """
    head: cython.longlong[::1] = heads.block
    rows: cython.longlong[::1]
    place: cython.Py_ssize_t = row * 12
    count: cython.longlong = head[place + 10]
    at: cython.Py_ssize_t
    last: cython.longlong = -1
    offsets: cython.longlong = minus(head[place + 3], head[place + 2])
    latest: cython.longlong = -1
    timestamp: cython.longlong
    headers: cython.longlong = 0
    columns.count = 0
    if count == 0:
        return start == end
    try:
        if decode(columns, start, end, count, True) != end or columns.count != count:
            return False
    except DecodeError:
        return False
    rows = columns.block
    for at in range(0, count * 11, 11):
        if not last < rows[at + 4] <= offsets or rows[at + 2] != 0 or (keyed and rows[at + 6] < 0):
            return False
        last = rows[at + 4]
        timestamp = plus(head[place + 11], rows[at + 3])
        if timestamp > latest:
            latest = timestamp
        headers += rows[at + 10]
    if headers and invalid_header(columns, 0) != count:
        return False
    if head[place + 5] & 0x08:  # LogAppendTime: the records' own timestamps are not used
        return True
    return latest == head[place + 6]


def count_valid_batches(
    heads: HeaderColumns, columns: RecordColumns, first: cython.Py_ssize_t, stop: cython.Py_ssize_t, keyed: cython.bint
) -> int:
    """Return the first batch of first..stop (exclusive) that is compressed or fails records_agree, else `stop`.
    `columns` must be over the data of `heads`."""
    rows: cython.longlong[::1] = heads.block
    row: cython.Py_ssize_t
    for row in range(first, stop):
        if rows[row * 12 + 5] & 0x07:
            return row
        if not records_agree(heads, row, columns, rows[row * 12] + 61, rows[row * 12 + 1], keyed):
            return row
    return stop
