"""Family files, size of a segment: a broker opens no .log above 2^31 - 1 bytes.

Source: FileRecords checks the size of every segment when LogLoader.loadSegmentFiles opens it."""

from __future__ import annotations

from collections.abc import Iterable

from kdump.check.finding import Code, Finding
from kdump.check.rule import NONE, Observer, SegmentContext
from kdump.log.segment_limits import MAX_SEGMENT_SIZE

SEGMENT_TOO_LARGE = Code("segment-too-large")


class SegmentSizeRule(Observer):
    """Checks the size of each segment."""

    def begin(self, part: SegmentContext) -> Iterable[Finding]:
        size = part.size
        if size is None or size <= MAX_SEGMENT_SIZE:
            return NONE
        message = f"the segment has {size} bytes, the maximum is {MAX_SEGMENT_SIZE}"
        return [SEGMENT_TOO_LARGE.finding(part.target, message=message, expected=MAX_SEGMENT_SIZE, actual=size)]
