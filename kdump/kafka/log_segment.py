"""A segment while its log is loaded: its files, its current end, its offset index; and its recovery, which checks every
batch, rebuilds the indexes, and truncates the file at the first invalid batch.

Source: org.apache.kafka.storage.internals.log.LogSegment (recover); LogLoader.recoverLog."""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

from kdump.format.kafka_release import NEWEST, KafkaRelease
from kdump.io.directory_listing import length
from kdump.io.errors import SourceError
from kdump.io.run import Run
from kdump.io.source import SeekableSource
from kdump.io.window import Window
from kdump.kafka.errors import CorruptRecord, KafkaError
from kdump.kafka.file_log_input_stream import FileLogInputStream, RecordBatchView, read_batches
from kdump.kafka.file_records import ensure_valid, search, search_by_last_offset
from kdump.kafka.index_builder import IndexBuilder
from kdump.kafka.leader_epoch_file_cache import LeaderEpochFileCache
from kdump.kafka.offset_index import OffsetIndex, read_index
from kdump.kafka.producer_state_manager import ProducerStateManager
from kdump.log.live_files import Open
from kdump.log.paths import Target
from kdump.log.segment_limits import MAX_RELATIVE_OFFSET
from kdump.state.releases import SEARCH_BY_BASE_OFFSET


class LogEnd(NamedTuple):
    """The end of a log as its broker computes it: the next offset, and the byte position after the last batch. If the
    index leads to no batch, they are the segment's base offset and first byte, as if it were empty. `highest`: the
    largest offset read on the way; `last`: the first byte of the last batch."""

    offset: int
    position: int
    highest: int
    last: int


@dataclass
class LogSegment:
    """A segment. `size`: the byte of its .log at which it ends now. `index`: None until it is needed, and after it has
    been dropped from memory."""

    base: int
    target: Target
    size: int
    open: Open
    index: OffsetIndex | None = None
    _: KW_ONLY
    rebuilt: bool = False
    """Whether recovery has rebuilt its indexes."""
    index_suffix: str = ""
    created: bool = False
    """Whether startup creates its file, which is then empty."""
    release: KafkaRelease = NEWEST
    """The release that reads it."""
    newest: int | None = None
    """The largest timestamp (epoch ms) as far as startup reads it: of the batches that it recovers, or by the
    .timeindex that it uses; None without one."""
    first: int = 0
    """The byte of its .log at which it begins: above 0 only for a part of a segment that was split."""

    @property
    def stem(self) -> str:
        return self.target.path.removesuffix(self.index_suffix).removesuffix(".log")

    def offset_index(self) -> OffsetIndex:
        """Return the index, which is read if necessary. Raises SourceError."""
        if self.index is None:
            # One that was rebuilt and dropped is treated as empty: lookups then start at the segment's first byte.
            path = self.stem + ".index" + self.index_suffix
            self.index = OffsetIndex(self.base) if self.rebuilt else read_index(path, self.base)
        return self.index

    @contextmanager
    def window(self) -> Iterator[Window]:
        """Open the segment's file; a KafkaError that is raised until it is closed names it. Raises SourceError."""
        window = Window(SeekableSource(self.target.path, io.BytesIO())) if self.created else self.open(self.target)
        try:
            yield window
        except KafkaError as error:
            error.file = error.file or self.target.path
            raise
        finally:
            window.source.close()

    def fits(self, offset: int) -> bool:
        """Return True if an index can store the offset: relative to the base offset, in 31 bits."""
        return 0 <= offset - self.base <= MAX_RELATIVE_OFFSET

    def find(self, window: Window, offset: int) -> RecordBatchView | None:
        """Return the batch that LogSegment.translateOffset finds, None if it finds none. Raises KafkaError,
        SourceError."""
        _, position = self.offset_index().lookup(offset)
        start = max(position, self.first)  # a negative position in an index counts as 0
        if not SEARCH_BY_BASE_OFFSET.applies(self.release):
            return search_by_last_offset(window, offset, start, self.size)
        return search(window, offset, start, self.size)

    def next_offset(self) -> LogEnd:
        """Return the log end as LogSegment.readNextOffset computes it. Raises KafkaError, SourceError."""
        with self.window() as window:
            first = self.find(window, self.offset_index().last_offset)
            if first is None:
                return LogEnd(self.base, self.first, self.base - 1, self.first)
            last, highest = first, first.lastOffset
            for head in read_batches(window, first.position, self.size):
                last, highest = head, max(highest, head.lastOffset)
            return LogEnd(last.lastOffset + 1, last.end, highest, last.position)

    def newest_at_end(self) -> int:
        """Return the largest timestamp (epoch ms) of the batches from the one on to which the last index entry leads,
        -1 if there is none, or if they cannot be read."""
        with suppress(KafkaError, SourceError), self.window() as window:
            first = self.find(window, self.offset_index().last_offset)
            if first is not None:
                return max(head.maxTimestamp or -1 for head in read_batches(window, first.position, self.size))
        return -1

    def checked_end(self) -> int:
        """Return the offset after the last batch before the first that a recovery takes for invalid. Raises KafkaError,
        SourceError."""
        end = self.base
        with self.window() as window, suppress(CorruptRecord):
            for head in read_batches(window, self.first, self.size, whole=True):
                ensure_valid(window, head)
                end = head.lastOffset + 1
        return end

    def position_of(self, offset: int) -> int:
        """Return the position of the first batch whose last offset is at or above `offset`, or of an invalid batch
        before it; the segment's end if there is neither. Raises SourceError."""
        with self.window() as window:
            try:
                for head in read_batches(window, self.first, self.size):
                    if head.lastOffset >= offset:
                        return head.position
            except CorruptRecord as error:
                return error.position
        return self.size

    def load_producers(self, state: ProducerStateManager, start: int, stop: int | None) -> int:
        """Update `state` with the batches from offset `start` to the batch of offset `stop` (exclusive), or to the end
        if `stop` is None (UnifiedLog.loadProducersFromRecords). Return the number of bytes read. Raises KafkaError,
        SourceError."""
        with self.window() as window:
            end = self.size
            if stop is not None:
                last = self.find(window, stop)
                end = self.size if last is None else last.position
            first = self.find(window, start)
            if first is None or first.position >= end:
                return 0
            stream = FileLogInputStream(window)
            for head in read_batches(window, first.position, end):
                state.append(head, stream)
            return end - first.position


