"""Java's int and long: arithmetic that wraps, and parsing from text.

A broker computes with these, while Python's integers are unbounded: a record's offset is baseOffset + offsetDelta as a
long, whatever the two values are. numbers.pxd has the same arithmetic for the compiled core.
"""

from __future__ import annotations

import re

LONG_MIN, LONG_MAX = -(1 << 63), (1 << 63) - 1
_INTEGER = re.compile(r"[+-]?[0-9]{1,200}")


def int32(number: int) -> int:
    """Return the number wrapped to 32 bits, as a Java int that overflows."""
    return (number + 0x80000000 & 0xFFFFFFFF) - 0x80000000


def int64(number: int) -> int:
    """Return the number wrapped to 64 bits, as a Java long that overflows."""
    return (number + 0x8000000000000000 & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000


def plus(one: int, other: int) -> int:
    """Return the sum of two longs, wrapped as in Java."""
    return int64(one + other)


def minus(one: int, other: int) -> int:
    """Return the difference of two longs, wrapped as in Java."""
    return int64(one - other)


def parse_int(text: str | None) -> int | None:
    """Parse as Integer.parseInt does; None if that throws. (Java accepts digits of any script; brokers write ASCII.)"""
    return _parse(text, 31)


def parse_long(text: str | None) -> int | None:
    """Parse as Long.parseLong does; None if that throws."""
    return _parse(text, 63)


def _parse(text: str | None, bits: int) -> int | None:
    if text is None or not _INTEGER.fullmatch(text):
        return None
    value = int(text)
    return value if -(1 << bits) <= value < 1 << bits else None
