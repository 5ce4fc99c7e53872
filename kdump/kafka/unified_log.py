"""What a log does with its segments and producer snapshots once it is loaded: the producer state that it rebuilds, and
the offset at which read_committed consumers stop.

Source: org.apache.kafka.storage.internals.log.UnifiedLog (rebuildProducerState, maybeIncrementFirstUnstableOffset,
convertToOffsetMetadataOrThrow), LogLoader.load, LocalLog.read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kdump.format.kafka_release import KafkaRelease
from kdump.kafka.file_log_input_stream import RecordBatchView
from kdump.kafka.file_records import base_offset
from kdump.kafka.log_segment import LogSegment
from kdump.kafka.producer_state_manager import ProducerStateManager, SnapshotFiles
from kdump.state.releases import OFFSET_OF_BATCH

Scanned = Callable[[LogSegment, int, int], None]
"""Called with each segment that was read, the first offset read, and the number of bytes."""


class LoadedLog(NamedTuple):
    """A log after a startup: its end offset, and the first offsets of its open transactions by producer ID, in
    ascending order."""

    end: int
    open: dict[int, int]


def load_clean(segments: Sequence[LogSegment], snapshots: SnapshotFiles, log_start: int, has_all: bool) -> LoadedLog:
    """Load a log that was shut down cleanly and whose segments all have their indexes. `has_all`: whether missing
    snapshots are known to be missing on the broker. Raises KafkaError, SourceError."""
    end = segments[-1].next_offset().offset
    if end < log_start:  # all segments are deleted
        return LoadedLog(log_start, {})
    snapshots.remove_stray([segment.base for segment in segments])
    state = ProducerStateManager(snapshots, segments[-1].release)
    rebuild_producers(state, segments, log_start, end, has_all, lambda *_: None)
    return LoadedLog(end, state.open)


def rebuild_producers(
    state: ProducerStateManager, segments: Sequence[LogSegment], log_start: int, end: int, clean: bool, scanned: Scanned
) -> None:
    """Rebuild `state` and its snapshots up to offset `end` (exclusive). Raises KafkaError, SourceError, and what
    its snapshots raise."""
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
        for segment in [segment for segment in segments if start <= segment.base < end]:
            begin = max(segment.base, state.map_end, log_start)
            state.map_end = begin
            if segment.base in to_snapshot:
                state.take_snapshot()
            read = segment.load_producers(state, begin, end if segment.base == floor else None)
            if read:
                scanned(segment, begin, read)
    state.map_end = end
    state.take_snapshot()


def batch_of(segments: Sequence[LogSegment], offset: int) -> tuple[LogSegment, RecordBatchView, int] | None:
    """Return the batch at which a read of `offset` begins, with its segment and base offset; None if there is none.
    Raises KafkaError, SourceError."""
    first = bisect_right([segment.base for segment in segments], offset) - 1
    for segment in segments[first:] if first >= 0 else ():
        with segment.window() as window:
            head = segment.find(window, offset)
            if head is not None:
                return segment, head, base_offset(window, head)
    return None


def first_unstable_offset(segments: Sequence[LogSegment], offset: int, end: int, release: KafkaRelease) -> int:
    """Return the last stable offset of a log that ends at `end`, and in which `offset` is the first offset of the
    earliest open transaction, or the log start offset above it. Raises KafkaError, SourceError."""
    if offset >= end:
        return end
    place = batch_of(segments, offset)
    if place is None:
        return end
    return min(place[2], end) if OFFSET_OF_BATCH.applies(release) else offset
