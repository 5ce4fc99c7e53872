"""Family log, timestamps: checks that no timestamp is more than a day after the file's modification time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timezone

from kdump.check.finding import Code, Finding
from kdump.check.rule import DAY, NONE, BatchContext, FindingMerger, Observer, SegmentContext
from kdump.core.column_numbers import MAX_TIMESTAMP
from kdump.core.header_columns import HeaderColumns, within
from kdump.format.count_text import plain_count

TIMESTAMP_IN_FUTURE = Code("timestamp-in-future")


LOWEST = -(1 << 63)


def utc(timestamp: int) -> str:
    """Return epoch ms as ISO 8601; outside the range of datetime, as milliseconds."""
    try:
        return datetime.fromtimestamp(timestamp / 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{timestamp} ms"


class TimestampRule(Observer):
    """Checks only maxTimestamp, which covers every record: another rule reports it if it is wrong."""

    def __init__(self) -> None:
        self.run = FindingMerger()
        self.largest = 0

    def batch(self, seen: BatchContext) -> Iterable[Finding]:
        timestamp = seen.batch.maxTimestamp
        if seen.is_valid and timestamp is not None and timestamp > seen.part.modified + DAY:
            self.largest = max(self.largest, timestamp) if self.run.first else timestamp
            self.run.add(seen)
            return NONE
        return list(self._report()) if self.run.first else NONE

    def first_suspect(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        return first if self.run.first else within(heads, MAX_TIMESTAMP, first, stop, LOWEST, part.modified + DAY)

    def finish(self, part: SegmentContext) -> Iterable[Finding]:
        return self._report()

    def _report(self) -> Iterator[Finding]:
        taken = self.run.take()
        if taken:
            first, count, end, _ = taken
            batch, modified = first.batch, first.part.modified
            batches = "a batch" if count == 1 else plain_count(count, "batch", "batches")
            message = f"timestamps up to {utc(self.largest)} in {batches}; the file was last changed {utc(modified)}"
            yield TIMESTAMP_IN_FUTURE.finding(
                first.part.target,
                message=message,
                position=batch.position,
                size=end - batch.position,
                offset=batch.lastOffset if batch.baseOffset is None else batch.baseOffset,
                expected=modified,
                actual=self.largest,
                case="until",
                values={"until": utc(self.largest)},
            )
