"""Bytes and records by offset or time, as they are drawn."""

from __future__ import annotations

from typing import NamedTuple

from kdump.forensics.histograms import Histogram


class Bucket(NamedTuple):
    """Bytes and records in first..last, both inclusive. `last` is the end of the bucket, even if no value reaches
    it."""

    first: int
    last: int
    bytes: int
    records: int


def buckets_of(histogram: Histogram) -> list[Bucket]:
    """Return the buckets in ascending order."""
    return [Bucket(first, first + histogram.width - 1, *amounts) for first, amounts in histogram]


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
