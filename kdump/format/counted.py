"""Counts as they are said: 1 batch, 2 batches, 1,234 records."""

from __future__ import annotations


def many(count: int, one: str, more: str = "") -> str:
    """`more` is the plural where it is not `one` with an s."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"
