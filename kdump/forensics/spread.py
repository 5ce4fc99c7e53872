"""How numbers are spread: sizes by powers of two, moments by buckets that widen as they must."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple

SIZES = 34
"""Classes of sizes: 0, 1, 2..3, 4..7, and so on up to 2^31 and more."""
WIDTHS = (1_000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000)
"""Ms: what a bucket of time is wide, each a multiple of the one before; beyond the last, ten times as wide each."""
MOST = 2048
"""Buckets with something in them, beyond which they are made wider."""
LATE = (1_000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000)
"""Ms: bounds of the classes of lateness. Class 0 is not late at all."""


class Class(NamedTuple):
    """How many are within first..last, both included; last None for no bound."""

    first: int
    last: int | None
    amount: int


def class_of(size: int) -> int:
    """The class of a size that is not negative."""
    return min(SIZES - 1, size.bit_length())


def size_classes(counts: array[int]) -> list[Class]:
    """From the first class with something in it to the last."""
    filled = [number for number, count in enumerate(counts) if count]
    if not filled:
        return []
    return [_size_class(number, counts[number]) for number in range(filled[0], filled[-1] + 1)]


def _size_class(number: int, count: int) -> Class:
    if number == SIZES - 1:
        return Class(1 << number - 1, None, count)
    return Class(1 << number - 1 if number else 0, (1 << number) - 1, count)


def median(counts: array[int]) -> Class | None:
    """The class that holds the median size: more is not known of it. None for none."""
    wanted = sum(counts) / 2
    done = 0
    for each in size_classes(counts):
        done += each.amount
        if each.amount and done >= wanted:
            return each
    return None


def late_classes(counts: array[int]) -> list[Class]:
    """Records that are late, by how many ms: from the first class with something in it to the last."""
    edges = (0, *LATE)
    tops: list[int | None] = [*LATE, None]
    found = [Class(low + 1, high, count) for low, high, count in zip(edges, tops, counts[1:])]
    filled = [number for number, each in enumerate(found) if each.amount]
    return found[filled[0] : filled[-1] + 1] if filled else []


class Moments:
    """How many at which time. At first a bucket is a second wide; when there are more than MOST of them, ever wider.
    `width`: ms of a bucket."""

    __slots__ = ("counts", "step", "width")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.step = 0
        self.width = _width(0)

    def add(self, timestamp: int, count: int) -> None:
        """So many at a time, in epoch ms."""
        bucket = timestamp // self.width
        if bucket in self.counts:
            self.counts[bucket] += count
            return
        self.counts[bucket] = count
        while len(self.counts) > MOST:
            self._widen()

    def _widen(self) -> None:
        factor = _width(self.step + 1) // self.width
        self.step += 1
        self.width *= factor
        counts: dict[int, int] = {}
        for bucket, count in self.counts.items():
            counts[bucket // factor] = counts.get(bucket // factor, 0) + count
        self.counts = counts

    def merge(self, other: Moments) -> None:
        while self.step < other.step:
            self._widen()
        for bucket, count in other.counts.items():
            self.add(bucket * other.width, count)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """The beginning of each bucket with something in it, in epoch ms, and how many are in it; in order."""
        return ((bucket * self.width, count) for bucket, count in sorted(self.counts.items()))

    @property
    def peak(self) -> tuple[int, int] | None:
        """Of these the one with most."""
        return max(self, key=lambda each: each[1], default=None)


def _width(step: int) -> int:
    last = len(WIDTHS) - 1
    return WIDTHS[step] if step <= last else WIDTHS[last] * 10 ** (step - last)