def segment_at(
    log: Target, base: int, open_: Open, suffix: str = "", release: KafkaRelease = NEWEST, *, created: bool = False
) -> LogSegment:
    """Return the segment with this .log, which may be created there."""
    return LogSegment(base, log, length(log.path) or 0, open_, index_suffix=suffix, created=created, release=release)


class Recovered(NamedTuple):
    """What recovery found. `valid`: bytes before the first invalid batch. `reason`: why recovery stopped there; empty
    at the end of the file, or if the bytes left are not a complete batch. `before`: the last offset of the batch before
    the last valid one; None if there is none."""

    valid: int
    reason: str
    before: int | None


def first_unflushed(bases: Sequence[int], recovery_point: int) -> int:
    """Return the number of the first segment that a startup after an unclean shutdown recovers: the one that contains
    the recovery point, or the first of all if none does. `bases`: the base offsets of all, ascending."""
    return max(0, bisect_right(bases, recovery_point) - 1)


def recover(
    segment: LogSegment,
    state: ProducerStateManager,
    epochs: LeaderEpochFileCache,
    interval: int,
    largest: int,
    run: Run,
) -> Recovered:
    """Perform LogSegment.recover: truncate the segment, and replace its index. `interval` is index.interval.bytes,
    `largest` segment.index.bytes. Raises KafkaError, SourceError."""
    builder = IndexBuilder(segment.base, interval, largest=largest, transactions=state, first=segment.first)
    valid, reason = segment.first, ""
    before = last = None
    with segment.window() as window:
        stream = FileLogInputStream(window)
        try:
            for head in read_batches(window, segment.first, segment.size, whole=True):
                ensure_valid(window, head)
                builder.index(head)
                valid, before, last = head.end, last, head.lastOffset
                run.more(head.size)
                if head.header is not None:
                    epoch, latest = head.header.partitionLeaderEpoch, epochs.latest
                    if epoch >= 0 and (latest is None or epoch > latest):
                        epochs.assign(epoch, head.baseOffset)
                    builder.update_producers(head, stream)
                    state.map_end = head.lastOffset + 1
        except CorruptRecord as error:
            reason = str(error)
        rebuilt = builder.finish()
    segment.size = valid
    segment.newest = builder.last_timestamp if builder.last_timestamp >= 0 else None
    segment.index, segment.rebuilt = OffsetIndex(segment.base, rebuilt.index), True
    return Recovered(valid, reason, before)
