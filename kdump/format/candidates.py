# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Finds where a batch, or a message of v0 or v1, could begin in arbitrary bytes, by the possible values of each field.

Misses only what no broker writes: offsets of 2^56 and above, lengths of 128 MiB and above, reserved attributes, a
negative lastOffsetDelta, and batches without records that are longer than their header. A record count that contradicts
the other fields is accepted if the producer fields are consistent. In random bytes, about one position in 2^29 passes;
the checksum decides.

Compiled if there is a C compiler. As plain Python it finds the magic with regular expressions, at a tenth of the speed.
"""

from __future__ import annotations

import re

from kdump.format.batch import BATCH_HEADER, LOG_OVERHEAD, MIN_BATCH_LENGTH
from kdump.format.message import MESSAGES, MIN_SIZES

try:
    import cython
except ImportError:
    from kdump.format import nocython as cython

LARGEST = 1 << 27
"""Batches of this many bytes or more are not searched for. Brokers accept message.max.bytes, 1 MiB by default."""
LEAST = 26
"""Bytes of the smallest message."""
MAGIC = {
    2: re.compile(rb"\x02(?=.{4}\x00.[\x00-\x7f])(?<=\x00.{7}[\x00-\x07].{7}\x02)", re.DOTALL),
    1: re.compile(
        rb"\x01(?=[\x00-\x03\x08-\x0b][\x00\xff].{7}[\x00-\x07\xff])(?<=\x00.{7}[\x00-\x07].{7}\x01)", re.DOTALL
    ),
    0: re.compile(rb"\x00(?=[\x00-\x03][\x00-\x07\xff])(?<=\x00.{7}[\x00-\x07].{7}\x00)", re.DOTALL),
}
"""Regular expressions for the magic byte and the bytes before and after it."""
ZEROS = bytes(64)
assert (BATCH_HEADER.size, MIN_BATCH_LENGTH, LOG_OVERHEAD) == (61, 49, 12)
assert [MESSAGES[magic].size for magic in (0, 1)] == [22, 30]
assert [MIN_SIZES[magic] for magic in (0, 1)] == [14, 22]


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.returns(cython.longlong)
def _int32(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t):
    value: cython.longlong = (
        cython.cast(cython.longlong, data[at]) << 24
        | cython.cast(cython.longlong, data[at + 1]) << 16
        | cython.cast(cython.longlong, data[at + 2]) << 8
        | data[at + 3]
    )
    return value - (value >> 31 << 32)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.returns(cython.bint)
def _has_producer_fields(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t):
    """Return True if producerId, producerEpoch and baseSequence of the v2 header at data[at] are all -1, or those of a
    producer (as in kdump.format.header_columns, with an ID below 2^56)."""
    if data[at + 43] == 0:
        return data[at + 51] < 128 and _int32(data, at + 53) >= -1
    return (
        _int32(data, at + 43) == -1
        and _int32(data, at + 47) == -1
        and data[at + 51] == 255
        and data[at + 52] == 255
        and _int32(data, at + 53) == -1
    )


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.returns(cython.bint)
def _could(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, size: cython.Py_ssize_t):
    """Return True if a header could begin at data[at:size], which must have at least 26 bytes."""
    magic: cython.uchar = data[at + 16]
    if magic > 2 or data[at] != 0:
        return False
    length: cython.longlong = _int32(data, at + 8)
    if length < 14 or length >= LARGEST:
        return False
    key: cython.longlong
    if magic == 2:
        if length < 49 or size - at < 61 or data[at + 21] != 0 or data[at + 22] & 7 > 4:
            return False
        delta: cython.longlong = _int32(data, at + 23)
        count: cython.longlong = _int32(data, at + 57)
        if delta < 0 or (count == 0 and length != 49):
            return False
        return 0 <= count <= delta + 1 or _has_producer_fields(data, at)
    if magic == 1:
        if length < 22 or size - at < 34 or data[at + 17] & 0xF4 or (data[at + 18] != 0 and data[at + 18] != 255):
            return False
        key = _int32(data, at + 26)
        return -1 <= key <= length - 22
    if data[at + 17] & 0xFC:
        return False
    key = _int32(data, at + 18)
    return -1 <= key <= length - 14


def find_candidates(data: bytes, start: int, stop: int) -> list[int]:
    """Return the positions in start..stop-1, in order, where a batch or message with its header in `data` may begin."""
    if not cython.compiled:
        return _by_patterns(data, start, stop)
    found: list[int] = []
    view: cython.const[cython.uchar][::1] = data
    size: cython.Py_ssize_t = len(data)
    at: cython.Py_ssize_t = start
    end: cython.Py_ssize_t = min(stop, size - LEAST + 1)
    while at < end:
        if view[at + 16] <= 2 and view[at] == 0 and _could(view, at, size):
            found.append(at)
        at += 1
    return found


def _by_patterns(data: bytes, start: int, stop: int) -> list[int]:
    """Do the same with regular expressions, for the plain Python core."""
    found: list[int] = []
    stop = min(stop, len(data) - LEAST + 1)
    at = start
    while at < stop:
        # No header begins within zeros, but every position in them would be tried.
        zeros = data.find(ZEROS, at)
        end = stop if zeros < 0 else min(stop, zeros + len(ZEROS) // 2)
        for pattern in MAGIC.values():
            for match in pattern.finditer(data, at, min(len(data), end + 48)):
                position = match.start() - 16
                if at <= position < end and _could(data, position, len(data)):
                    found.append(position)
        at = end
        if zeros >= 0 and at < stop:
            other = NOT_ZERO.search(data, zeros)
            at = max(at, (other.start() if other else len(data)) - 12)
    return sorted(found)


NOT_ZERO = re.compile(rb"[^\x00]")
