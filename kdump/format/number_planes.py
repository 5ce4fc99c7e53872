"""Columns of integers as bytes that compress well: the first bytes of all numbers, then the second ones, and so on, as
far as any of them is not 0. Used in bundles (docs/bundle.md)."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Sequence

from kdump.format.errors import DecodeError

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
    found = [data[number::WIDTH] for number in range(WIDTH)]
    present = [any(plane) for plane in found]
    mask = sum(1 << number for number, is_present in enumerate(present) if is_present)
    return bytes((mask,)) + b"".join(plane for plane, is_present in zip(found, present) if is_present)


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
