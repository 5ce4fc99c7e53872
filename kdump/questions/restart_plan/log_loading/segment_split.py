"""Splits a segment with an offset too far from its base offset into segments that fit their offsets (KAFKA-6264).

Source: LocalLog.splitOverflowedSegment, LogSegment.appendFromFile.
"""

from __future__ import annotations

from kdump.kafka.errors import Overflow
from kdump.kafka.file_log_input_stream import read_batches
from kdump.kafka.file_records import base_offset
from kdump.kafka.log_segment import LogSegment
from kdump.kafka.offset_index import OffsetIndex
from kdump.questions.restart_plan.answer import EXIT, StartupFailed, StartupFailure


def split(segment: LogSegment, error: Overflow) -> list[LogSegment]:
    """Return the segments that replace `segment`, as parts of its file; `error`: that of the batch that does not fit.
    Raises StartupFailed, KafkaError, SourceError."""
    segment.index = OffsetIndex(segment.base)
    last = segment.next_offset().offset - 1
    if last < segment.base or segment.fits(last):
        exception = "IllegalArgumentException: Split operation is only permitted for segments with overflow"
        message = f"offset {error.last_offset} does not fit into the segment, but its last offset {last} does"
        raise StartupFailed(_stop(segment, error.position, error.last_offset, message, exception))
    parts: list[LogSegment] = []
    with segment.window() as window:
        position = segment.first
        while position < segment.size:
            first = next(read_batches(window, position, segment.size), None)
            if first is None:
                message = "a segment that has to be split ends with an incomplete batch"
                raise StartupFailed(_stop(segment, position, None, message, "NoSuchElementException"))
            base = base_offset(window, first)
            part = LogSegment(
                base,
                segment.target,
                position,
                segment.open,
                OffsetIndex(base),
                True,
                "",
                False,
                segment.release,
                position,
            )
            for each in read_batches(window, position, segment.size):
                if not part.fits(each.lastOffset):
                    break
                part.size = each.end
            if part.size == position:
                message = "a batch does not fit into a segment named after its base offset"
                exception = f"IllegalStateException: Failed to append records from position {position}"
                raise StartupFailed(_stop(segment, position, base, message, exception))
            parts.append(part)
            position = part.size
    return parts


def _stop(segment: LogSegment, position: int, offset: int | None, message: str, exception: str) -> StartupFailure:
    path = segment.target.path
    remedy = f"truncate a copy of {path} at byte {position}, or salvage it"
    return StartupFailure(EXIT, path, position, offset, message, exception, remedy)
