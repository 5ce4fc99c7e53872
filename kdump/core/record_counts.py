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
    bases_of: array[int],
    ends_of: array[int],
    timed: cython.bint,
    sums_of: array[int],
    key_sizes_of: array[int],
    value_sizes_of: array[int],
    late_of: array[int],
    moments: TimeCounts,
    keys: KeyCounts,
) -> None:
    """Add the records in the columns to the sums, the size and lateness classes, the time histogram and the key counts.

    The records are of one batch or several: rows up to ends_of[0] (exclusive) belong to the first, whose timestamp
    deltas are relative to bases_of[0], and so on. If not `timed`, timestamps are ignored."""
    kept: cython.Py_ssize_t = LONGEST
    mask: cython.Py_ssize_t = NEAR - 1
    far: cython.longlong = IMPOSSIBLE
    data: bytes = columns.data if isinstance(columns.data, bytes) else bytes(columns.data)
    rows: cython.longlong[::1] = columns.block
    sums: cython.longlong[::1] = sums_of
    key_sizes: cython.longlong[::1] = key_sizes_of
    value_sizes: cython.longlong[::1] = value_sizes_of
    late: cython.longlong[::1] = late_of
    bases: cython.longlong[::1] = bases_of
    ends: cython.longlong[::1] = ends_of
    batch: cython.Py_ssize_t = 0
    row: cython.longlong = 0
    base: cython.longlong = bases[0]
    counts: cython.longlong[::1] = keys.counts
    weights: cython.longlong[::1] = keys.weights
    slots: dict = keys.slots  # type: ignore[type-arg]
    near: cython.longlong[::1] = keys.near
    sizes: cython.longlong[::1] = keys.sizes
    texts: cython.uchar[::1] = keys.texts
    view: cython.const[cython.uchar][::1] = data
    place: cython.Py_ssize_t
    at: cython.Py_ssize_t
    slot: cython.Py_ssize_t
    start: cython.Py_ssize_t
    key_size: cython.longlong
    value_size: cython.longlong
    size: cython.longlong
    delta: cython.longlong
    stamp: cython.longlong
    lateness: cython.longlong
    # Timestamps of one bucket are counted together: low..high-1 belong to it.
    low: cython.longlong = 0
    high: cython.longlong = 0
    together: cython.longlong = 0
    heavy: cython.longlong = 0
    weighs: cython.bint = moments.weighs
    width: cython.longlong = moments.width
    number: cython.Py_ssize_t
    keyed: cython.longlong = 0
    usable: cython.bint = timed and -far < base < far
    for row in range(columns.count):
        at = row * RECORD_WIDTH
        if row >= ends[batch]:
            while row >= ends[batch]:
                batch += 1
            base = bases[batch]
            usable = timed and -far < base < far
        size = rows[at + RECORD_END] - rows[at + RECORD_START]
        sums[RECORDS] += 1
        sums[RECORD_BYTES] += size
        sums[HEADERS] += rows[at + HEADERS_COUNT]
        sums[HEADER_BYTES] += rows[at + RECORD_END] - rows[at + HEADERS_START]
        value_size = rows[at + VALUE_SIZE]
        if value_size < 0:
            sums[NULL_VALUES] += 1
        else:
            sums[VALUE_BYTES] += value_size
            value_sizes[size_class(value_size)] += 1
            if value_size > sums[LONGEST_VALUE]:
                sums[LONGEST_VALUE] = value_size
                sums[LONGEST_VALUE + EXTREME_ROW] = row
        key_size = rows[at + KEY_SIZE]
        if key_size < 0:
            sums[NULL_KEYS] += 1
        else:
            sums[KEY_BYTES] += key_size
            key_sizes[size_class(key_size)] += 1
            if key_size > sums[LONGEST_KEY]:
                sums[LONGEST_KEY] = key_size
                sums[LONGEST_KEY + EXTREME_ROW] = row
            keyed += 1
            start = rows[at + KEY_START]
            place = _hash(view, start, start + key_size) & mask if key_size <= kept else 0
            slot = near[place] - 1 if key_size <= kept else -1
            if slot < 0 or sizes[slot] != key_size or not _same(view, start, texts, slot * kept, key_size):
                key = data[start : start + key_size]
                item = key if key_size <= kept else keys.item(key, key_size, columns.digest)
                found = slots.get(item)
                slot = keys.new(item) if found is None else found
                if key_size <= kept:
                    near[place] = slot + 1
                    sizes[slot] = key_size
                    keys.texts[slot * kept : slot * kept + key_size] = key
            counts[slot] += 1
            weights[slot] += size
        if not timed:
            continue
        delta = rows[at + TIMESTAMP_DELTA]
        if not usable or not -far < delta < far or base + delta < 0:
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
        heavy += size
        if sums[OLDEST] < 0 or stamp < sums[OLDEST]:
            sums[OLDEST] = stamp
            sums[OLDEST + EXTREME_ROW] = row
        if stamp >= sums[NEWEST]:
            if stamp > sums[NEWEST]:
                sums[NEWEST] = stamp
                sums[NEWEST + EXTREME_ROW] = row
            late[0] += 1
            continue
        lateness = sums[NEWEST] - stamp
        number = 1
        for bound in LATE:
            if lateness <= bound:
                break
            number += 1
        late[number] += 1
        sums[LATE_RECORDS] += 1
        if lateness > sums[LATEST]:
            sums[LATEST] = lateness
            sums[LATEST + EXTREME_ROW] = row
    if together:
        moments.add(low, together, heavy) if weighs else moments.add(low, together)
    keys.total += keyed
