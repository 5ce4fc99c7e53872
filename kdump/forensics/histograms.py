"""Distributions: sizes by powers of two, timestamps by buckets that widen as needed."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Annotated, NamedTuple

from kdump.answer import Doc
from kdump.core.record_counts import LATE

SIZES = 34
"""Number of size classes: 0, 1, 2..3, 4..7, and so on; the last contains all sizes from 2^32 on."""
WIDTHS = (1_000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000)
"""Widths of time buckets in ms, each a multiple of the one before; after the last, each is ten times as wide."""
MAX_BUCKETS = 2048
"""Maximum number of non-empty buckets; if there are more, buckets are made wider."""


class SizeClass(NamedTuple):
    """Number of values in first..last, both inclusive; `last` is None if there is no upper bound."""

    first: Annotated[int, Doc(name="from")]
    last: Annotated[int | None, Doc("null if unbounded", name="to")]
    amount: Annotated[int, Doc(name="count")]


def class_of(size: int) -> int:
    """Return the class of a size; the size must not be negative."""
    return min(SIZES - 1, size.bit_length())


def size_classes(counts: array[int]) -> list[SizeClass]:
    """Return the classes from the first non-empty one to the last."""
    filled = [number for number, count in enumerate(counts) if count]
    if not filled:
        return []
    return [_size_class(number, counts[number]) for number in range(filled[0], filled[-1] + 1)]


def _size_class(number: int, count: int) -> SizeClass:
    if number == SIZES - 1:
        return SizeClass(1 << number - 1, None, count)
    return SizeClass(1 << number - 1 if number else 0, (1 << number) - 1, count)


def median(counts: array[int]) -> SizeClass | None:
    """Return the class that contains the median size (the exact median is not known); None if there are no sizes."""
    half = sum(counts) / 2
    done = 0
    for each in size_classes(counts):
        done += each.amount
        if each.amount and done >= half:
            return each
    return None


def late_classes(counts: array[int]) -> list[SizeClass]:
    """Return the late records by lateness in ms, from the first non-empty class to the last."""
    edges = (0, *LATE)
    tops: list[int | None] = [*LATE, None]
    found = [SizeClass(low + 1, high, count) for low, high, count in zip(edges, tops, counts[1:])]
    filled = [number for number, each in enumerate(found) if each.amount]
    return found[filled[0] : filled[-1] + 1] if filled else []


class TimeHistogram:
    """Counts by time. Buckets are one second wide at first; when there are more than MAX_BUCKETS of them, they are
    widened. `width`: ms of a bucket."""

    __slots__ = ("counts", "step", "width")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.step = 0
        self.width = _width(0)

    def add(self, timestamp: int, count: int) -> None:
        """Add `count` at `timestamp` (epoch ms)."""
        bucket = timestamp // self.width
        if bucket in self.counts:
            self.counts[bucket] += count
            return
        self.counts[bucket] = count
        while len(self.counts) > MAX_BUCKETS:
            self.widen()

    def widen(self) -> None:
        """Use the next width."""
        factor = _width(self.step + 1) // self.width
        self.step += 1
        self.width *= factor
        counts: dict[int, int] = {}
        for bucket, count in self.counts.items():
            counts[bucket // factor] = counts.get(bucket // factor, 0) + count
        self.counts = counts

    def merge(self, other: TimeHistogram) -> None:
        while self.step < other.step:
            self.widen()
        for bucket, count in other.counts.items():
            self.add(bucket * other.width, count)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield the start (epoch ms) and the count of each non-empty bucket, in order."""
        return ((bucket * self.width, count) for bucket, count in sorted(self.counts.items()))

    @property
    def peak(self) -> tuple[int, int] | None:
        """The start (epoch ms) and the count of the fullest bucket; None if all are empty."""
        return max(self, key=lambda each: each[1], default=None)


def _width(step: int) -> int:
    last = len(WIDTHS) - 1
    return WIDTHS[step] if step <= last else WIDTHS[last] * 10 ** (step - last)
