# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Index entries compared with the headers of valid v2 batches, many at a time.

The functions count entries in which there is nothing to report, and stop at the first that needs a closer look.
`numbers` has two numbers per entry. In ranges first..stop, `stop` is exclusive. Compiled if there is a C compiler;
otherwise runs as plain Python."""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:
    from kdump import nocython as cython

if cython.compiled:
    from cython.cimports.kdump.core.column_numbers import *
else:
    from kdump.core.column_numbers import BASE_OFFSET, BATCH_START, HEADER_WIDTH, LAST_OFFSET, MAX_TIMESTAMP

from kdump.core.header_columns import HeaderColumns


def matching_positions(
    heads: HeaderColumns, first: cython.Py_ssize_t, stop: cython.Py_ssize_t, ended: cython.longlong,
    numbers: array[int], entry: cython.Py_ssize_t,
) -> int:  # fmt: skip
    """Return the number of entries (offset, position in the file) after `entry` that are each above the one before,
    with the position of one of the batches, and the last offset of that or of one after it, before the next entry's;
    no earlier one reaches the offset. `ended`: highest offset of the batches before `first`."""
    rows: cython.longlong[::1] = heads.block
    pairs: cython.longlong[::1] = numbers
    count: cython.Py_ssize_t = len(numbers) // 2
    shift: cython.longlong = heads.shift
    row: cython.Py_ssize_t = first
    at: cython.Py_ssize_t
    ahead: cython.Py_ssize_t
    for at in range(entry + 1, count):
        if pairs[2 * at] <= pairs[2 * at - 2] or pairs[2 * at + 1] <= pairs[2 * at - 1]:
            return at - entry - 1
        while row < stop and rows[row * HEADER_WIDTH + BATCH_START] < pairs[2 * at + 1] - shift:
            ended = max(ended, rows[row * HEADER_WIDTH + LAST_OFFSET])
            row += 1
        if row == stop or rows[row * HEADER_WIDTH + BATCH_START] != pairs[2 * at + 1] - shift:
            return at - entry - 1
        if ended >= pairs[2 * at]:
            return at - entry - 1
        ahead = row
        while ahead < stop and rows[ahead * HEADER_WIDTH + LAST_OFFSET] < pairs[2 * at]:
            ahead += 1
        if ahead == stop or rows[ahead * HEADER_WIDTH + LAST_OFFSET] != pairs[2 * at]:
            return at - entry - 1
        if ahead > row and (at + 1 == count or rows[ahead * HEADER_WIDTH + BATCH_START] >= pairs[2 * at + 3] - shift):
            return at - entry - 1
    return max(0, count - entry - 1)


def matching_timestamps(
    heads: HeaderColumns, first: cython.Py_ssize_t, stop: cython.Py_ssize_t, newest: cython.longlong,
    numbers: array[int], entry: cython.Py_ssize_t,
) -> tuple[int, int, int]:  # fmt: skip
    """Return the number of entries (timestamp, offset) after `entry` that are each above the one before, with the
    maxTimestamp of the batch that contains the offset, which no earlier batch reaches. Also returns the batch that the
    last of them is about, `first` if there is none, and the largest maxTimestamp of those before it. `newest`: that of
    the batches before `first`."""
    rows: cython.longlong[::1] = heads.block
    pairs: cython.longlong[::1] = numbers
    count: cython.Py_ssize_t = len(numbers) // 2
    row: cython.Py_ssize_t = first
    best: cython.longlong = newest
    at: cython.Py_ssize_t
    found: cython.Py_ssize_t = 0
    next_row: cython.Py_ssize_t = first
    for at in range(entry + 1, count):
        if pairs[2 * at] <= pairs[2 * at - 2] or pairs[2 * at + 1] < pairs[2 * at - 1]:
            break
        while next_row < stop and rows[next_row * HEADER_WIDTH + LAST_OFFSET] < pairs[2 * at + 1]:
            best = max(best, rows[next_row * HEADER_WIDTH + MAX_TIMESTAMP])
            next_row += 1
        if next_row == stop or rows[next_row * HEADER_WIDTH + BASE_OFFSET] > pairs[2 * at + 1]:
            break
        if rows[next_row * HEADER_WIDTH + MAX_TIMESTAMP] != pairs[2 * at] or best >= pairs[2 * at]:
            break
        row, newest = next_row, best
        found += 1
    return found, row, newest
