# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Reads the messages of format v0 or v1 inside a wrapper, many at a time, if nothing about them is unusual.

kdump.log.legacy_records reads all others one by one; a test checks that both agree. Compiled if there is a C compiler;
otherwise runs as plain Python.
"""

from __future__ import annotations

from array import array
from zlib import crc32

from kdump.format.message import MESSAGE_V0, MESSAGE_V1
from kdump.format.record_columns import WIDTH, RecordColumns

try:
    import cython
except ImportError:
    from kdump.format import nocython as cython

from kdump.format.batch_runs import crc_tables

if cython.compiled:
    from cython.cimports.kdump.format.batch_runs import crc, int32, int64
else:
    from kdump.format.batch_runs import int32, int64

POLYNOMIAL = 0xEDB88320
"""CRC-32, as in zlib."""
assert (MESSAGE_V0.size, MESSAGE_V1.size, WIDTH) == (22, 30, 11)
_TABLES = crc_tables(POLYNOMIAL) if cython.compiled else array("I", [0])


def read_message_set(payload: bytes, magic: cython.int) -> RecordColumns | None:
    """Return the messages that fill a wrapper's decompressed payload; None if there are none or any is unusual.

    The columns for the deltas contain each message's own timestamp (0 in v0) and offset, the column for the start of
    the headers its stored checksum. Every message has the given magic, is neither compressed nor has append time, is
    exactly filled by its key and value, and has a matching checksum.
    """
    data: cython.const[cython.uchar][::1] = payload
    table: cython.uint[::1] = _TABLES
    rows: cython.longlong[::1]
    end: cython.Py_ssize_t = len(payload)
    at: cython.Py_ssize_t = 0
    stop: cython.Py_ssize_t
    count: cython.Py_ssize_t = 0
    to: cython.Py_ssize_t = 0
    key: cython.Py_ssize_t = 30 if magic else 22
    value: cython.Py_ssize_t
    size: cython.longlong
    stored: cython.longlong
    while end - at >= 12:
        size = int32(data, at + 8)
        if size < 0 or size > end - at - 12:
            return None
        at += 12 + size
        count += 1
    if at != end or not count:
        return None
    columns = RecordColumns(payload)
    columns.block = array("q", bytes(8 * 11 * count))
    columns.count = count
    rows = columns.block
    at = 0
    while at < end:
        stop = at + 12 + int32(data, at + 8)
        if stop - at < key + 4 or data[at + 16] != magic or data[at + 17] & 15:
            return None
        size = int32(data, at + key - 4)
        if size < -1 or size > stop - at - key - 4:
            return None
        value = at + key + (size if size > 0 else 0) + 4
        rows[to] = at
        rows[to + 1] = stop
        rows[to + 2] = data[at + 17] - 256 if data[at + 17] > 127 else data[at + 17]
        rows[to + 3] = int64(data, at + 18) if magic else 0
        rows[to + 4] = int64(data, at)
        rows[to + 5] = at + key
        rows[to + 6] = size
        rows[to + 7] = value
        size = int32(data, value - 4)
        if size < -1 or value + (size if size > 0 else 0) != stop:
            return None
        rows[to + 8] = size
        stored = int32(data, at + 12) & 0xFFFFFFFF
        if cython.compiled:
            if crc(data, at + 16, stop, table) != stored:
                return None
        elif crc32(payload[at + 16 : stop]) != stored:
            return None
        rows[to + 9] = stored
        to += 11
        at = stop
    return columns
