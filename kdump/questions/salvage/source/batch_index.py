"""Index of the valid batches of a file in which they are out of order, in compact arrays: about 60 bytes per batch.

The longest subsequence of batches with ascending offsets is the chain; the other batches are misplaced. Both are read
in order of offsets (OrderedReader)."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from heapq import merge
from itertools import chain
from typing import NamedTuple

CHAIN, RESCUED, MENDED, LEFT_OUT, FIXED, ALONE = 1, 2, 4, 8, 16, 32
"""Flags of a batch: in the chain; recovered from a damaged batch; base offset corrected; not written; base offset not
correctable; between bytes on both sides that belong to no valid batch."""
MAX_OVERLAPS = 1000
"""Maximum number of batches examined to find those that share offsets, to avoid quadratic time for a crafted file."""
SORTED_AT_ONCE = 1 << 13
"""Batch numbers that are sorted at once, as Python objects, before they are stored in an array."""


class IndexedBatch(NamedTuple):
    """A batch of the file: byte position and size, first and last offset (the corrected ones, if `is_mended`), and the
    checksum in its header."""

    position: int
    size: int
    base: int
    last: int
    crc: int
    is_mended: bool


class BatchIndex:
    """The batches of one file. `name`: the base offset in the file's name, None without one; `beyond`: that of the next
    file."""

    def __init__(self, name: int | None, beyond: int | None) -> None:
        self.name, self.beyond = name, beyond
        self.positions, self.sizes = array("q"), array("q")
        self.bases, self.lasts = array("q"), array("q")
        self.crcs = array("I")
        self.marks = bytearray()
        self.chain = array("i")
        """Numbers of the batches in the chain, in ascending order of both position and offset."""
        self.misplaced = array("i")
        """Numbers of the other batches that are written, by base offset, then by position."""
        self.widest = 1
        self.end = 0
        """Size of the file in bytes."""

    def __len__(self) -> int:
        return len(self.marks)

    def add(self, position: int, size: int, base: int, last: int, crc: int, marks: int = 0) -> None:
        """Add the next batch in order of position."""
        self.positions.append(position)
        self.sizes.append(size)
        self.bases.append(base)
        self.lasts.append(last)
        self.crcs.append(crc)
        self.marks.append(marks)
        self.widest = max(self.widest, last - base + 1)

    def entry(self, number: int) -> IndexedBatch:
        return IndexedBatch(
            self.positions[number],
            self.sizes[number],
            self.bases[number],
            self.lasts[number],
            self.crcs[number],
            bool(self.marks[number] & MENDED),
        )

    def end_of(self, number: int) -> int:
        """Return the byte position after a batch."""
        return self.positions[number] + self.sizes[number]

    def arrange(self) -> None:
        """Find the chain, once all batches have been added."""
        within = array("i", (number for number in self._candidates() if self._is_within(number)))
        candidates = within if len(within) * 2 >= len(self) else self._candidates()  # else the file's name is wrong
        ends, ends_at = array("q"), array("i")  # by length of the chain: the smallest last offset, and its batch
        before = array("i", [-1]) * len(self)
        for number in candidates:
            size = bisect_left(ends, self.bases[number])
            before[number] = ends_at[size - 1] if size else -1
            if size == len(ends):
                ends.append(self.lasts[number])
                ends_at.append(number)
            elif self.lasts[number] < ends[size]:
                ends[size], ends_at[size] = self.lasts[number], number
        last = ends_at[-1] if ends_at else -1
        while last >= 0:
            self.marks[last] |= CHAIN
            last = before[last]
        self._prefer_contiguous()
        self._sort()

    def _prefer_contiguous(self) -> None:
        """Replace a batch of the chain by the first one in its place that leaves no gap, if it is not that one."""
        numbers = array("i", (number for number in range(len(self)) if self.marks[number] & CHAIN))
        expected, before = self.name, -1
        for index, number in enumerate(numbers):
            after = numbers[index + 1] if index + 1 < len(numbers) else len(self)
            follows = self.bases[after] if after < len(self) else self.beyond
            if expected is not None:
                others = (other for other in range(before + 1, after) if self._continues(other, expected, follows))
                first = next(others, number)
                if first != number and (first < number or self.bases[number] != expected):
                    self.marks[number] &= ~CHAIN
                    self.marks[first] |= CHAIN
                    number = first
            expected, before = self.lasts[number] + 1, number

    def _continues(self, number: int, expected: int, follows: int | None) -> bool:
        """Return True if a batch has the expected offset, and ends before that of the one that follows."""
        is_sure = self.bases[number] == expected and not self.marks[number] & (RESCUED | ALONE)
        return is_sure and (follows is None or self.lasts[number] < follows)

    def _candidates(self) -> Iterator[int]:
        """Yield the batches that may be in the chain: not one that skips offsets if its successor starts between the
        expected offset and its own last offset, because then the successor is in its place."""
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
        """Yield all batches except recovered ones, and those between damaged bytes that are out of order."""
        for number, marks in enumerate(self.marks):
            before = number > 0 and self.lasts[number - 1] >= self.bases[number]
            after = number + 1 < len(self) and self.bases[number + 1] <= self.lasts[number]
            if not (marks & RESCUED or (marks & ALONE and (before or after))):
                yield number

    def _is_within(self, number: int) -> bool:
        """Return True if its offsets belong to this file, according to the names of the files."""
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
        self.misplaced = runs[0] if len(runs) == 1 else array("i", merge(*runs, key=base))

    def mend(self, number: int, base: int) -> None:
        """Correct the base offset of a batch to the one that fits its position. Call `arranged` afterwards."""
        self.lasts[number] += base - self.bases[number]
        self.bases[number] = base
        self.marks[number] |= MENDED | CHAIN

    def leave_out(self, number: int) -> None:
        """Exclude a batch from the output. Call `arranged` afterwards."""
        self.marks[number] |= LEFT_OUT

    def arranged(self) -> None:
        """Sort again after `mend` or `leave_out`."""
        self._sort()

    # -- queries

    def first(self, *, misplaced: bool) -> int | None:
        """Return the lowest offset in the chain, or of the misplaced batches; None if there is none."""
        numbers = self.misplaced if misplaced else self.chain
        return self.bases[numbers[0]] if numbers else None

    def holders(self, first: int, last: int, *, misplaced: bool) -> Iterator[int]:
        """Yield the batches of the chain, or the misplaced ones, that share offsets with first..last (inclusive)."""
        numbers = self.misplaced if misplaced else self.chain
        index = bisect_right(numbers, last, key=self.bases.__getitem__) - 1
        stop = max(0, index - MAX_OVERLAPS)
        while index >= stop and self.bases[numbers[index]] + self.widest > first:
            if self.lasts[numbers[index]] >= first:
                yield numbers[index]
            elif not misplaced:
                return  # batches of the chain do not overlap
            index -= 1
