# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Reads the messages of format v0 or v1 inside a wrapper, many at a time, if nothing about them is unusual.

kdump.log.legacy_records reads all others one by one; a test checks that both agree. Compiled if there is a C compiler;
otherwise runs as plain Python."""

from __future__ import annotations

from array import array
from zlib import crc32

from kdump.core.batch_scan import crc_tables
from kdump.core.record_columns import RecordColumns

try:
    import cython
except ImportError:
    from kdump import nocython as cython

if cython.compiled:
    from cython.cimports.kdump.core.batch_scan import crc
    from cython.cimports.kdump.core.column_numbers import *
    from cython.cimports.kdump.core.integers import int32_at, int64_at, uint32_at
else:
    from kdump.core.column_numbers import *
    from kdump.core.integers import int32_at, int64_at, uint32_at

POLYNOMIAL = 0xEDB88320
"""CRC-32, as in zlib."""
_TABLES = crc_tables(POLYNOMIAL) if cython.compiled else array("I", [0])


@cython.cfunc
@cython.exceptval(check=False)
@cython.returns(cython.Py_ssize_t)
def _messages_in(data: cython.const[cython.uchar][::1], end: cython.Py_ssize_t):
    """Return the number of messages that fill data[:end], by their lengths; 0 if they do not."""
    at: cython.Py_ssize_t = 0
    count: cython.Py_ssize_t = 0
    size: cython.longlong
    while end - at >= LOG_OVERHEAD:
        size = int32_at(data, at + LENGTH_AT)
        if size < 0 or size > end - at - LOG_OVERHEAD:
            return 0
        at += LOG_OVERHEAD + size
        count += 1
    return count if at == end else 0


def read_message_set(payload: bytes, magic: cython.int) -> RecordColumns | None:
    """Return the messages that fill a wrapper's decompressed payload; None if there are none or any is unusual.

    The columns for the deltas contain each message's own timestamp (0 in v0) and offset, the column for the start of
    the headers its stored checksum. Every message has the given magic, is neither compressed nor has append time, is
    exactly filled by its key and value, and has a matching checksum."""
    data: cython.const[cython.uchar][::1] = payload
    table: cython.uint[::1] = _TABLES
    rows: cython.longlong[::1]
    end: cython.Py_ssize_t = len(payload)
    at: cython.Py_ssize_t = 0
    stop: cython.Py_ssize_t
    count: cython.Py_ssize_t = _messages_in(data, end)
    to: cython.Py_ssize_t = 0
    key: cython.Py_ssize_t = MESSAGE_V1_KEY_AT if magic else MESSAGE_V0_KEY_AT
    value: cython.Py_ssize_t
    size: cython.longlong
    stored: cython.longlong
    if not count:
        return None
    columns = RecordColumns(payload)
    columns.block = array("q", bytes(8 * RECORD_WIDTH * count))
    columns.count = count
    rows = columns.block
    while at < end:
        stop = at + LOG_OVERHEAD + int32_at(data, at + LENGTH_AT)
        if stop - at < key + 4 or data[at + MAGIC_AT] != magic or data[at + MESSAGE_ATTRIBUTES_AT] & 15:
            return None
        size = int32_at(data, at + key - 4)
        if size < -1 or size > stop - at - key - 4:
            return None
        value = at + key + (size if size > 0 else 0) + 4
        rows[to + RECORD_START] = at
        rows[to + RECORD_END] = stop
        rows[to + RECORD_ATTRIBUTES] = (
            data[at + MESSAGE_ATTRIBUTES_AT] - 256
            if data[at + MESSAGE_ATTRIBUTES_AT] > 127
            else data[at + MESSAGE_ATTRIBUTES_AT]
        )
        rows[to + TIMESTAMP_DELTA] = int64_at(data, at + MESSAGE_TIMESTAMP_AT) if magic else 0
        rows[to + OFFSET_DELTA] = int64_at(data, at)
        rows[to + KEY_START] = at + key
        rows[to + KEY_SIZE] = size
        rows[to + VALUE_START] = value
        size = int32_at(data, value - 4)
        if size < -1 or value + (size if size > 0 else 0) != stop:
            return None
        rows[to + VALUE_SIZE] = size
        stored = uint32_at(data, at + MESSAGE_CRC_AT)
        if cython.compiled:
            if crc(cython.address(data[0]), at + MAGIC_AT, stop, cython.address(table[0])) != stored:
                return None
        elif crc32(payload[at + MAGIC_AT : stop]) != stored:
            return None
        rows[to + HEADERS_START] = stored
        to += RECORD_WIDTH
        at = stop
    return columns
