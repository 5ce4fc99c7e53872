"""Values of JSON that comes from another host. Each function returns the value, and raises ValueError for any other."""

from __future__ import annotations

import os
from typing import Any

LONG_MIN, LONG_MAX, UNSIGNED_MAX = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1
SHOWN = 40
"""Maximum characters of a wrong value in a message."""


def integer(value: Any, lowest: int = LONG_MIN, highest: int = UNSIGNED_MAX) -> int:
    """Return an integer in this range. True and False are not integers here."""
    if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
        raise ValueError(f"{str(value)[:SHOWN]!r} is not an integer from {lowest} to {highest}")
    return value


def natural(value: Any) -> int:
    """Return a position or size."""
    return integer(value, 0, LONG_MAX)


def optional_long(value: Any) -> int | None:
    return None if value is None else integer(value, LONG_MIN, LONG_MAX)


def text(value: Any) -> str:
    """Return a text that can be printed."""
    if not isinstance(value, str):
        raise ValueError(f"{str(value)[:SHOWN]!r} is not a text")
    value.encode()
    return value


def path_text(value: Any) -> str:
    """Return a path or a part of one, which may have any bytes, as os.fsdecode returns them."""
    if not isinstance(value, str):
        raise ValueError(f"{str(value)[:SHOWN]!r} is not a text")
    os.fsencode(value)
    return value


def optional_path_text(value: Any) -> str | None:
    return None if value is None else path_text(value)
