"""Headers of v2 batches as columns that compress to some 14 bytes a header, most of them for the checksum, the length
and the times. Each field is stored as its difference from what the header before it predicts, which is usually 0. Used
in bundles (docs/bundle.md)."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Sequence
from itertools import repeat
from struct import Struct
from struct import error as StructError

from kdump.format.batch_header import BATCH_HEADER, MAX_SEQUENCE, sequence
from kdump.format.errors import DecodeError

COUNT = Struct("<I")
MAGIC = 2
MAX_HEADERS = 4096
"""Number of headers that are encoded together."""

Columns = Sequence[Sequence[int]]


def encode_headers(headers: bytes | bytearray) -> bytes:
    """Return consecutive headers, each as it is in the log."""
    rows = list(BATCH_HEADER.struct.iter_unpack(headers))
    if not rows:
        return COUNT.pack(0)
    base, length, epoch, _, crc, attributes, delta, first, last, producer, its_epoch, number, count = zip(*rows)
    none = repeat(0)
    columns = (
        differences(base, _next_offsets(base, delta)),
        differences(length, none),
        differences(epoch, (0, *epoch)),
        crc,
        differences(attributes, none),
        differences(delta, none),
        differences(first, (0, *last)),
        differences(last, first),
        differences(producer, none),
        differences(its_epoch, none),
        differences(number, _next_sequences(producer, number, delta)),
        differences(count, (each + 1 for each in delta)),
    )
    return COUNT.pack(len(rows)) + b"".join(map(planes, columns))


def _next_offsets(base: Sequence[int], delta: Sequence[int]) -> list[int]:
    return [0, *(one + other + 1 for one, other in zip(base, delta))]


def _next_sequences(producer: Sequence[int], number: Sequence[int], delta: Sequence[int]) -> list[int]:
    """Return the sequence that continues that of the same producer's batch before."""
    expected: dict[int, int] = {-1: -1}
    sequences = []
    for who, one, more in zip(producer, number, delta):
        sequences.append(expected.get(who, 0))
        if who != -1:
            expected[who] = _after(one, more)
    return sequences


def _after(number: int, delta: int) -> int:
    return -1 if number < 0 or not 0 <= delta <= MAX_SEQUENCE else sequence(number, delta + 1)


def decode_headers(data: bytes) -> bytes:
    """Return the headers, each as it is in the log. Raises DecodeError."""
    if len(data) < COUNT.size:
        raise DecodeError("HeaderPlanes", "count", 0, f"{len(data)} bytes left")
    (count,) = COUNT.unpack_from(data)
    position = COUNT.size
    if count > MAX_HEADERS:  # planes of zeros take no bytes
        raise DecodeError("HeaderPlanes", "count", 0, f"{count} headers, more than {MAX_HEADERS}")
    if not count:
        return b""
    columns = []
    for _ in range(12):
        column, position = read_planes(data, position, count)
        columns.append(column)
    base, length, epoch, crc, attributes, delta, first, last, producer, its_epoch, number, records = columns
    pack = BATCH_HEADER.struct.pack
    expected: dict[int, int] = {-1: -1}
    offset = epoch_before = newest = 0
    headers = []
    try:
        for row in zip(
            signed(base), signed(length), signed(epoch), crc, signed(attributes), signed(delta), signed(first),
            signed(last), signed(producer), signed(its_epoch), signed(number), signed(records),
        ):  # fmt: skip
            offset = wrapped(offset + row[0])
            epoch_before += row[2]
            oldest = wrapped(newest + row[6])
            newest = wrapped(oldest + row[7])
            who = row[8]
            sequence_number = expected.get(who, 0) + row[10]
            if who != -1:
                expected[who] = _after(sequence_number, row[5])
            headers.append(
                pack(
                    offset, row[1], epoch_before, MAGIC, row[3], row[4], row[5], oldest, newest, who, row[9],
                    sequence_number, row[5] + 1 + row[11],
                )
            )  # fmt: skip
            offset = offset + row[5] + 1
    except StructError as error:
        raise DecodeError("HeaderPlanes", "", 0, f"header {len(headers)}: {error}") from error
    return b"".join(headers)


STRUCT = "NumberPlanes"
WIDTH = 8
"""Bytes of a number."""
MASK = (1 << 64) - 1
_HALF = 1 << 63


def planes(numbers: Sequence[int]) -> bytes:
    """Return the planes of a column of unsigned 64-bit numbers, after a byte that states which there are."""
    raw = array("Q", numbers)
    if raw.itemsize != WIDTH:
        raise AssertionError("the platform has no 64-bit array type")
    data = _little(raw).tobytes()
    all_planes = [data[number::WIDTH] for number in range(WIDTH)]
    present = [any(plane) for plane in all_planes]
    mask = sum(1 << number for number, is_present in enumerate(present) if is_present)
    return bytes((mask,)) + b"".join(plane for plane, is_present in zip(all_planes, present) if is_present)


def read_planes(data: bytes, position: int, count: int) -> tuple[array[int], int]:
    """Return a column of `count` numbers, and the position after it. Raises DecodeError."""
    if position >= len(data):
        raise DecodeError(STRUCT, "mask", position, "no bytes left")
    mask = data[position]
    position += 1
    if mask.bit_count() * count > len(data) - position:
        reason = f"{mask.bit_count()} planes of {count} bytes, {len(data) - position} bytes left"
        raise DecodeError(STRUCT, "planes", position, reason)
    joined = bytearray(WIDTH * count)
    for number in range(WIDTH):
        if mask >> number & 1:
            joined[number::WIDTH] = data[position : position + count]
            position += count
    column = array("Q", bytes(joined))
    return _little(column), position


def _little(numbers: array[int]) -> array[int]:
    """Swap between the machine's byte order and little-endian."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def differences(actual: Iterable[int], predicted: Iterable[int]) -> list[int]:
    """Return how far numbers are from those predicted, modulo 2^64, as unsigned numbers: 0, -1, 1, -2, 2 … become 0, 1,
    2, 3, 4 …"""
    found = []
    for one, other in zip(actual, predicted):
        number = one - other
        if not -_HALF <= number < _HALF:
            number = (number + _HALF & MASK) - _HALF
        found.append(number << 1 if number >= 0 else ~(number << 1))
    return found


def signed(numbers: Iterable[int]) -> list[int]:
    """Return the differences that `differences` has encoded."""
    return [-(number >> 1) - 1 if number & 1 else number >> 1 for number in numbers]


def wrapped(number: int) -> int:
    """Return a sum modulo 2^64, as a signed number."""
    return number if -_HALF <= number < _HALF else (number + _HALF & MASK) - _HALF
