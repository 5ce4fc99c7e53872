"""A range of numbers, such as offsets or times."""

from __future__ import annotations

from typing import NamedTuple


class Range(NamedTuple):
    """The range first..last, both ends inclusive; None leaves an end open."""

    first: int | None
    last: int | None

    def contains(self, value: int) -> bool:
        return (self.first is None or value >= self.first) and (self.last is None or value <= self.last)

    def meets(self, first: int, last: int) -> bool:
        """Return True if first..last overlaps this range."""
        return (self.last is None or first <= self.last) and (self.first is None or last >= self.first)
