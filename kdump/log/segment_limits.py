"""Limits of a segment, which a broker counts in 31 bits: org.apache.kafka.common.record.FileRecords for its size,
LogSegment.canConvertToRelativeOffset for its offsets."""

from __future__ import annotations

MAX_SEGMENT_SIZE = (1 << 31) - 1
"""Size of the largest segment that a broker opens, in bytes."""
MAX_RELATIVE_OFFSET = (1 << 31) - 1
"""Largest distance of an offset in a segment from the base offset in its name."""
