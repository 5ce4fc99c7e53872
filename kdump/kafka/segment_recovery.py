"""Recovers one segment: checks every batch, rebuilds the indexes, and truncates the file at the first invalid batch.

Source: org.apache.kafka.storage.internals.log.LogSegment.recover, OffsetIndex.append, TimeIndex.maybeAppend.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kdump.kafka.errors import CorruptRecord
from kdump.kafka.file_log_input_stream import RecordBatchView, read_batches
from kdump.kafka.file_records import ensure_valid
from kdump.kafka.leader_epoch_file_cache import LeaderEpochFileCache
from kdump.kafka.log_segment import LogSegment
from kdump.kafka.offset_index import OffsetIndexWriter
from kdump.kafka.producer_state_manager import ProducerStateManager
from kdump.log.window import Window

INTERVAL = 4096
"""Default of index.interval.bytes."""


@dataclass
class Recovered:
    """What recovery found. `valid`: bytes before the first invalid batch; `last`: the last valid batch. `reason`: why
    recovery stopped there; empty at the end of the file, or if the bytes left are not a complete batch."""

    valid: int
    last: RecordBatchView | None = None
    reason: str = ""


class InvalidOffset(Exception):
    """Kafka's InvalidOffsetException: offsets are not in ascending order where an index entry is due. Recovery of
    unflushed segments then empties the whole segment; if it happens while segments are opened, the broker exits."""

    def __init__(self, head: RecordBatchView, before: int) -> None:
        super().__init__(f"offset {head.last} follows offset {before}, which no index can store")
        self.head = head


class Overflow(Exception):
    """Kafka's LogSegmentOffsetOverflowException: an offset is below the segment's base offset, or too far above it. The
    segment is split."""

    def __init__(self, head: RecordBatchView, segment: LogSegment) -> None:
        super().__init__(f"offset {head.last} in segment {segment.base}")
        self.head = head
        self.segment = segment


def recover(
    segment: LogSegment,
    state: ProducerStateManager,
    epochs: LeaderEpochFileCache,
    interval: int,
    on_progress: Callable[[int], None],
) -> Recovered:
    """Perform LogSegment.recover: truncate the segment, and replace its index. Raises InvalidOffset, Overflow,
    RejectedBatch, SourceError."""
    with segment.window() as window:
        return _Recovery(segment, state, epochs, interval, window, on_progress).run()


class _Recovery:
    def __init__(
        self,
        segment: LogSegment,
        state: ProducerStateManager,
        epochs: LeaderEpochFileCache,
        interval: int,
        window: Window,
        on_progress: Callable[[int], None],
    ) -> None:
        self.segment, self.state, self.epochs = segment, state, epochs
        self.interval, self.window, self.on_progress = interval, window, on_progress
        self.index = OffsetIndexWriter(segment.base)
        self.indexed_at = segment.first
        self.newest, self.newest_offset = -1, segment.base
        self.in_time_index, self.time_offset, self.time_entries = -1, segment.base, 0

    def run(self) -> Recovered:
        segment = self.segment
        found = Recovered(segment.first)
        try:
            for head in read_batches(self.window, segment.first, segment.size, whole=True):
                ensure_valid(self.window, head)
                if not segment.fits(head.last):
                    raise Overflow(head, segment)
                self._index(head, found.valid)
                found.valid, found.last = head.end, head
                self.on_progress(head.size)
                if head.header is not None:
                    self._epoch(head)
                    if head.header.producerId >= 0:
                        self.state.append(self.window, head)
                    self.state.map_end = head.last + 1
        except CorruptRecord as error:
            found.reason = str(error)
        if found.last is not None:
            self._time_index(found.last)
        segment.size = found.valid
        segment.index, segment.rebuilt = self.index.index(), True
        return found

    def _index(self, head: RecordBatchView, position: int) -> None:
        newest = self._newest(head)
        if newest > self.newest:
            self.newest, self.newest_offset = newest, head.last
        if position - self.indexed_at <= self.interval:
            return
        if not self.index.is_empty and head.last <= self.index.last_offset:
            raise InvalidOffset(head, self.index.last_offset)
        self.index.append(head.last, position)
        self._time_index(head)
        self.indexed_at = position

    def _time_index(self, head: RecordBatchView) -> None:
        """Add a time index entry if the timestamp is larger. Raises InvalidOffset if its offset would be smaller."""
        if self.time_entries and self.newest_offset < self.time_offset:
            raise InvalidOffset(head, self.time_offset)
        if self.newest > self.in_time_index:
            self.in_time_index, self.time_offset = self.newest, self.newest_offset
            self.time_entries += 1

    def _newest(self, head: RecordBatchView) -> int:
        if head.header is not None:
            return head.header.maxTimestamp
        if head.magic < 1:
            return -1
        return int.from_bytes(self.window.view(head.position + 18, 8), "big", signed=True)

    def _epoch(self, head: RecordBatchView) -> None:
        assert head.header is not None
        epoch, latest = head.header.partitionLeaderEpoch, self.epochs.latest
        if epoch >= 0 and (latest is None or epoch > latest):
            self.epochs.assign(epoch, head.base)
