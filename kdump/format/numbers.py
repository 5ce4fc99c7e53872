"""Java's int and long: sums that wrap, and the text that they are parsed from.

A broker computes with these where Python's integers have no bounds: a record's offset is baseOffset + offsetDelta as a
long, whatever the two are. numbers.pxd has the same sums for the compiled core.
"""

from __future__ import annotations

import re

LONG_MIN, LONG_MAX = -(1 << 63), (1 << 63) - 1
_INTEGER = re.compile(r"[+-]?[0-9]{1,200}")


def int32(number: int) -> int:
    """The number as a Java int that overflowed has it."""
    return (number + 0x80000000 & 0xFFFFFFFF) - 0x80000000


def int64(number: int) -> int:
    """The number as a Java long that overflowed has it."""
    return (number + 0x8000000000000000 & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000


def plus(one: int, other: int) -> int:
    """The sum of two longs as Java has it."""
    return int64(one + other)


def minus(one: int, other: int) -> int:
    """The difference of two longs as Java has it."""
    return int64(one - other)


def parse_int(text: str | None) -> int | None:
    """Integer.parseInt; None where that throws. (Java takes the digits of any script; files of a broker have ASCII.)"""
    return _parse(text, 31)


def parse_long(text: str | None) -> int | None:
    """Long.parseLong; None where that throws."""
    return _parse(text, 63)


def _parse(text: str | None, bits: int) -> int | None:
    if text is None or not _INTEGER.fullmatch(text):
        return None
    value = int(text)
    return value if -(1 << bits) <= value < 1 << bits else None
