"""Counts with their nouns: 1 batch, 2 batches, 1,234 records; sizes, durations; lists of names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
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


def range_text(first: int | None, last: int | None) -> str:
    """Return a range as first..last, or as one number; empty if there is none."""
    return "" if first is None else str(first) if first == last else f"{first}..{last}"


def size_text(count: int) -> str:
    """Format a number of bytes in the largest suitable unit: 563 bytes, 9.2 MiB."""
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return plain_count(count, "byte") if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def duration_text(milliseconds: int | None) -> str:
    """Format a duration in its two largest units: 37 d 4 h, 1 min 36 s, 12.5 s, 250 ms. Returns "" for None. Negative
    durations (caused by clock skew) start with a minus sign."""
    if milliseconds is None:
        return ""
    sign, left = ("-" if milliseconds < 0 else ""), abs(milliseconds)
    if left < 1_000:
        return f"{sign}{left} ms"
    if left < 60_000:
        return f"{sign}{left // 100 / 10:g} s"
    (size, unit), (smaller, name) = next(pair for pair in pairwise(UNITS) if left >= pair[0][0])
    rest = left % size // smaller
    return f"{sign}{left // size:,} {unit}" + (f" {rest} {name}" if rest else "")


def parse_size(typed: str) -> int | None:
    """Return a size in bytes as users type it (1048576, 512k, 64M, 1GiB); None if it is not one."""
    match = SIZE.match(typed)
    return int(match[1]) * SIZES[match[2].lower()] if match else None
