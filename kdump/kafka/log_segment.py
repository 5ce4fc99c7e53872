"""A segment while its log is loaded: its files, its current end, and its offset index.

Source: org.apache.kafka.storage.internals.log.LogSegment.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from kdump.format.kafka_release import NEWEST, KafkaRelease
from kdump.io import file_system
from kdump.io.source import SeekableSource
from kdump.io.window import Window
from kdump.kafka.errors import CorruptRecord, KafkaError
from kdump.kafka.file_log_input_stream import FileLogInputStream, RecordBatchView, read_batches
from kdump.kafka.file_records import search, search_by_last_offset
from kdump.kafka.offset_index import OffsetIndex, read_index
from kdump.kafka.producer_state_manager import Open, ProducerStateManager
from kdump.log.paths import Target, target
from kdump.log.segment_limits import MAX_RELATIVE_OFFSET
from kdump.state.releases import SEARCH_BY_BASE_OFFSET


class LogEnd(NamedTuple):
    """The end of a log as its broker computes it: the next offset, and the byte position after the last batch. If the
    index leads to no batch, they are the segment's base offset and first byte, as if it were empty. `highest`: the
    largest offset read on the way."""

    offset: int
    position: int
    highest: int


@dataclass
class LogSegment:
    """A segment. `size`: the byte of its .log at which it ends now. `index`: None until it is needed, and after it has
    been dropped from memory."""

    base: int
    target: Target
    size: int
    open: Open
    index: OffsetIndex | None = None
    rebuilt: bool = False
    """Whether recovery has rebuilt its indexes."""
    index_suffix: str = ""
    created: bool = False
    """Whether startup creates its file, which is then empty."""
    release: KafkaRelease = NEWEST
    """The release that reads it."""
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
            found = self.find(window, self.offset_index().last_offset)
            if found is None:
                return LogEnd(self.base, self.first, self.base - 1)
            last, highest = found, found.lastOffset
            for head in read_batches(window, found.position, self.size):
                last, highest = head, max(highest, head.lastOffset)
            return LogEnd(last.lastOffset + 1, last.end, highest)

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


def segment_at(path: str, base: int, open_: Open, suffix: str = "", release: KafkaRelease = NEWEST) -> LogSegment:
    """Return the segment whose .log is at `path`, or is created there."""
    created = not file_system.exists(path)
    return LogSegment(
        base,
        target(path),
        0 if created else file_system.stat(path).st_size,
        open_,
        None,
        False,
        suffix,
        created,
        release,
    )
