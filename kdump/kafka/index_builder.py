"""Builds the bytes of a segment's .index, .timeindex and .txnindex from its batches, one by one.

Source: org.apache.kafka.storage.internals.log.LogSegment.recover, with OffsetIndex.append, TimeIndex.maybeAppend,
ProducerAppendInfo.append (as AppendOrigin.REPLICATION) and TransactionIndex.append. Recovery processes each batch by
itself in every release. So does LogSegment.append of a running broker since 4.1, which writes the same entries unless
there is a restart or a truncation within the segment: either restarts the index interval."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from kdump.format.index import INDEX_ENTRY, TIME_INDEX_ENTRY, TXN_INDEX_ENTRY
from kdump.io.errors import SourceError
from kdump.kafka.errors import FullIndex, InvalidOffset, Overflow
from kdump.kafka.file_log_input_stream import FileLogInputStream, RecordBatchView
from kdump.kafka.producer_state_manager import CompletedTxn, OngoingTxns
from kdump.log.region import Batch
from kdump.log.segment_limits import MAX_RELATIVE_OFFSET

INTERVAL = 4096
"""Bytes: default of index.interval.bytes (TopicConfig)."""
LARGEST_INDEX = 10 * 1024 * 1024
"""Bytes: default of segment.index.bytes (TopicConfig), the maximum size of an index."""
MAX_ABORTED_TRANSACTIONS = 1_000_000
"""Maximum number of aborted transactions of one segment: 34 MB."""


@dataclass(frozen=True)
class IndexBytes:
    """The bytes of the three files, without preallocation. A broker does not create an empty .txnindex."""

    index: bytes
    timeindex: bytes
    txnindex: bytes


class IndexBuilder:
    """Builds the indexes of one segment from its batches, in order.

    `base_offset` is the one in the segment's name, `interval` index.interval.bytes, `largest` segment.index.bytes,
    `first` the position of its first batch. `transactions` contains those open at the beginning of the segment; it is
    updated, and can be passed to the builder of the next segment. `last_timestamp` and `last_timestamp_offset` are
    those of the batch with the largest maxTimestamp so far."""

    def __init__(
        self,
        base_offset: int,
        interval: int = INTERVAL,
        *,
        largest: int = LARGEST_INDEX,
        transactions: OngoingTxns | None = None,
        first: int = 0,
    ) -> None:
        self.base_offset, self.interval = base_offset, interval
        self.transactions = OngoingTxns() if transactions is None else transactions
        self.last_timestamp, self.last_timestamp_offset = -1, base_offset
        self._max_index_entries = largest // INDEX_ENTRY.size
        self._max_time_index_entries = largest // TIME_INDEX_ENTRY.size - 1  # one is reserved for the last entry
        self._index, self._time, self._txn = bytearray(), bytearray(), bytearray()
        self._indexed_to = first  # position of the last entry
        self._last_indexed: int | None = None
        self._last_time = (-1, base_offset)
        self._last_aborted = -1
        self._last: Batch | RecordBatchView | None = None
        self._offset, self._timestamp = -1, -1  # of that batch

    def add(self, batch: Batch, position: int | None = None) -> None:
        """Add the next batch, at byte `position` of the segment (by default the position where it was read). Its
        checksum is not verified. Raises KafkaError if recovery rejects the batch: it is not indexed, and none may
        follow it."""
        position = batch.position if position is None else position
        is_due = self._check(batch, position)
        self.update_producers(batch)
        self._add(position, is_due)

    def index(self, batch: Batch | RecordBatchView) -> bool:
        """Index the next batch, and return True if it has an entry in the .index. As recovery does, which updates the
        producers afterwards. Raises KafkaError if recovery does not take the batch."""
        is_due = self._check(batch, batch.position)
        self._add(batch.position, is_due)
        return is_due

    def update_producers(
        self, batch: Batch | RecordBatchView, stream: FileLogInputStream | None = None
    ) -> CompletedTxn | None:
        """Do what LogSegment.updateProducerState does, and return the transaction that the batch ends. Raises
        KafkaError, SourceError."""
        completed = self.transactions.append(batch, stream)
        if completed is not None and completed.is_aborted and completed.first_offset is not None:
            self._aborted(completed, batch.position)
        return completed

    def finish(self) -> IndexBytes:
        """Return the files as they are once the segment is closed, rolled or recovered: the last entry of the time
        index has the largest timestamp of all (LogSegment.recover, close, onBecomeInactiveSegment). Raises
        InvalidOffset."""
        if self._last is not None:
            self._check_time(self._last, self.last_timestamp_offset)
        self._add_time()
        return IndexBytes(bytes(self._index), bytes(self._time), bytes(self._txn))

    def _check(self, batch: Batch | RecordBatchView, position: int) -> bool:
        """Return True if an entry is due. Raises KafkaError for one that OffsetIndex.append or TimeIndex.maybeAppend
        rejects."""
        self._last = batch
        self._offset = last = batch.lastOffset
        self._timestamp = timestamp = -1 if batch.maxTimestamp is None else batch.maxTimestamp
        if not 0 <= last - self.base_offset <= MAX_RELATIVE_OFFSET:
            raise Overflow(batch.position, batch.baseOffset or 0, last, self.base_offset)
        if position - self._indexed_to <= self.interval:
            return False
        if len(self._index) // INDEX_ENTRY.size >= self._max_index_entries:
            raise _full(batch, f"the offset index is full ({self._max_index_entries} entries)")
        if self._last_indexed is not None and last <= self._last_indexed:
            raise _invalid_offset(batch, self._last_indexed)
        if len(self._time) // TIME_INDEX_ENTRY.size >= self._max_time_index_entries:
            raise _full(batch, f"the time index is full ({self._max_time_index_entries} entries)")
        self._check_time(batch, last if timestamp > self.last_timestamp else self.last_timestamp_offset)
        return True

    def _check_time(self, batch: Batch | RecordBatchView, offset: int) -> None:
        if self._time and offset < self._last_time[1]:
            raise _invalid_offset(batch, self._last_time[1])

    def _add(self, position: int, is_due: bool) -> None:
        """Add the batch that was checked."""
        last = self._offset
        if self._timestamp > self.last_timestamp:
            self.last_timestamp, self.last_timestamp_offset = self._timestamp, last
        if is_due:
            self._index += INDEX_ENTRY.struct.pack(last - self.base_offset, position)
            self._last_indexed, self._indexed_to = last, position
            self._add_time()

    def _add_time(self) -> None:
        """Add an entry if it is newer than the last one, as TimeIndex.maybeAppend does."""
        if self.last_timestamp > self._last_time[0]:
            self._last_time = (self.last_timestamp, self.last_timestamp_offset)
            self._time += TIME_INDEX_ENTRY.struct.pack(
                self.last_timestamp, self.last_timestamp_offset - self.base_offset
            )

    def _aborted(self, completed: CompletedTxn, position: int) -> None:
        """Add the entry of an aborted transaction. Raises FullIndex for one that TransactionIndex.append rejects."""
        producer, _, offset, first, stable = completed
        if offset <= self._last_aborted:
            message = f"the ABORT marker's offset {offset} is not above that of the previous one"
            raise FullIndex(message, "IllegalArgumentException", position, offset)
        if len(self._txn) // TXN_INDEX_ENTRY.size >= MAX_ABORTED_TRANSACTIONS:
            raise SourceError(f"more than {MAX_ABORTED_TRANSACTIONS} aborted transactions")
        self._last_aborted = offset
        try:
            self._txn += TXN_INDEX_ENTRY.struct.pack(0, producer, first, offset, stable)
        except struct.error:
            message = f"the last stable offset after the marker, {stable}, is invalid"
            raise FullIndex(message, "IllegalArgumentException", position, offset) from None


def _full(batch: Batch | RecordBatchView, message: str) -> FullIndex:
    exception = "IllegalArgumentException: Attempt to append to a full index"
    return FullIndex(message, exception, batch.position, batch.baseOffset)


def _invalid_offset(batch: Batch | RecordBatchView, before: int) -> InvalidOffset:
    message = f"offset {batch.lastOffset} follows offset {before}, which no index can store"
    exception = f"InvalidOffsetException: Attempt to append an offset {batch.lastOffset}"
    return InvalidOffset(message, exception, batch.position, batch.baseOffset)
