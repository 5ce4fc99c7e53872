"""Reports what is outside the log once its segments are open: bytes after its end, segments below its start.

Source: LogSegment.readNextOffset, UnifiedLog.deleteLogStartOffsetBreachedSegments.
"""

from __future__ import annotations

from itertools import pairwise

from kdump.kafka.log_segment import LogEnd, LogSegment
from kdump.log.run import Limits
from kdump.questions.restart_plan.answer import HIDDEN
from kdump.questions.restart_plan.log_loading.log_files import LogFiles
from kdump.questions.restart_plan.log_loading.removed_bytes import removed_bytes


def report_hidden_bytes(last: LogSegment, end: LogEnd, files: LogFiles, limits: Limits) -> None:
    """Report the bytes of the last segment after the log end: they stay in the file, but are not part of the log.
    Raises SourceError."""
    if end.position >= last.size and end.highest < end.offset:
        return
    position = end.position
    if position == last.first:
        entry = last.offset_index().last_offset
        reason = f"the last index entry, offset {entry}, leads to no batch: the broker treats the log as empty"
    elif end.highest >= end.offset:
        position = last.position_of(end.offset)
        reason = f"the last batch goes back to offset {end.offset - 1}: the broker ends the log there"
    else:
        reason = "no batch starts there, and after a clean shutdown nothing is truncated"
    cut = removed_bytes(last, position, HIDDEN, reason, last.size, limits)
    if cut.loses or position > last.first:
        files.plan.cuts.append(cut)


def below_start(segments: list[LogSegment], log_start: int, files: LogFiles) -> None:
    """Report the segments that the first retention check after startup deletes because they are below the log start
    offset (UnifiedLog.deleteLogStartOffsetBreachedSegments)."""
    for segment, following in pairwise(segments):
        if following.base > log_start:
            return
        reason = f"entirely below the log start offset {log_start}: the first retention check deletes it"
        files.step("delete", segment.target.path, reason, offset=segment.base, size=segment.size)
