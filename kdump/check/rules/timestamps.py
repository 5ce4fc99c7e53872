"""Family log, timestamps: checks that no timestamp is more than a day after the file's modification time, or long
before it. Producers that send seconds, microseconds or nanoseconds are recognized by that time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timezone

from kdump.check.finding import INFO, Code, Finding
from kdump.check.rule import DAY, NONE, BatchContext, FindingMerger, Observer, SegmentContext
from kdump.core.column_numbers import MAX_TIMESTAMP
from kdump.core.header_columns import HeaderColumns, within
from kdump.format.count_text import plain_count

TIMESTAMP_IN_FUTURE = Code("timestamp-in-future")
TIMESTAMP_IN_PAST = Code("timestamp-in-past")


LONG = 3650 * DAY
"""How long before the file's modification time a timestamp is a finding: ten years. Records of an import, or of a
replica that was fetched again, are often older than the file."""
UNITS = (("seconds", 1000, 1), ("microseconds", 1, 1000), ("nanoseconds", 1, 1_000_000))
"""Other units than ms: what to multiply by, and to divide by."""


def utc(timestamp: int) -> str:
    """Return epoch ms as ISO 8601; outside the range of datetime, as milliseconds."""
    try:
        return datetime.fromtimestamp(timestamp / 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{timestamp} ms"


def other_unit(timestamp: int, modified: int) -> tuple[str, int] | None:
    """Return the unit in which a timestamp, in ms neither near nor shortly before the file's modification time, is so,
    and what it is in ms; None if there is none."""
    for unit, times, divisor in UNITS:
        converted = timestamp * times // divisor
        if modified - LONG <= converted <= modified + DAY:
            return unit, converted
    return None


def is_long_before(timestamp: int, modified: int) -> bool:
    """Return True if a timestamp, in ms, is more than ten years before the file's modification time; -1 is none."""
    return 0 <= timestamp < modified - LONG


class TimestampRule(Observer):
    """Checks only maxTimestamp, which covers every record: another rule reports it if it is wrong."""

    def __init__(self) -> None:
        self.run = FindingMerger()
        self.largest = 0
        self.code = TIMESTAMP_IN_FUTURE

    def batch(self, seen: BatchContext) -> Iterable[Finding]:
        timestamp = seen.batch.maxTimestamp
        code = None if timestamp is None or not seen.is_valid else _code(timestamp, seen.part.modified)
        before = list(self._report()) if self.run.first and code is not self.code else NONE
        if code is not None and timestamp is not None:
            self.largest = max(self.largest, timestamp) if self.run.first else timestamp
            self.code = code
            self.run.add(seen)
        return before

    def first_suspect(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        if self.run.first:
            return first
        return within(heads, MAX_TIMESTAMP, first, stop, part.modified - LONG, part.modified + DAY)

    def finish(self, part: SegmentContext) -> Iterable[Finding]:
        return self._report()

    def _report(self) -> Iterator[Finding]:
        taken = self.run.take()
        if taken:
            first, count, end, _ = taken
            batch, modified = first.batch, first.part.modified
            batches = "a batch" if count == 1 else plain_count(count, "batch", "batches")
            message = f"timestamps up to {utc(self.largest)} in {batches}; the file was last changed {utc(modified)}"
            unit = other_unit(self.largest, modified)
            if unit is not None:
                message += f": read as {unit[0]}, they are up to {utc(unit[1])}"
            is_future = self.code is TIMESTAMP_IN_FUTURE
            yield self.code.finding(
                first.part.target,
                message=message,
                position=batch.position,
                size=end - batch.position,
                offset=batch.lastOffset if batch.baseOffset is None else batch.baseOffset,
                expected=modified,
                actual=self.largest,
                severity=None if is_future or unit is not None else INFO,
                case="until" if is_future else "",
                values={"until": utc(self.largest)} if is_future else {},
                facts={"otherUnit": unit is not None},
            )


def _code(timestamp: int, modified: int) -> Code | None:
    """Return the code of the finding for a timestamp."""
    if timestamp > modified + DAY:
        return TIMESTAMP_IN_FUTURE
    return TIMESTAMP_IN_PAST if is_long_before(timestamp, modified) else None
