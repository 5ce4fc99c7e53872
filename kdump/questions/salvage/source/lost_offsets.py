"""The offsets lost in surveyed files, whose damage is found before anything is written, and not in order of offsets."""

from __future__ import annotations

from array import array
from bisect import bisect_right

from kdump.format.numbers import LONG_MAX, LONG_MIN


class LostOffsets:
    """Offset ranges from damaged headers (16 bytes each), and whether anything with unknown offsets was lost."""

    def __init__(self) -> None:
        self.unknown = False
        self.last = -1
        """The largest offset that was lost."""
        self._firsts, self._lasts = array("q"), array("q")
        self._sorted: tuple[array[int], array[int]] | None = None

    def add(self, first: int, last: int) -> None:
        """Add offsets that were lost (first..last, inclusive)."""
        self.last = max(self.last, last)
        self.add_doubtful(first, last)

    def add_doubtful(self, first: int, last: int) -> None:
        """Add offsets, not credible ones, of a batch that was not written: they do not show where the log ended."""
        self._firsts.append(min(max(first, LONG_MIN), LONG_MAX))  # a header may claim offsets beyond a long
        self._lasts.append(min(max(last, LONG_MIN), LONG_MAX))
        self._sorted = None

    def may_have(self, first: int, last: int, *, compacted: bool) -> bool:
        """Return True if any of the offsets first..last may have been lost. In a compacted log, where offsets are often
        missing, only offsets that were added count."""
        return (self.unknown and not compacted) or self.claims(first, last)

    def claims(self, first: int, last: int) -> bool:
        """Return True if any of the offsets first..last was added."""
        if not self._firsts:
            return False
        firsts, furthest = self._order()
        at = bisect_right(firsts, last) - 1
        return at >= 0 and furthest[at] >= first

    def _order(self) -> tuple[array[int], array[int]]:
        """Return the first offsets in ascending order, and the largest last offset up to each."""
        if self._sorted is None:
            pairs = sorted(zip(self._firsts, self._lasts))
            furthest, firsts = array("q"), array("q", (first for first, _ in pairs))
            highest = -1
            for _, last in pairs:
                highest = max(highest, last)
                furthest.append(highest)
            self._sorted = firsts, furthest
        return self._sorted
