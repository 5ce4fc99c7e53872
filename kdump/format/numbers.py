"""Java's int and long: arithmetic that wraps, and parsing from text.

A broker computes with these, while Python's integers are unbounded: a record's offset is baseOffset + offsetDelta as a
long, whatever the two values are. numbers.pxd has the same arithmetic for the compiled core."""

from __future__ import annotations

import re
import unicodedata

INT_MAX = (1 << 31) - 1
LONG_MIN, LONG_MAX = -(1 << 63), (1 << 63) - 1
_INTEGER = re.compile(r"([+-]?)(\d+)")
LARGEST_CHAR = "\uffff"
"""Java parses char by char, so that digits of two chars are none."""
MAX_DIGITS = 30
"""A number of so many digits is no long, whatever follows."""


def int16(number: int) -> int:
    """Return the number wrapped to 16 bits, as a Java cast to short."""
    return (number + 0x8000 & 0xFFFF) - 0x8000


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


def parse_int(digits: str | None) -> int | None:
    """Parse as Integer.parseInt does, which accepts digits of any script; None if that throws."""
    return _parse(digits, 31)


def parse_long(digits: str | None) -> int | None:
    """Parse as Long.parseLong does; None if that throws."""
    return _parse(digits, 63)


def _parse(text: str | None, bits: int) -> int | None:
    if text is None:
        return None
    if text.isascii() and text.isdigit() and len(text) <= bits // 3.5:  # most numbers
        return int(text)
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    sign, digits = match.groups()
    if not digits.isascii():
        if max(digits) > LARGEST_CHAR:
            return None
        digits = "".join(str(unicodedata.decimal(digit)) for digit in digits)
    digits = digits.lstrip("0")[:MAX_DIGITS]
    value = int(sign + (digits or "0"))
    return value if -(1 << bits) <= value < 1 << bits else None
