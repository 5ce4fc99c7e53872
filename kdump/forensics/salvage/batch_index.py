"""The valid batches of one file in which they stand out of order, in compact arrays: about 60 bytes a batch.

Those that are in order among themselves make the chain: the longest ascending subsequence of the file. The others are
astray. Both are read in the order of their offsets (lane.py).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from heapq import merge
from itertools import chain
from typing import NamedTuple

CHAIN, RESCUED, MENDED, LEFT_OUT, FIXED, ALONE = 1, 2, 4, 8, 16, 32
"""Marks of a batch: it is in the chain; it was made of a damaged one; its base offset is corrected; it is written
nowhere; its base offset cannot be corrected; on both sides of it are bytes that belong to no valid batch."""
MOST_OVERLAPS = 1000
"""Batches that are looked at for one that shares offsets with others: a crafted file must not cost its square."""
SORTED_AT_ONCE = 1 << 13
"""Numbers that are sorted as objects, before they go into an array."""


class Entry(NamedTuple):
    """A batch of the file: byte position and size, the offsets that it has (those that it should have, if its base
    offset is `is_mended`), the checksum in its header."""

    position: int
    size: int
    base: int
    last: int
    crc: int
    is_mended: bool


class BatchIndex:
    """`name`: the base offset in the file's name, None without one; `beyond`: that of the next file."""

    def __init__(self, name: int | None, beyond: int | None) -> None:
        self.name = name
        self.beyond = beyond
        self.positions, self.sizes = array("q"), array("q")
        self.bases, self.lasts = array("q"), array("q")
        self.crcs = array("I")
        self.marks = bytearray()
        self.chain = array("i")
        """Numbers of the batches in the chain, in ascending order of positions and of offsets."""
        self.astray = array("i")
        """Numbers of the others, by offset; those of one offset by position."""
        self.widest = 1
        self.end = 0
        """Bytes of the file."""

    def __len__(self) -> int:
        return len(self.marks)

    def add(self, position: int, size: int, base: int, last: int, crc: int, marks: int = 0) -> None:
        """The next batch in the order of positions."""
        self.positions.append(position)
        self.sizes.append(size)
        self.bases.append(base)
        self.lasts.append(last)
        self.crcs.append(crc)
        self.marks.append(marks)
        self.widest = max(self.widest, last - base + 1)

    def entry(self, number: int) -> Entry:
        return Entry(
            self.positions[number],
            self.sizes[number],
            self.bases[number],
            self.lasts[number],
            self.crcs[number],
            bool(self.marks[number] & MENDED),
        )

    def end_of(self, number: int) -> int:
        """The byte after a batch."""
        return self.positions[number] + self.sizes[number]

    def arrange(self) -> None:
        """Find the chain, once all batches are there."""
        within = array("i", (number for number in self._candidates() if self._is_within(number)))
        candidates = within if len(within) * 2 >= len(self) else self._candidates()  # or the name is wrong
        ends, ends_at = array("q"), array("i")  # of chains by their length: the least last offset, and whose it is
        before = array("i", [-1]) * len(self)
        for number in candidates:
            size = bisect_left(ends, self.bases[number])
            before[number] = ends_at[size - 1] if size else -1
            if size == len(ends):
                ends.append(self.lasts[number])
                ends_at.append(number)
            elif self.lasts[number] < ends[size]:
                ends[size], ends_at[size] = self.lasts[number], number
        at = ends_at[-1] if ends_at else -1
        while at >= 0:
            self.marks[at] |= CHAIN
            at = before[at]
        self._sort()

    def _candidates(self) -> Iterator[int]:
        """Those that may be in the chain: not what leaps over its successor, for that one is in its place."""
        expected, number = self.name, None
        for after in chain(self._plausible(), [None]):
            if number is not None:
                base, last = self.bases[number], self.lasts[number]
                follows = self.beyond if after is None else self.bases[after]
                if expected is None or follows is None or not (expected <= follows <= last and base > expected):
                    yield number
                expected = last + 1
            number = after

    def _plausible(self) -> Iterator[int]:
        """All but what was made of damage, and what is in the midst of damage and out of order."""
        for number, marks in enumerate(self.marks):
            before = number > 0 and self.lasts[number - 1] >= self.bases[number]
            after = number + 1 < len(self) and self.bases[number + 1] <= self.lasts[number]
            if not (marks & RESCUED or (marks & ALONE and (before or after))):
                yield number

    def _is_within(self, number: int) -> bool:
        """Whether its offsets are those of this file, by the names of the files."""
        first, beyond = self.name or 0, self.beyond
        return self.bases[number] >= first and (beyond is None or self.lasts[number] < beyond)

    def _sort(self) -> None:
        marks = self.marks
        self.chain = array("i", (number for number in range(len(self)) if marks[number] & CHAIN))
        others = array("i", (number for number in range(len(self)) if not marks[number] & (CHAIN | LEFT_OUT)))
        base = self.bases.__getitem__
        runs = [
            array("i", sorted(others[start : start + SORTED_AT_ONCE], key=base))
            for start in range(0, len(others), SORTED_AT_ONCE)
        ]
        self.astray = runs[0] if len(runs) == 1 else array("i", merge(*runs, key=base))

    def mend(self, number: int, base: int) -> None:
        """Give a batch another base offset, at which it is in its place. `arranged` has to follow."""
        self.lasts[number] += base - self.bases[number]
        self.bases[number] = base
        self.marks[number] |= MENDED | CHAIN

    def leave_out(self, number: int) -> None:
        """Write a batch nowhere. `arranged` has to follow."""
        self.marks[number] |= LEFT_OUT

    def arranged(self) -> None:
        """Sort again after batches were mended or left out."""
        self._sort()

    # -- questions

    def first(self, *, astray: bool) -> int | None:
        """The least offset in a lane."""
        numbers = self.astray if astray else self.chain
        return self.bases[numbers[0]] if numbers else None

    def holders(self, first: int, last: int, *, astray: bool) -> Iterator[int]:
        """The batches of the chain, or of the others, that share offsets with first..last."""
        numbers = self.astray if astray else self.chain
        at = bisect_right(numbers, last, key=self.bases.__getitem__) - 1
        stop = max(0, at - MOST_OVERLAPS)
        while at >= stop and self.bases[numbers[at]] + self.widest > first:
            if self.lasts[numbers[at]] >= first:
                yield numbers[at]
            elif not astray:
                return  # batches of the chain do not overlap
            at -= 1
