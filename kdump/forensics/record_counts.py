# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Counts what stats needs of each record, in one pass over the columns.

Compiled if a compiler is available, and otherwise run as Python.
"""

from __future__ import annotations

from array import array

from kdump.forensics.distribution import LATE, TimeHistogram
from kdump.forensics.space_saving import LONGEST, NEAR, SpaceSaving, known_by
from kdump.format.record_columns import RecordColumns

try:
    import cython
except ImportError:
    from kdump.format import nocython as cython

(
    RECORDS,
    RECORD_BYTES,
    NULL_KEYS,
    KEY_BYTES,
    NULL_VALUES,
    VALUE_BYTES,
    HEADERS,
    HEADER_BYTES,
    UNTIMED,
    LATE_RECORDS,
) = range(10)
"""Sums: records and their bytes (including the length field); null keys and bytes of keys; the same for values; headers
and their bytes; records without a timestamp, or with an impossible one; records that are older than an earlier one."""
LONGEST_KEY, LONGEST_VALUE, OLDEST, NEWEST, LATEST = range(10, 15)
"""Extremes, -1 for none: of sizes, of timestamps (epoch ms), and of ms by which a record is older than an earlier
one."""
EXTREMES = (LONGEST_KEY, LONGEST_VALUE, OLDEST, NEWEST, LATEST)
AT = 5
"""sums[extreme + AT] is the row of the record with that extreme."""
WIDTH = 20
IMPOSSIBLE = 1 << 61
"""Ms: a timestamp or delta beyond this is damaged, and the sum of two could exceed 64 bits."""
assert len(LATE) == 6


def new_counts() -> array[int]:
    """Return sums of no records."""
    sums = array("q", bytes(8 * WIDTH))
    for extreme in EXTREMES:
        sums[extreme] = -1
    return sums


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _class(size: cython.longlong):
    """Return what spread.class_of returns."""
    number: cython.Py_ssize_t = 0
    while size > 0 and number < 33:
        size >>= 1
        number += 1
    return number


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
    moments: TimeHistogram,
    keys: SpaceSaving,
) -> None:
    """Add the records in the columns to the sums, the size and lateness classes, the time histogram and the key counts.

    The records are of one batch or several: rows up to ends_of[0] (exclusive) belong to the first, whose timestamp
    deltas are relative to bases_of[0], and so on. If not `timed`, timestamps are ignored.
    """
    # As C numbers: each use of a module-level name would create an object.
    records: cython.Py_ssize_t = RECORDS
    record_bytes: cython.Py_ssize_t = RECORD_BYTES
    null_keys: cython.Py_ssize_t = NULL_KEYS
    key_bytes: cython.Py_ssize_t = KEY_BYTES
    null_values: cython.Py_ssize_t = NULL_VALUES
    value_bytes: cython.Py_ssize_t = VALUE_BYTES
    headers: cython.Py_ssize_t = HEADERS
    header_bytes: cython.Py_ssize_t = HEADER_BYTES
    untimed: cython.Py_ssize_t = UNTIMED
    late_records: cython.Py_ssize_t = LATE_RECORDS
    longest_key: cython.Py_ssize_t = LONGEST_KEY
    longest_value: cython.Py_ssize_t = LONGEST_VALUE
    oldest: cython.Py_ssize_t = OLDEST
    newest: cython.Py_ssize_t = NEWEST
    latest: cython.Py_ssize_t = LATEST
    at_row: cython.Py_ssize_t = AT
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
    behind: cython.longlong
    # Timestamps of one bucket are counted together: low..high-1 belong to it.
    low: cython.longlong = 0
    high: cython.longlong = 0
    together: cython.longlong = 0
    width: cython.longlong = moments.width
    number: cython.Py_ssize_t
    keyed: cython.longlong = 0
    usable: cython.bint = timed and -far < base < far
    for at in range(0, columns.count * 11, 11):
        row = at // 11
        if row >= ends[batch]:
            while row >= ends[batch]:
                batch += 1
            base = bases[batch]
            usable = timed and -far < base < far
        size = rows[at + 1] - rows[at]
        sums[records] += 1
        sums[record_bytes] += size
        sums[headers] += rows[at + 10]
        sums[header_bytes] += rows[at + 1] - rows[at + 9]
        value_size = rows[at + 8]
        if value_size < 0:
            sums[null_values] += 1
        else:
            sums[value_bytes] += value_size
            value_sizes[_class(value_size)] += 1
            if value_size > sums[longest_value]:
                sums[longest_value] = value_size
                sums[longest_value + at_row] = row
        key_size = rows[at + 6]
        if key_size < 0:
            sums[null_keys] += 1
        else:
            sums[key_bytes] += key_size
            key_sizes[_class(key_size)] += 1
            if key_size > sums[longest_key]:
                sums[longest_key] = key_size
                sums[longest_key + at_row] = row
            keyed += 1
            start = rows[at + 5]
            place = _hash(view, start, start + key_size) & mask if key_size <= kept else 0
            slot = near[place] - 1 if key_size <= kept else -1
            if slot < 0 or sizes[slot] != key_size or not _same(view, start, texts, slot * kept, key_size):
                key = data[start : start + key_size]
                item = key if key_size <= kept else known_by(key, key_size, columns.digest)
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
        delta = rows[at + 3]
        if not usable or not -far < delta < far or base + delta < 0:
            sums[untimed] += 1
            continue
        stamp = base + delta
        if not low <= stamp < high:
            if together:
                moments.add(low, together)
                width = moments.width
            low = stamp // width * width
            high = low + width
            together = 0
        together += 1
        if sums[oldest] < 0 or stamp < sums[oldest]:
            sums[oldest] = stamp
            sums[oldest + at_row] = row
        if stamp >= sums[newest]:
            if stamp > sums[newest]:
                sums[newest] = stamp
                sums[newest + at_row] = row
            late[0] += 1
            continue
        behind = sums[newest] - stamp
        number = 1
        for bound in LATE:
            if behind <= bound:
                break
            number += 1
        late[number] += 1
        sums[late_records] += 1
        if behind > sums[latest]:
            sums[latest] = behind
            sums[latest + at_row] = row
    if together:
        moments.add(low, together)
    keys.total += keyed
