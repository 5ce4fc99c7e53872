"""Rebuilds producer state from the newest producer snapshot and the batches after it.

Source: UnifiedLog.rebuildProducerState (4.3.1).
"""

from __future__ import annotations

from collections.abc import Callable

from kdump.kafka.log_segment import LogSegment
from kdump.kafka.producer_state_manager import ProducerStateManager

Scanned = Callable[[LogSegment, int, int], None]
"""Called with each segment that was read, the first offset read, and the number of bytes."""


def rebuild_producers(
    state: ProducerStateManager, segments: list[LogSegment], log_start: int, end: int, clean: bool, scanned: Scanned
) -> None:
    """Rebuild `state` and its snapshots up to offset `end` (exclusive). Raises StartupFailed, SourceError."""
    bases = [segment.base for segment in segments]
    to_snapshot = [*sorted(bases)[-2:], end]
    if not state.snapshots.files and clean:
        for offset in to_snapshot:
            state.map_end = offset
            state.take_snapshot()
        return
    was_empty = not state.known and state.map_end >= end
    state.truncate_and_reload(log_start, end)
    if end > state.map_end and not was_empty:
        floor = max((base for base in bases if base <= end), default=None)
        start = max((base for base in bases if base <= state.map_end), default=-1)
        for segment in [each for each in segments if start <= each.base < end]:
            begin = max(segment.base, state.map_end, log_start)
            state.map_end = begin
            if segment.base in to_snapshot:
                state.take_snapshot()
            read = segment.load_producers(state, begin, end if segment.base == floor else None)
            if read:
                scanned(segment, begin, read)
    state.map_end = end
    state.take_snapshot()
