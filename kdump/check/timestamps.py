"""Family log, timestamps: checks that no timestamp is more than a day after the file's modification time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timezone

from kdump.check.finding import Finding, found
from kdump.check.rule import DAY, NONE, BatchContext, FindingMerger, Rule, SegmentContext
from kdump.format.header_columns import MAX_TIMESTAMP, HeaderColumns, within

LOWEST = -(1 << 63)


def utc(timestamp: int) -> str:
    """Return epoch ms as ISO 8601; outside the range of datetime, as milliseconds."""
    try:
        return datetime.fromtimestamp(timestamp / 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{timestamp} ms"


class Timestamps(Rule):
    """Checks only maxTimestamp, which covers every record: another rule reports it if it is wrong."""

    def __init__(self) -> None:
        self.run = FindingMerger()
        self.largest = 0

    def batch(self, seen: BatchContext) -> Iterable[Finding]:
        timestamp = seen.batch.maxTimestamp
        if seen.sound and timestamp is not None and timestamp > seen.part.modified + DAY:
            self.largest = max(self.largest, timestamp) if self.run.first else timestamp
            self.run.add(seen)
            return NONE
        return list(self._told()) if self.run.first else NONE

    def free(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        return first if self.run.first else within(heads, MAX_TIMESTAMP, first, stop, LOWEST, part.modified + DAY)

    def finish(self, part: SegmentContext) -> Iterable[Finding]:
        return self._told()

    def _told(self) -> Iterator[Finding]:
        taken = self.run.take()
        if taken:
            first, count, end, _ = taken
            batch, modified = first.batch, first.part.modified
            batches = "a batch" if count == 1 else f"{count} batches"
            message = f"timestamps up to {utc(self.largest)} in {batches}; the file was last changed {utc(modified)}"
            yield found(
                "timestamp-in-future",
                first.part.target,
                message,
                position=batch.position,
                size=end - batch.position,
                offset=batch.lastOffset if batch.baseOffset is None else batch.baseOffset,
                expected=modified,
                actual=self.largest,
                consequence="time-based retention keeps this segment, and every later one, until retention.ms after "
                f"{utc(self.largest)}",
            )
