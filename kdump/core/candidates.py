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

try:
    import cython
except ImportError:
    from kdump import nocython as cython

if cython.compiled:
    from cython.cimports.kdump.core.column_numbers import *
    from cython.cimports.kdump.core.integers import int32_at
else:
    from kdump.core.column_numbers import *
    from kdump.core.integers import int32_at

LARGEST = 1 << 27
"""Batches of this many bytes or more are not searched for. Brokers accept message.max.bytes, 1 MiB by default."""
LEAST = LOG_OVERHEAD + MESSAGE_V0_MIN
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


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.returns(cython.bint)
def _has_producer_fields(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t):
    """Return True if producerId, producerEpoch and baseSequence of the v2 header at data[at] are all -1, or those of a
    producer (as in header_columns.is_plain_batch, with an ID below 2^56)."""
    if data[at + PRODUCER_ID_AT] == 0:
        return data[at + PRODUCER_EPOCH_AT] < 128 and int32_at(data, at + BASE_SEQUENCE_AT) >= -1
    return (
        int32_at(data, at + PRODUCER_ID_AT) == -1
        and int32_at(data, at + PRODUCER_ID_AT + 4) == -1
        and data[at + PRODUCER_EPOCH_AT] == 255
        and data[at + PRODUCER_EPOCH_AT + 1] == 255
        and int32_at(data, at + BASE_SEQUENCE_AT) == -1
    )


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.returns(cython.bint)
def _could(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, size: cython.Py_ssize_t):
    """Return True if a header could begin at data[at:size], which must have at least LEAST bytes."""
    magic: cython.uchar = data[at + MAGIC_AT]
    if magic > 2 or data[at] != 0:
        return False
    length: cython.longlong = int32_at(data, at + LENGTH_AT)
    if length < MESSAGE_V0_MIN or length >= LARGEST:
        return False
    key: cython.longlong
    if magic == 2:
        if length < MIN_BATCH_LENGTH or size - at < HEADER_SIZE or data[at + ATTRIBUTES_AT] != 0:
            return False
        if data[at + ATTRIBUTES_AT + 1] & CODEC > LAST_CODEC:
            return False
        delta: cython.longlong = int32_at(data, at + LAST_OFFSET_DELTA_AT)
        count: cython.longlong = int32_at(data, at + RECORD_COUNT_AT)
        if delta < 0 or (count == 0 and length != MIN_BATCH_LENGTH):
            return False
        return 0 <= count <= delta + 1 or _has_producer_fields(data, at)
    if magic == 1:
        if length < MESSAGE_V1_MIN or size - at < LOG_OVERHEAD + MESSAGE_V1_MIN:
            return False
        time: cython.uchar = data[at + MESSAGE_TIMESTAMP_AT]
        if data[at + MESSAGE_ATTRIBUTES_AT] & 0xF4 or (time != 0 and time != 255):
            return False
        key = int32_at(data, at + MESSAGE_V1_KEY_AT - 4)
        return -1 <= key <= length - MESSAGE_V1_MIN
    if data[at + MESSAGE_ATTRIBUTES_AT] & 0xFC:
        return False
    key = int32_at(data, at + MESSAGE_V0_KEY_AT - 4)
    return -1 <= key <= length - MESSAGE_V0_MIN


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
        if view[at + MAGIC_AT] <= 2 and view[at] == 0 and _could(view, at, size):
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
            for match in pattern.finditer(data, at, min(len(data), end + HEADER_SIZE)):
                position = match.start() - MAGIC_AT
                if at <= position < end and _could(data, position, len(data)):
                    found.append(position)
        at = end
        if zeros >= 0 and at < stop:
            other = NOT_ZERO.search(data, zeros)
            at = max(at, (other.start() if other else len(data)) - LOG_OVERHEAD)
    return sorted(found)


NOT_ZERO = re.compile(rb"[^\x00]")
