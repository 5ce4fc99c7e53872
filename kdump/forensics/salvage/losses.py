"""What surveyed files have lost, by offsets: their damage is found before anything is written, and not in the order of
offsets."""

from __future__ import annotations

from array import array
from bisect import bisect_right


class Losses:
    """Offsets that damaged headers claim (16 bytes each), and whether something was lost whose offsets are unknown."""

    def __init__(self) -> None:
        self.unknown = False
        self.last = -1
        """The largest offset that something lost claims."""
        self._firsts, self._lasts = array("q"), array("q")
        self._sorted: tuple[array[int], array[int]] | None = None

    def add(self, first: int, last: int) -> None:
        """Offsets that something lost had."""
        self.last = max(self.last, last)
        self.add_doubtful(first, last)

    def add_doubtful(self, first: int, last: int) -> None:
        """Offsets that something states that was not written, and that are not believed: they do not say how far the
        log went."""
        self._firsts.append(first)
        self._lasts.append(last)
        self._sorted = None

    def may_have(self, first: int, last: int, *, compacted: bool) -> bool:
        """Whether offsets first..last may be among them. In a compacted log offsets are missing everywhere: there, only
        those that something claims."""
        return (self.unknown and not compacted) or self.claims(first, last)

    def claims(self, first: int, last: int) -> bool:
        """Whether something lost claims any of the offsets."""
        if not self._firsts:
            return False
        firsts, furthest = self._order()
        at = bisect_right(firsts, last) - 1
        return at >= 0 and furthest[at] >= first

    def _order(self) -> tuple[array[int], array[int]]:
        """First offsets in ascending order, and the largest last offset up to each."""
        if self._sorted is None:
            pairs = sorted(zip(self._firsts, self._lasts))
            furthest, firsts = array("q"), array("q", (first for first, _ in pairs))
            most = -1
            for _, last in pairs:
                most = max(most, last)
                furthest.append(most)
            self._sorted = firsts, furthest
        return self._sorted
