"""Bytes and records by a number that grows, an offset or a time, in a bounded number of buckets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kdump.forensics.spread import WIDTHS

MOST = 512
"""Buckets with something in them, beyond which they are made wider."""

WIDEST = 1 << 24
"""Offsets of one batch that are believed."""


class Bucket(NamedTuple):
    """first..last, both included, and what lies in it. `last` of an offset's bucket is that of the whole bucket."""

    first: int
    last: int
    bytes: int
    records: int


def doubling(step: int) -> int:
    """Widths for offsets: 1, 2, 4 and so on."""
    return 1 << step


def of_time(step: int) -> int:
    """Widths for epoch ms: those that `kdump stats` takes, a second at first."""
    last = len(WIDTHS) - 1
    return WIDTHS[step] if step <= last else WIDTHS[last] * 10 ** (step - last)


class Buckets:
    """Only buckets with something in them are kept, so that one number that is far off costs one bucket and makes no
    other wider."""

    __slots__ = ("counts", "most", "step", "widths")

    def __init__(self, widths: Callable[[int], int], most: int = MOST) -> None:
        self.widths = widths
        self.most = most
        self.step = 0
        self.counts: dict[int, list[int]] = {}

    @property
    def width(self) -> int:
        return self.widths(self.step)

    def add(self, at: int, size: int, records: int) -> None:
        """So many bytes and records at a number."""
        bucket = at // self.width
        counted = self.counts.get(bucket)
        if counted is None:
            self.counts[bucket] = [size, records]
            while len(self.counts) > self.most:
                self.widen()
        else:
            counted[0] += size
            counted[1] += records

    def spread(self, first: int, last: int, size: int, records: int) -> None:
        """So many bytes and records over the numbers first..last, alike on each."""
        span = last - first + 1
        if not 0 < span <= WIDEST:
            self.add(first, size, records)
            return
        while span // self.width >= self.most:
            self.widen()
        width = self.width
        done_bytes = done_records = 0
        for bucket in range(first // width, last // width + 1):
            upto = min(last + 1, (bucket + 1) * width) - first
            self.add(bucket * width, size * upto // span - done_bytes, records * upto // span - done_records)
            done_bytes, done_records = size * upto // span, records * upto // span

    def widen(self) -> None:
        """Fewer and wider buckets."""
        factor = self.widths(self.step + 1) // self.width
        self.step += 1
        counts: dict[int, list[int]] = {}
        for bucket, (size, records) in self.counts.items():
            into = counts.setdefault(bucket // factor, [0, 0])
            into[0] += size
            into[1] += records
        self.counts = counts

    def merge(self, other: Buckets) -> None:
        """Take in what another of the same widths has counted."""
        while self.step < other.step:
            self.widen()
        for bucket, (size, records) in other.counts.items():
            self.add(bucket * other.width, size, records)

    def narrow(self, most: int) -> None:
        """At most so many from now on."""
        self.most = most
        while len(self.counts) > most:
            self.widen()

    def __iter__(self) -> Iterator[Bucket]:
        """In order."""
        width = self.width
        for bucket, (size, records) in sorted(self.counts.items()):
            yield Bucket(bucket * width, (bucket + 1) * width - 1, size, records)


SHARE = 100
"""What is far off may hold at most one in so many of all records, and be as many times away as the rest is wide."""


def main_part(buckets: list[Bucket]) -> tuple[list[Bucket], list[Bucket]]:
    """Those that belong together, and the few that lie so far off that a chart of all would show nothing else: a
    timestamp of the year 2106, an offset with a flipped bit. `buckets` in order."""
    kept, far = list(buckets), []
    total = sum(each.records for each in kept)
    while len(kept) > 1:
        first, second, before, last = kept[0], kept[1], kept[-2], kept[-1]
        if _is_far(second.first - first.last, last.last - second.first, first.records, total):
            far.append(kept.pop(0))
        elif _is_far(last.first - before.last, before.last - first.first, last.records, total):
            far.append(kept.pop())
        else:
            break
    return kept, sorted(far)


def _is_far(away: int, rest: int, records: int, total: int) -> bool:
    return away > 10 * max(1, rest) and records * SHARE <= total


EMPTY = 0.8
"""The share of a stretch that its widest gaps may be, before it falls into several."""


def eras(buckets: list[Bucket], most: int = 4) -> list[list[Bucket]]:
    """What is told of in charts of its own, for between lies much more nothing than something: at most so many parts,
    `buckets` in order."""
    if len(buckets) < 2 or most < 2:
        return [buckets]
    span = buckets[-1].last - buckets[0].first
    gaps = sorted(((buckets[at].first - buckets[at - 1].last, at) for at in range(1, len(buckets))), reverse=True)
    for count in range(1, min(most, len(buckets))):
        if sum(gap for gap, _ in gaps[:count]) > EMPTY * span:
            cuts = sorted(at for _, at in gaps[:count])
            return [buckets[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(buckets)])]
    return [buckets]
