# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Headers of many batches -> the buffers of Arrow arrays, and totals. In ranges first..stop, `stop` is exclusive.

Creates no object per batch. Compiled if there is a C compiler; otherwise runs as plain Python.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from kdump.format.batch import BATCH_HEADER, COMPRESSION
from kdump.format.batch import sequence as sequence_of
from kdump.format.header_columns import WIDTH, HeaderColumns

try:
    import cython
except ImportError:
    from kdump.format import nocython as cython

if cython.compiled:
    from cython.cimports.kdump.format.numbers import minus, plus
else:
    from kdump.format.numbers import minus, plus

assert (WIDTH, BATCH_HEADER.positions["crc"], COMPRESSION.mask) == (12, 17, 7)


def numbers(
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
        made[at + row] = plus(rows[row * 12 + column], more)
        if less >= 0:
            made[at + row] = minus(made[at + row], rows[row * 12 + less])


def checksums(out: array[int], heads: HeaderColumns, first: cython.Py_ssize_t, stop: cython.Py_ssize_t) -> None:
    """Append the stored checksums of the batches first..stop."""
    data: cython.const[cython.uchar][::1] = heads.data
    rows: cython.longlong[::1] = heads.block
    at: cython.Py_ssize_t = len(out) - first
    row: cython.Py_ssize_t
    place: cython.Py_ssize_t
    if first == stop:
        return
    out.frombytes(bytes(8 * (stop - first)))
    made: cython.longlong[::1] = out
    for row in range(first, stop):
        place = rows[row * 12] + 17
        made[at + row] = (
            cython.cast(cython.longlong, data[place]) << 24
            | cython.cast(cython.longlong, data[place + 1]) << 16
            | cython.cast(cython.longlong, data[place + 2]) << 8
            | data[place + 3]
        )


def last_sequences(out: array[int], heads: HeaderColumns, first: cython.Py_ssize_t, stop: cython.Py_ssize_t) -> None:
    """Append the last sequence numbers of the batches first..stop, as format.batch.sequence computes them."""
    rows: cython.longlong[::1] = heads.block
    at: cython.Py_ssize_t = len(out) - first
    row: cython.Py_ssize_t
    base: cython.longlong
    delta: cython.longlong
    if first == stop:
        return
    out.frombytes(bytes(8 * (stop - first)))
    made: cython.longlong[::1] = out
    for row in range(first, stop):
        base = rows[row * 12 + 9]
        delta = minus(rows[row * 12 + 3], rows[row * 12 + 2])
        if not cython.compiled:
            made[at + row] = sequence_of(base, delta)
        elif base < 0:
            made[at + row] = -1
        elif base > 2147483647 - delta:
            made[at + row] = delta - (2147483647 - base) - 1
        else:
            made[at + row] = base + delta


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
        at = row * 12
        place = 3 * (rows[at + 5] & 7)
        sums[place] += 1
        if rows[at + 10] > 0:
            sums[place + 1] += rows[at + 10]
        sums[place + 2] += rows[at + 1] - rows[at]
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
        at = row * 12
        if rows[at + 6] < 0:
            if rows[at + 10] > 0:
                negative += 1
            continue
        if rows[at + 6] > newest:
            newest = rows[at + 6]
        if rows[at + 11] >= 0 and (oldest < 0 or rows[at + 11] < oldest):
            oldest = rows[at + 11]
    return BatchAges(oldest, newest, negative)
