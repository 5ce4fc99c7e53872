"""Builds the bytes of a segment's .index, .timeindex and .txnindex from its batches, one by one.

Source: org.apache.kafka.storage.internals.log.LogSegment.recover, with OffsetIndex.append, TimeIndex.maybeAppend,
ProducerAppendInfo.append (as AppendOrigin.REPLICATION) and TransactionIndex.append. Recovery processes each batch by
itself in every release. So does LogSegment.append of a running broker since 4.1, which writes the same entries unless
there is a restart or a truncation within the segment: either restarts the index interval.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

from kdump.format.control_record import decode_control
from kdump.format.index import INDEX_ENTRY, TIME_INDEX_ENTRY, TXN_INDEX_ENTRY, TxnIndexEntry
from kdump.log.batch_records import records
from kdump.log.paths import Target, target
from kdump.log.region import Batch, LegacyRecordBatch
from kdump.log.segment_limits import MAX_RELATIVE_OFFSET
from kdump.state.marker import ABORT, COMMIT, EndTxnMarker
from kdump.state.transaction_tracker import OpenTransactions

INTERVAL = 4096
"""Bytes: default of index.interval.bytes (TopicConfig)."""
LARGEST_INDEX = 10 * 1024 * 1024
"""Bytes: default of segment.index.bytes (TopicConfig), the maximum size of an index."""
MAX_ABORTED_TRANSACTIONS = 1_000_000
"""Maximum number of aborted transactions of one segment: 34 MB."""
TRUNCATES, THROWS, SPLITS = "truncates", "throws", "splits"
"""What a broker does at a batch that recovery rejects: truncate the log there, fail to start, or split the segment."""


class RecoveryStop(Exception):
    """Raised for a batch that recovery rejects, together with everything after it. `does` is TRUNCATES, THROWS or
    SPLITS."""

    def __init__(self, reason: str, does: str) -> None:
        super().__init__(reason)
        self.does = does


@dataclass(frozen=True)
class IndexBytes:
    """The bytes of the three files, without preallocation. A broker does not create an empty .txnindex."""

    index: bytes
    timeindex: bytes
    txnindex: bytes


class BatchEffects(NamedTuple):
    """Effects of a batch. `indexed`: whether it has an entry in the .index; for an ABORT marker, `aborted` is its
    producer ID, and `entry` its entry in the .txnindex (None if no data of its transaction is known)."""

    indexed: bool = False
    aborted: int | None = None
    entry: TxnIndexEntry | None = None


class IndexBuilder:
    """Builds the indexes of one segment from its batches, in order.

    `base_offset` is the one in the segment's name, `interval` index.interval.bytes, `largest` segment.index.bytes.
    `transactions` contains the transactions open at the beginning of the segment; it is updated, and can be passed to
    the builder of the next segment. `last_timestamp` and `last_timestamp_offset` are those of the batch with the
    largest maxTimestamp so far.
    """

    def __init__(
        self,
        base_offset: int,
        interval: int = INTERVAL,
        *,
        largest: int = LARGEST_INDEX,
        transactions: OpenTransactions | None = None,
        segment: Target | None = None,
    ) -> None:
        self.base_offset = base_offset
        self.interval = interval
        self.transactions = OpenTransactions() if transactions is None else transactions
        self.segment = segment or target(f"{base_offset:020}.log")
        self.last_timestamp, self.last_timestamp_offset = -1, base_offset
        self._max_index_entries = largest // INDEX_ENTRY.size
        self._max_time_index_entries = largest // TIME_INDEX_ENTRY.size - 1  # one is reserved for the last entry
        self._index, self._time, self._txn = bytearray(), bytearray(), bytearray()
        self._indexed_to = 0  # position of the last entry
        self._last_indexed: int | None = None
        self._last_time = (-1, base_offset)
        self._last_aborted = -1

    def add(self, batch: Batch, position: int | None = None) -> BatchEffects:
        """Add the next batch, at byte `position` of the segment (by default the position where it was read). Its
        checksum is not verified. Raises RecoveryStop if recovery rejects the batch: it is not indexed, and none may
        follow it."""
        position = batch.position if position is None else position
        last = batch.lastOffset
        if not 0 <= last - self.base_offset <= MAX_RELATIVE_OFFSET:
            reason = f"its last offset {last} does not belong in a segment with base offset {self.base_offset}"
            raise RecoveryStop(f"{reason}: an index stores the difference in 31 bits", SPLITS)
        timestamp = -1 if batch.maxTimestamp is None else batch.maxTimestamp
        newest = (timestamp, last) if timestamp > self.last_timestamp else None
        is_due = position - self._indexed_to > self.interval
        if is_due:
            self._can_index(last, *(newest or (self.last_timestamp, self.last_timestamp_offset)))
        added = BatchEffects(is_due)
        if not isinstance(batch, LegacyRecordBatch):
            added = self._producer(batch, added)
        if newest:
            self.last_timestamp, self.last_timestamp_offset = newest
        if is_due:
            self._index += INDEX_ENTRY.struct.pack(last - self.base_offset, position)
            self._last_indexed, self._indexed_to = last, position
            self._add_time()
        return added

    def finish(self) -> IndexBytes:
        """Return the files as they are once the segment is closed, rolled or recovered: the last entry of the time
        index has the largest timestamp of all (LogSegment.recover, close, onBecomeInactiveSegment). Raises
        RecoveryStop."""
        self._check_time(self.last_timestamp_offset)
        self._add_time()
        return IndexBytes(bytes(self._index), bytes(self._time), bytes(self._txn))

    def _can_index(self, last: int, timestamp: int, offset: int) -> None:
        """Raise RecoveryStop for entries that OffsetIndex.append or TimeIndex.maybeAppend rejects."""
        if len(self._index) // INDEX_ENTRY.size >= self._max_index_entries:
            raise RecoveryStop(f"the offset index is full ({self._max_index_entries} entries)", THROWS)
        if self._last_indexed is not None and last <= self._last_indexed:
            raise RecoveryStop(
                f"its last offset {last} is not above {self._last_indexed}, that of the previous index entry", THROWS
            )
        if len(self._time) // TIME_INDEX_ENTRY.size >= self._max_time_index_entries:
            raise RecoveryStop(f"the time index is full ({self._max_time_index_entries} entries)", THROWS)
        self._check_time(offset)

    def _check_time(self, offset: int) -> None:
        if self._time and offset < self._last_time[1]:
            reason = (
                f"offset {offset} of its time index entry is below {self._last_time[1]}, that of the previous entry"
            )
            raise RecoveryStop(reason, THROWS)

    def _add_time(self) -> None:
        """Add an entry if it is newer than the last one, as TimeIndex.maybeAppend does."""
        if self.last_timestamp > self._last_time[0]:
            self._last_time = (self.last_timestamp, self.last_timestamp_offset)
            self._time += TIME_INDEX_ENTRY.struct.pack(
                self.last_timestamp, self.last_timestamp_offset - self.base_offset
            )

    def _producer(self, batch: Batch, added: BatchEffects) -> BatchEffects:
        """Do what LogSegment.updateProducerState does, as far as the transaction index depends on it."""
        if batch.producerId is None or batch.producerId < 0:
            return added
        if batch.isControlBatch:
            marker = _marker(batch)
            return added if marker is None else self._ended(batch, marker, added)
        is_open = batch.producerId in self.transactions.open
        if is_open and not batch.isTransactional:
            reason = f"it is not transactional, but a transaction of its producer {batch.producerId} is open"
            raise RecoveryStop(reason, THROWS)
        untracked = self.transactions.untracked
        self.transactions.data(self.segment, batch)
        if self.transactions.untracked > untracked:
            raise RecoveryStop(f"more than {len(self.transactions.open)} transactions are open", THROWS)
        return added

    def _ended(self, batch: Batch, marker: EndTxnMarker, added: BatchEffects) -> BatchEffects:
        ended = self.transactions.marker(batch, marker)
        offset = batch.lastOffset if batch.baseOffset is None else batch.baseOffset
        if marker.type != ABORT:
            return added
        if ended.transaction is None:
            return added._replace(aborted=ended.producer_id)
        if offset <= self._last_aborted:
            raise RecoveryStop(f"the ABORT marker's offset {offset} is not above that of the previous one", THROWS)
        if len(self._txn) // TXN_INDEX_ENTRY.size >= MAX_ABORTED_TRANSACTIONS:
            raise RecoveryStop(f"more than {MAX_ABORTED_TRANSACTIONS} aborted transactions", THROWS)
        self._last_aborted = offset
        entry = TxnIndexEntry(0, ended.producer_id, ended.transaction.first_offset, offset, ended.stable)
        try:
            self._txn += TXN_INDEX_ENTRY.struct.pack(*entry)
        except struct.error:
            raise RecoveryStop(f"the last stable offset after the marker, {ended.stable}, is invalid", THROWS) from None
        return added._replace(aborted=ended.producer_id, entry=entry)


def _marker(batch: Batch) -> EndTxnMarker | None:
    """Return the marker in a control batch of a producer: COMMIT or ABORT; None if it has no records, because nothing
    is left of its transaction. Raises RecoveryStop for what EndTransactionMarker.deserialize rejects."""
    for record in records(batch, values=False):
        control = decode_control(record.key, record.value)
        if control.problem is not None:
            raise RecoveryStop(f"its control record cannot be decoded: {control.problem.reason}", TRUNCATES)
        if control.type not in (COMMIT, ABORT):
            raise RecoveryStop(f"a producer's control record has type {control.type}, not COMMIT or ABORT", THROWS)
        return EndTxnMarker(control.type, control.coordinatorEpoch, record.timestamp)
    if batch.problems:
        raise RecoveryStop(f"its marker cannot be decoded: {batch.problems[-1].reason}", TRUNCATES)
    return None
