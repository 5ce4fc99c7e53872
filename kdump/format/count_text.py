"""Counts with their nouns: 1 batch, 2 batches, 1,234 records; sizes; lists of names, and the beginning of long ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
"""Bytes of a unit, as users type them."""
SIZE = re.compile(r"^([0-9]{1,18})\s*([kmg]?)(?:i?b)?$", re.IGNORECASE)


def count_text(count: int, one: str, more: str = "") -> str:
    """Return the count with its noun; `more` is the plural if it is not `one` plus s."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def plain_count(count: int, one: str, more: str = "") -> str:
    """Same as count_text, without separators: for messages, in which numbers are as they are stored."""
    return f"{count} {one if count == 1 else more or one + 's'}"


def first_of(names: Sequence[str], limit: int = 5) -> str:
    """Return at most `limit` names, and the number of the others: a-0, a-1 and 33 more."""
    return ", ".join(names[:limit]) + (f" and {len(names) - limit:,} more" if len(names) > limit else "")


def all_of(names: Sequence[str]) -> str:
    """Return all names as a list in a sentence: a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def offsets_text(ranges: Iterable[tuple[int, int]]) -> str:
    """Return ranges of offsets as first..last, separated by commas."""
    return ", ".join(f"{first}..{last}" for first, last in ranges)


def size_text(count: int) -> str:
    """Format a number of bytes in the largest suitable unit: 563 bytes, 9.2 MiB."""
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return plain_count(count, "byte") if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def parse_size(typed: str) -> int | None:
    """Return a size in bytes as users type it (1048576, 512k, 64M, 1GiB); None if it is not one."""
    match = SIZE.match(typed)
    return int(match[1]) * SIZES[match[2].lower()] if match else None
