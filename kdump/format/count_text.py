"""Counts with their nouns: 1 batch, 2 batches, 1,234 records; lists of names, and the beginning of long ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


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
