# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Records as a producer takes them: made from columns, and the bytes of which they are compared.

Compiled if a compiler is available, and otherwise run as Python."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from kdump.core.record_columns import RecordColumns, headers

try:
    import cython
except ImportError:
    from kdump import nocython as cython

if cython.compiled:
    from cython.cimports.kdump.core.column_numbers import *
    from cython.cimports.kdump.core.integers import plus
else:
    from kdump.core.column_numbers import *
    from kdump.core.integers import plus

COMPILED: bool = cython.compiled
Parts = tuple[int, int | None, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
"""Offset; timestamp in epoch ms, None if there is none; key, value and headers."""


def records_of(
    columns: RecordColumns, base_offset: cython.longlong, base_timestamp: cython.longlong, appended: int | None
) -> list[Parts]:
    """Return the records in the columns, which must not be skimmed, with offsets and timestamps as Java longs;
    `appended`: the timestamp of all of them. Raises UnicodeDecodeError for a header key that is not text."""
    rows: cython.longlong[::1] = columns.block
    data = bytes(columns.data)
    made: list[Any] = []
    number: cython.Py_ssize_t
    at: cython.Py_ssize_t
    start: cython.Py_ssize_t
    size: cython.Py_ssize_t
    time: cython.longlong
    for number in range(columns.count):
        at = number * RECORD_WIDTH
        time = plus(base_timestamp, rows[at + TIMESTAMP_DELTA]) if appended is None else appended
        start, size = rows[at + KEY_START], rows[at + KEY_SIZE]
        key = None if size < 0 else data[start : start + size]
        start, size = rows[at + VALUE_START], rows[at + VALUE_SIZE]
        value = None if size < 0 else data[start : start + size]
        named: list[Any] = []
        if rows[at + HEADERS_COUNT]:
            pairs = headers(data, rows[at + HEADERS_START], rows[at + HEADERS_COUNT], rows[at + RECORD_END])
            named = [(name.decode(), content) for name, content in pairs]
        made.append((plus(base_offset, rows[at + OFFSET_DELTA]), time if time > 0 else None, key, value, named))
    return made


def add_records(records: Sequence[Parts], sums: array[int]) -> bytes:
    """Add the records to the sums, and return bytes that are the same for equal records only, wherever they are."""
    counts: cython.longlong[::1] = sums
    joined: list[bytes] = []
    size: cython.longlong
    time: cython.longlong
    for _, stated, key, value, named in records:
        counts[PLAIN_RECORDS] += 1
        time = -1 if stated is None else stated
        if time < 0:
            counts[NO_TIME] += 1
        else:
            if time > counts[LAST_TIME]:
                counts[LAST_TIME] = time
            if time < counts[FIRST_TIME] or not counts[FIRST_TIME]:
                counts[FIRST_TIME] = time
        size = 0
        key_size = value_size = -1
        if key is None:
            counts[NO_KEYS] += 1
        else:
            key_size = len(key)
            size += key_size
            counts[UNFRAMED_KEYS] += key_size < 5 or key[0] != 0
        if value is not None:
            value_size = len(value)
            size += value_size
            counts[UNFRAMED_VALUES] += value_size < 5 or value[0] != 0
        joined.append(b"%d;%d:%d;" % (time, key_size, value_size))
        if key:
            joined.append(key)
        if value:
            joined.append(value)
        for name, content in named:
            encoded = name.encode()
            content_size = -1 if content is None else len(content)
            size += len(name) + max(0, content_size)
            joined.append(b";%d:%d:%b%b" % (len(encoded), content_size, encoded, content or b""))
        counts[PLAIN_BYTES] += size
        if size > counts[LARGEST_RECORD]:
            counts[LARGEST_RECORD] = size
    return b"".join(joined)
