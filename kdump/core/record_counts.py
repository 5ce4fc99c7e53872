# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Counts what stats needs of each record, in one pass over the columns.

Compiled if a compiler is available, and otherwise run as Python."""

from __future__ import annotations

from array import array
from collections.abc import Hashable
from mmap import mmap
from typing import Protocol

from kdump.core.record_columns import RecordColumns

try:
    import cython
except ImportError:
    from kdump import nocython as cython

if cython.compiled:
    from cython.cimports.kdump.core.column_numbers import *
    from cython.cimports.kdump.core.integers import size_class
else:
    from kdump.core.column_numbers import *
    from kdump.core.integers import size_class

IMPOSSIBLE = 1 << 61
"""Ms: a timestamp or delta beyond this is damaged, and the sum of two could exceed 64 bits."""
LATE = (1_000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000)
"""Upper bounds of the classes of lateness, in ms, inclusive. Class 0 contains the records that are not late."""
LONGEST = 128
"""Maximum size in bytes of a key that is kept completely."""
NEAR = 1 << 16
"""Number of keys whose slots are remembered by a hash."""


class TimeCounts(Protocol):
    """Counts timestamps in buckets of `width` ms (log.histograms.Histogram); `weighs`: with the bytes of records."""

    width: int
    weighs: bool

    def add(self, timestamp: int, count: int, *size: int) -> None: ...


class KeyCounts(Protocol):
    """Counts keys in slots (frequent_items.SpaceSaving). The slot of a key that was counted lately is also
    found by a hash of it: `near` has that slot + 1, and `texts` and `sizes` the key of each slot."""

    counts: array[int]
    weights: array[int]
    slots: dict[Hashable, int]
    near: array[int]
    texts: bytearray | mmap
    sizes: array[int]
    total: int

    def new(self, item: Hashable) -> int: ...

    def item(self, key: bytes, size: int, digest: bytes) -> Hashable: ...


def new_counts() -> array[int]:
    """Return sums of no records."""
    sums = array("q", bytes(8 * SUMS_WIDTH))
    for extreme in range(LONGEST_KEY, LATEST + 1):
        sums[extreme] = -1
    return sums


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _hash(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t):
    """Return the FNV-1a hash, 32 bits. If keys collide, the table of slots is used, as for keys that are not found."""
    value: cython.uint = 0x811C9DC5
    while at < end:
        value = (value ^ data[at]) * 0x01000193
        if not cython.compiled:
            value &= 0xFFFFFFFF
        at += 1
    return value ^ value >> 16


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.returns(cython.bint)
def _same(
    data: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    other: cython.uchar[::1],
    there: cython.Py_ssize_t,
    size: cython.longlong,
):
    """Return True if `size` bytes are the same in both places."""
    i: cython.Py_ssize_t = 0
    while i < size and data[at + i] == other[there + i]:
        i += 1
    return i == size


def count_records(
    columns: RecordColumns,
    bases: array[int],
    ends: array[int],
    timed: bool,
    sums: array[int],
    key_sizes: array[int],
    value_sizes: array[int],
    late: array[int],
    moments: TimeCounts,
    keys: KeyCounts,
) -> None:
    """Add the records in the columns to the sums, the size and lateness classes, the time histogram and the key counts.

    The records are of one batch or several: rows up to ends[0] (exclusive) belong to the first, whose timestamp deltas
    are relative to bases[0], and so on. If not `timed`, timestamps are ignored."""
    _count_sizes(columns, sums, key_sizes, value_sizes)
    _count_keys(columns, keys)
    if timed:
        _count_times(columns, bases, ends, sums, late, moments)


@cython.cfunc
def _count_sizes(
    columns: RecordColumns, sums_of: array[int], key_sizes_of: array[int], value_sizes_of: array[int]
) -> None:
    rows: cython.longlong[::1] = columns.block
    sums: cython.longlong[::1] = sums_of
    key_sizes: cython.longlong[::1] = key_sizes_of
    value_sizes: cython.longlong[::1] = value_sizes_of
    row: cython.longlong
    at: cython.Py_ssize_t
    sums[RECORDS] += columns.count
    for row in range(columns.count):
        at = row * RECORD_WIDTH
        sums[RECORD_BYTES] += rows[at + RECORD_END] - rows[at + RECORD_START]
        sums[HEADERS] += rows[at + HEADERS_COUNT]
        sums[HEADER_BYTES] += rows[at + RECORD_END] - rows[at + HEADERS_START]
        _count_size(rows[at + KEY_SIZE], row, sums, key_sizes, NULL_KEYS, LONGEST_KEY)
        _count_size(rows[at + VALUE_SIZE], row, sums, value_sizes, NULL_VALUES, LONGEST_VALUE)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _count_size(
    size: cython.longlong, row: cython.longlong, sums: cython.longlong[::1], classes: cython.longlong[::1],
    nulls: cython.Py_ssize_t, longest: cython.Py_ssize_t,
) -> cython.void:  # fmt: skip
    """Count the size of a key or value (-1: null) in its sums, the first of which is sums[nulls], and in its class."""
    if size < 0:
        sums[nulls] += 1
        return
    sums[nulls + 1] += size
    classes[size_class(size)] += 1
    if size > sums[longest]:
        sums[longest] = size
        sums[longest + EXTREME_ROW] = row


@cython.cfunc
def _count_keys(columns: RecordColumns, keys: KeyCounts) -> None:
    kept: cython.Py_ssize_t = LONGEST
    mask: cython.Py_ssize_t = NEAR - 1
    data: bytes = columns.data if isinstance(columns.data, bytes) else bytes(columns.data)
    view: cython.const[cython.uchar][::1] = data
    rows: cython.longlong[::1] = columns.block
    counts: cython.longlong[::1] = keys.counts
    weights: cython.longlong[::1] = keys.weights
    slots: dict = keys.slots  # type: ignore[type-arg]
    near: cython.longlong[::1] = keys.near
    sizes: cython.longlong[::1] = keys.sizes
    texts: cython.uchar[::1] = keys.texts
    row: cython.longlong
    at: cython.Py_ssize_t
    start: cython.Py_ssize_t
    size: cython.longlong
    place: cython.Py_ssize_t
    slot: cython.Py_ssize_t
    keyed: cython.longlong = 0
    for row in range(columns.count):
        at = row * RECORD_WIDTH
        size = rows[at + KEY_SIZE]
        if size < 0:
            continue
        keyed += 1
        start = rows[at + KEY_START]
        place = _hash(view, start, start + size) & mask if size <= kept else 0
        slot = near[place] - 1 if size <= kept else -1
        if slot < 0 or sizes[slot] != size or not _same(view, start, texts, slot * kept, size):
            key = data[start : start + size]
            item = key if size <= kept else keys.item(key, size, columns.digest)
            found = slots.get(item)
            slot = keys.new(item) if found is None else found
            if size <= kept:
                near[place] = slot + 1
                sizes[slot] = size
                keys.texts[slot * kept : slot * kept + size] = key
        counts[slot] += 1
        weights[slot] += rows[at + RECORD_END] - rows[at + RECORD_START]
    keys.total += keyed


@cython.cfunc
def _count_times(
    columns: RecordColumns, bases_of: array[int], ends_of: array[int], sums_of: array[int], late_of: array[int],
    moments: TimeCounts,
) -> None:  # fmt: skip
    far: cython.longlong = IMPOSSIBLE
    rows: cython.longlong[::1] = columns.block
    sums: cython.longlong[::1] = sums_of
    late: cython.longlong[::1] = late_of
    bases: cython.longlong[::1] = bases_of
    ends: cython.longlong[::1] = ends_of
    batch: cython.Py_ssize_t = 0
    row: cython.longlong
    at: cython.Py_ssize_t
    base: cython.longlong
    delta: cython.longlong
    stamp: cython.longlong
    # Timestamps of one bucket are counted together: low..high-1 belong to it.
    low: cython.longlong = 0
    high: cython.longlong = 0
    together: cython.longlong = 0
    heavy: cython.longlong = 0
    weighs: cython.bint = moments.weighs
    width: cython.longlong = moments.width
    for row in range(columns.count):
        at = row * RECORD_WIDTH
        while row >= ends[batch]:
            batch += 1
        base, delta = bases[batch], rows[at + TIMESTAMP_DELTA]
        if not -far < base < far or not -far < delta < far or base + delta < 0:
            sums[UNTIMED] += 1
            continue
        stamp = base + delta
        if not low <= stamp < high:
            if together:
                moments.add(low, together, heavy) if weighs else moments.add(low, together)
                width = moments.width
            low = stamp // width * width
            high = low + width
            together = heavy = 0
        together += 1
        heavy += rows[at + RECORD_END] - rows[at + RECORD_START]
        _count_lateness(stamp, row, sums, late)
    if together:
        moments.add(low, together, heavy) if weighs else moments.add(low, together)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _count_lateness(
    stamp: cython.longlong, row: cython.longlong, sums: cython.longlong[::1], late: cython.longlong[::1]
) -> cython.void:
    """Count the timestamp (epoch ms) of a record: among the extremes, and how much older it is than an earlier one."""
    lateness: cython.longlong
    number: cython.Py_ssize_t = 1
    if sums[OLDEST] < 0 or stamp < sums[OLDEST]:
        sums[OLDEST] = stamp
        sums[OLDEST + EXTREME_ROW] = row
    if stamp >= sums[NEWEST]:
        if stamp > sums[NEWEST]:
            sums[NEWEST] = stamp
            sums[NEWEST + EXTREME_ROW] = row
        late[0] += 1
        return
    lateness = sums[NEWEST] - stamp
    for bound in LATE:
        if lateness <= bound:
            break
        number += 1
    late[number] += 1
    sums[LATE_RECORDS] += 1
    if lateness > sums[LATEST]:
        sums[LATEST] = lateness
        sums[LATEST + EXTREME_ROW] = row
