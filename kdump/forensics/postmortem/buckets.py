"""Counts bytes and records by an ascending number, an offset or a time, in a bounded number of buckets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kdump.forensics.histograms import WIDTHS

MAX_BUCKETS = 512
"""Maximum number of non-empty buckets; if there are more, buckets are made wider."""

WIDEST = 1 << 24
"""Largest offset range of one batch that is spread over buckets; a larger one is probably wrong, and counts at its
first offset."""


class Bucket(NamedTuple):
    """Bytes and records in first..last, both inclusive. `last` is the end of the bucket, even if no value reaches
    it."""

    first: int
    last: int
    bytes: int
    records: int


def doubling(step: int) -> int:
    """Return the width of offset buckets at `step`: 1, 2, 4 and so on."""
    return 1 << step


def of_time(step: int) -> int:
    """Return the width of time buckets at `step`, in ms: those of `kdump stats`, starting with one second."""
    last = len(WIDTHS) - 1
    return WIDTHS[step] if step <= last else WIDTHS[last] * 10 ** (step - last)


class Buckets:
    """Keeps only non-empty buckets, so that a single outlier adds one bucket and does not make the others wider."""

    __slots__ = ("counts", "max_buckets", "step", "widths")

    def __init__(self, widths: Callable[[int], int], max_buckets: int = MAX_BUCKETS) -> None:
        self.widths = widths
        self.max_buckets = max_buckets
        self.step = 0
        self.counts: dict[int, list[int]] = {}

    @property
    def width(self) -> int:
        return self.widths(self.step)

    def add(self, at: int, size: int, records: int) -> None:
        """Add bytes and records at one number."""
        bucket = at // self.width
        counted = self.counts.get(bucket)
        if counted is None:
            self.counts[bucket] = [size, records]
            while len(self.counts) > self.max_buckets:
                self.widen()
        else:
            counted[0] += size
            counted[1] += records

    def spread(self, first: int, last: int, size: int, records: int) -> None:
        """Add bytes and records spread evenly over first..last, both inclusive."""
        span = last - first + 1
        if not 0 < span <= WIDEST:
            self.add(first, size, records)
            return
        while span // self.width >= self.max_buckets:
            self.widen()
        width = self.width
        done_bytes = done_records = 0
        for bucket in range(first // width, last // width + 1):
            upto = min(last + 1, (bucket + 1) * width) - first
            self.add(bucket * width, size * upto // span - done_bytes, records * upto // span - done_records)
            done_bytes, done_records = size * upto // span, records * upto // span

    def widen(self) -> None:
        """Merge the buckets into fewer, wider ones."""
        factor = self.widths(self.step + 1) // self.width
        self.step += 1
        counts: dict[int, list[int]] = {}
        for bucket, (size, records) in self.counts.items():
            into = counts.setdefault(bucket // factor, [0, 0])
            into[0] += size
            into[1] += records
        self.counts = counts

    def merge(self, other: Buckets) -> None:
        """Add the counts of another object with the same widths."""
        while self.step < other.step:
            self.widen()
        for bucket, (size, records) in other.counts.items():
            self.add(bucket * other.width, size, records)

    def narrow(self, max_buckets: int) -> None:
        """Keep at most `max_buckets` buckets from now on."""
        self.max_buckets = max_buckets
        while len(self.counts) > max_buckets:
            self.widen()

    def __iter__(self) -> Iterator[Bucket]:
        """Yield the buckets in ascending order."""
        width = self.width
        for bucket, (size, records) in sorted(self.counts.items()):
            yield Bucket(bucket * width, (bucket + 1) * width - 1, size, records)


SHARE = 100
"""An outlier contains at most 1/SHARE of all records. It is further from the rest than 10 times the width of the
rest."""


def main_part(buckets: list[Bucket]) -> tuple[list[Bucket], list[Bucket]]:
    """Return the buckets that belong together, and the few outliers that would make a chart of all unreadable: a
    timestamp in the year 2106, an offset with a flipped bit. `buckets` in order."""
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
"""Share of the whole range that the widest gaps must exceed for it to be split at them."""


def eras(buckets: list[Bucket], max_eras: int = 4) -> list[list[Bucket]]:
    """Split `buckets` (in order) into at most `max_eras` parts, each for a chart of its own, if the gaps between them
    cover most of the range."""
    if len(buckets) < 2 or max_eras < 2:
        return [buckets]
    span = buckets[-1].last - buckets[0].first
    gaps = sorted(((buckets[at].first - buckets[at - 1].last, at) for at in range(1, len(buckets))), reverse=True)
    for count in range(1, min(max_eras, len(buckets))):
        if sum(gap for gap, _ in gaps[:count]) > EMPTY * span:
            cuts = sorted(at for _, at in gaps[:count])
            return [buckets[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(buckets)])]
    return [buckets]
