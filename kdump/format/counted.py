"""Counts with their nouns: 1 batch, 2 batches, 1,234 records."""

from __future__ import annotations


def many(count: int, one: str, more: str = "") -> str:
    """Return the count with its noun; `more` is the plural if it is not `one` plus s."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"
