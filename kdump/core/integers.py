"""Reads big-endian integers and varints, and computes with them as Java does. The compiled core uses integers.pxd."""

from __future__ import annotations

from struct import Struct

from kdump.format.batch_header import sequence as sequence_at
from kdump.format.errors import DecodeError
from kdump.format.numbers import minus, plus
from kdump.format.varint import Bytes, read_unsigned

__all__ = [
    "bits_at",
    "double_at",
    "int16_at",
    "int32_at",
    "int64_at",
    "minus",
    "plus",
    "rounded",
    "sequence_at",
    "uint32_at",
    "valid_size_at",
    "varint_at",
]


DOUBLE = Struct("<d")


def int16_at(data: Bytes, at: int) -> int:
    """Return the INT16 at data[at:]."""
    return int.from_bytes(data[at : at + 2], "big", signed=True)


def int32_at(data: Bytes, at: int) -> int:
    """Return the INT32 at data[at:]."""
    return int.from_bytes(data[at : at + 4], "big", signed=True)


def uint32_at(data: Bytes, at: int) -> int:
    """Return the UINT32 at data[at:]."""
    return int.from_bytes(data[at : at + 4], "big")


def int64_at(data: Bytes, at: int) -> int:
    """Return the INT64 at data[at:]."""
    return int.from_bytes(data[at : at + 8], "big", signed=True)


def varint_at(data: Bytes, position: int, end: int, bits: int) -> tuple[int, int]:
    """Return the zigzag varint of at most `bits` bits (32 or 64) at data[position:end] and the position after it; -1 as
    the position if it is incomplete or too long."""
    try:
        value, position = read_unsigned(data, position, end, bits, "", "")
    except DecodeError:
        return 0, -1
    return (value >> 1) ^ -(value & 1), position


def bits_at(data: Bytes, position: int, end: int) -> tuple[int, int]:
    """Return the unsigned varint of at most 64 bits at data[position:end], its bits as a signed number, and the
    position after it; -1 as the position if it is incomplete, too long, or longer than it has to be."""
    start = position
    try:
        value, position = read_unsigned(data, position, end, 64, "", "")
    except DecodeError:
        return 0, -1
    last = data[position - 1]
    if position - start > 1 and (not last or (position - start > 9 and last > 1)):
        return 0, -1
    return value - (value >> 63 << 64), position


def double_at(data: Bytes, position: int) -> float:
    """Return the little-endian double at data[position:]."""
    value: float = DOUBLE.unpack_from(data, position)[0]
    return value


def rounded(value: float) -> int:
    """Return the integer nearest to a number that is not negative."""
    return int(value + 0.5)


def valid_size_at(data: Bytes, position: int) -> tuple[int, int]:
    """Return the size of a header's key or value at data[position:], which record_columns.decode has validated, and the
    position after the size."""
    return varint_at(data, position, len(data), 32)


def size_class(size: int) -> int:
    """Return what log.histograms.class_of returns."""
    return min(size.bit_length(), 33) if size > 0 else 0
