"""The parts of a source file: batches that can be written, and bytes from which none is written, with the
offsets that were lost in these."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

from kdump.format.numbers import LONG_MAX, LONG_MIN
from kdump.log.paths import Target


class Disordered(Exception):
    """Raised for a valid batch that is out of order: its partition is then read again, after a survey of its files
    (survey.py). `path` is the file."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: batches are out of order")
        self.path = path


class LostBytes(NamedTuple):
    """Bytes of a file from which no batch is written: damage, padding, or a batch whose offsets do not fit. `size` is
    None if unknown. offset, lastOffset and records: as in a header, None and 0 if it is not credible. `is_possible`:
    whether the batch can have had these offsets; a header with a valid checksum is quoted in any case."""

    fate: str
    position: int
    size: int | None
    code: str
    reason: str
    offset: int | None = None
    lastOffset: int | None = None
    records: int = 0
    is_possible: bool = True


@dataclass
class InputFile:
    """A file and its place among the others. `copy`: the number of its copy, 0 for the reference copy; `spare`: it is
    a .deleted, .swap or .cleaned file that a startup deletes; `is_replaced`: a segment in whose place it installs
    a .swap file; `misnamed`: its name is not that of a segment. `names`: the base offsets in the names of that copy's
    live segments, in ascending order; `beyond`: the next of them after this file's."""

    target: Target
    copy: int = 0
    spare: bool = False
    beyond: int | None = None
    order: int = 0
    names: tuple[int, ...] = ()
    misnamed: bool = False
    is_replaced: bool = False
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of each file, by path, when it was first opened."""

    @property
    def name(self) -> int:
        """The base offset in the file's name, -1 without one."""
        return -1 if self.target.name_offset is None else self.target.name_offset


class LostOffsets:
    """The offsets lost in surveyed files, whose damage is found before anything is written, and not in order of
    offsets: ranges from damaged headers (16 bytes each), and whether anything with unknown offsets was lost."""

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
        index = bisect_right(firsts, last) - 1
        return index >= 0 and furthest[index] >= first

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
