"""Counts of records by period, key or producer: `kdump stats --by`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone, tzinfo
from typing import Annotated, NamedTuple

from kdump.answer import BYTES, EPOCH_MS, Doc, answer
from kdump.log.histograms import Histogram
from kdump.questions.stats.answer import TopKey, TopProducer, key_count, producer_count
from kdump.questions.stats.totals import Stats

PERIODS = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000}
"""Periods, in ms."""
BY = (*PERIODS, "key", "producer")
QUARTER = 900_000
"""Ms; the offset of a time zone is a multiple of this, so a local hour or day consists of whole quarters."""
MAX_PERIODS = 100_000
"""Maximum number of periods with records, for which 20 MB are enough: 11 years of hours."""


@answer("periodCount")
class PeriodCount(NamedTuple):
    """The records of a minute, an hour or a day, of all selected partitions: `kdump stats --by hour`."""

    timestamp: Annotated[
        int | None, Doc("its start, in the time zone of --tz; null for records without a valid timestamp", EPOCH_MS)
    ]
    records: Annotated[int, Doc("number of data records")]
    bytes: Annotated[int, Doc("size of these records, uncompressed", BYTES)]


ROWS: dict[str, type] = {**dict.fromkeys(PERIODS, PeriodCount), "key": TopKey, "producer": TopProducer}
"""The class of the rows by what is counted."""


class PeriodCounts(Histogram):
    """Counts records and their bytes by periods of a time zone; `counts` by the start of the period. `left_out`:
    records of further periods, if there are more than MAX_PERIODS."""

    weighs = True

    def __init__(self, period: str, zone: tzinfo) -> None:
        super().__init__()
        self.period, self.zone = period, zone
        self.width = PERIODS[period] if zone is timezone.utc else min(QUARTER, PERIODS[period])
        self.left_out = 0
        self._quarter, self._start = 0, self._start_of(0)

    def add(self, at: int, amount: int, *others: int) -> None:
        quarter = at // self.width * self.width
        if quarter != self._quarter:
            self._quarter, self._start = quarter, self._start_of(quarter)
        self._add(self._start, amount, sum(others))

    def _add(self, start: int, amount: int, size: int) -> None:
        held = self.counts.get(start)
        if held is not None:
            held[0] += amount
            held[1] += size
        elif len(self.counts) < MAX_PERIODS:
            self.counts[start] = [amount, size]
        else:
            self.left_out += amount

    def _start_of(self, quarter: int) -> int:
        """Return the start of the period with these ms."""
        if self.zone is timezone.utc or self.period == "minute":
            return quarter
        try:
            local = datetime.fromtimestamp(quarter / 1000, self.zone)
            start = local.replace(minute=0) if self.period == "hour" else local.replace(hour=0, minute=0)
            return round(start.timestamp() * 1000)
        except (ValueError, OverflowError, OSError):  # no such year
            return quarter // PERIODS[self.period] * PERIODS[self.period]

    def merge(self, other: Histogram) -> None:
        """Add the counts of the same periods; the sums of a bundle have others, and nothing is taken from them."""
        if isinstance(other, PeriodCounts):
            self.left_out += other.left_out
            for start, (amount, size) in other.counts.items():
                self._add(start, amount, size)


def rows(by: str, total: Stats, limit: int) -> Iterator[PeriodCount | TopKey | TopProducer]:
    """Yield the counts of all partitions together: periods in order, at most `limit` keys or producers by records."""
    if by == "key":
        yield from (key_count(total, frequent) for frequent in total.keys.top(limit))
    elif by == "producer":
        yield from (producer_count(total, frequent) for frequent in total.producers.top(limit))
    else:
        counts = total.moments.counts
        yield from (PeriodCount(start, *counts[start]) for start in sorted(counts))
        if total.untimed:
            timed = sum(size for _, size in counts.values())
            yield PeriodCount(None, total.untimed, total.recordBytes - timed)
