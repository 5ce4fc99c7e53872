"""Distributions: sizes by powers of two, times and offsets by buckets that widen as needed."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, NamedTuple

from kdump.answer import Doc
from kdump.core.record_counts import LATE

SIZES = 34
"""Number of size classes: 0, 1, 2..3, 4..7, and so on; the last contains all sizes from 2^32 on."""
WIDTHS = (1_000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000)
"""Widths of time buckets in ms, each a multiple of the one before; after the last, each is ten times as wide."""
MAX_BUCKETS = 2048
"""Maximum number of non-empty buckets; if there are more, buckets are made wider."""
WIDEST = 1 << 24
"""Largest offset range of one batch that is spread over buckets; a larger one is probably wrong, and counts at its
first offset."""


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
    for size_class in size_classes(counts):
        done += size_class.amount
        if size_class.amount and done >= half:
            return size_class
    return None


def late_classes(counts: array[int]) -> list[SizeClass]:
    """Return the late records by lateness in ms, from the first non-empty class to the last."""
    edges = (0, *LATE)
    tops: list[int | None] = [*LATE, None]
    classes = [SizeClass(low + 1, high, count) for low, high, count in zip(edges, tops, counts[1:])]
    filled = [number for number, size_class in enumerate(classes) if size_class.amount]
    return classes[filled[0] : filled[-1] + 1] if filled else []


def of_time(step: int) -> int:
    """Return the width of time buckets at `step`, in ms; the first ones are one second wide."""
    last = len(WIDTHS) - 1
    return WIDTHS[step] if step <= last else WIDTHS[last] * 10 ** (step - last)


def doubling(step: int) -> int:
    """Return the width of offset buckets at `step`: 1, 2, 4 and so on."""
    return 1 << step


class Histogram:
    """Adds up amounts by an ascending number, an offset or a time. Keeps only non-empty buckets, so that a single
    outlier adds one bucket and does not make the others wider; if there are more than `max_buckets`, all are made
    wider. `widths`: the width of buckets at a step; `counts`: by number of the bucket, the amounts."""

    weighs = False
    """Whether records are added with their bytes."""

    def __init__(self, widths: Callable[[int], int] = of_time, max_buckets: int = MAX_BUCKETS) -> None:
        self.widths, self.max_buckets = widths, max_buckets
        self.counts: dict[int, list[int]] = {}
        self.step = 0
        self.width = widths(0)

    def add(self, at: int, amount: int, *others: int) -> None:
        """Add amounts at one number. Called for millions of records, with one."""
        held = self.counts.get(at // self.width)
        if held is None:
            self.counts[at // self.width] = [amount, *others]
            while len(self.counts) > self.max_buckets:
                self.widen()
            return
        held[0] += amount
        if others:
            self.join(held, others)

    def join(self, held: list[int], others: Sequence[int]) -> None:
        """Add all amounts but the first to those of another bucket."""
        for number, amount in enumerate(others, 1):
            held[number] += amount

    def spread(self, first: int, last: int, *amounts: int) -> None:
        """Add amounts spread evenly over first..last, both inclusive."""
        span = last - first + 1
        if not 0 < span <= WIDEST:
            self.add(first, *amounts)
            return
        while span // self.width >= self.max_buckets:
            self.widen()
        width, done = self.width, [0] * len(amounts)
        for bucket in range(first // width, last // width + 1):
            upto = min(last + 1, (bucket + 1) * width) - first
            reached = [amount * upto // span for amount in amounts]
            self.add(bucket * width, *(each - before for each, before in zip(reached, done)))
            done = reached

    def at_step(self, step: int) -> dict[int, list[int]]:
        """Return the amounts of buckets as wide as those of a later step."""
        factor = self.widths(step) // self.width
        counts: dict[int, list[int]] = {}
        for bucket, amounts in self.counts.items():
            held = counts.get(bucket // factor)
            if held is None:
                counts[bucket // factor] = list(amounts)
            else:
                held[0] += amounts[0]
                self.join(held, amounts[1:])
        return counts

    def widen(self) -> None:
        """Merge the buckets into fewer, wider ones."""
        self.counts = self.at_step(self.step + 1)
        self.step += 1
        self.width = self.widths(self.step)

    def merge(self, other: Histogram) -> None:
        """Add the amounts of another histogram with the same widths."""
        while self.step < other.step:
            self.widen()
        for bucket, amounts in other.counts.items():
            self.add(bucket * other.width, *amounts)

    def __iter__(self) -> Iterator[tuple[int, list[int]]]:
        """Yield the start and the amounts of each non-empty bucket, in order."""
        return ((bucket * self.width, amounts) for bucket, amounts in sorted(self.counts.items()))
