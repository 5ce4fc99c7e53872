"""Keeps the open transactions of a partition.

Source: ProducerAppendInfo.appendDataBatch, appendEndTxnMarker.
"""

from __future__ import annotations

from kdump.check.resume_state import NUMBER, TRANSACTIONS
from kdump.check.rule import DAY, BatchContext, Observer, SegmentContext, may_hide_batches
from kdump.core.column_numbers import (
    ATTRIBUTES,
    BASE_OFFSET,
    BATCH_END,
    BATCH_START,
    IS_TRANSACTIONAL,
    LAST_OFFSET,
    MAX_TIMESTAMP,
    PRODUCER_EPOCH,
    PRODUCER_ID,
)
from kdump.core.header_columns import HeaderColumns, ProducerWrites, largest, producer_writes
from kdump.log.region import Region
from kdump.state.transaction_marker import marker_at
from kdump.state.transaction_tracker import CompletedTxn, OngoingTxn, OpenTransactions


class TransactionWatcher(Observer):
    """Keeps the open transactions in `state`. `ended`: effect of the current batch's marker, None if it has none;
    `ended_in_run`: the markers of the current run, as their rows and effects;
    `open_before`: for a data batch, the transaction that its producer had open before it, None if there was none;
    `newest`: the largest credible timestamp so far, epoch ms; `damages`: number of damaged places so far."""

    saved_fields = {"state": TRANSACTIONS, "newest": NUMBER, "damages": NUMBER}

    def __init__(self) -> None:
        self.state = OpenTransactions()
        self.newest = -1
        self.damages = 0
        self.ended: CompletedTxn | None = None
        self.ended_in_run: list[tuple[int, CompletedTxn]] = []
        self.open_before: OngoingTxn | None = None

    def region(self, part: SegmentContext, region: Region) -> None:
        self.damages += may_hide_batches(part, region)

    def unread(self) -> None:
        self.damages += 1
        self.state.open.clear()  # their markers may be in the unreadable part

    def batch(self, seen: BatchContext) -> None:
        batch = seen.batch
        self.ended = self.open_before = None
        if not seen.is_valid:
            self.damages += 1
            return
        if batch.maxTimestamp is not None and batch.maxTimestamp <= seen.part.modified + DAY:
            self.newest = max(self.newest, batch.maxTimestamp)
        if batch.producerId is None or batch.producerId < 0:
            return
        if not batch.isControlBatch:
            self.open_before = self.state.data(seen.part.target, batch, self.damages)
        elif seen.marker is not None:
            self.ended = self.state.marker(batch.producerId, batch.producerEpoch or 0, batch.lastOffset, seen.marker)

    def first_suspect(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        stop, writes = producer_writes(heads, first, stop, False)
        has_room = self.state.has_room(len(writes))
        return min((chain.begins for chain in writes if self._is_suspect(heads, chain, has_room)), default=stop)

    def _is_suspect(self, heads: HeaderColumns, chain: ProducerWrites, has_room: bool) -> bool:
        """Return True if a producer writes outside of its open transaction, there is no room for a new one, or the
        epoch of its marker is lower than that of its data."""
        producer_id = heads.of(chain.begins, PRODUCER_ID)
        if chain.marker >= 0 and heads.of(chain.marker, PRODUCER_EPOCH) < self.state.epochs.get(producer_id):
            return True
        if chain.first < 0:
            return False
        is_open = not chain.is_next and producer_id in self.state.open
        if heads.of(chain.first, ATTRIBUTES) & IS_TRANSACTIONAL:
            return not (is_open or has_room)
        return is_open

    def accept_run(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> None:
        self.ended = self.open_before = None
        self.newest = max(self.newest, largest(heads, MAX_TIMESTAMP, first, stop, part.modified + DAY))
        self.ended_in_run = []
        rows = [
            (row, chain)
            for chain in producer_writes(heads, first, stop, False)[1]
            for row in (chain.first, chain.marker)
            if row >= 0
        ]
        for row, chain in sorted(rows):  # in the order in which transactions begin and end
            producer_id, epoch = heads.of(row, PRODUCER_ID), heads.of(row, PRODUCER_EPOCH)
            if row == chain.marker:
                offset, marker = heads.of(row, LAST_OFFSET), marker_at(heads, row)
                self.ended_in_run.append((row, self.state.marker(producer_id, epoch, offset, marker)))
                continue
            self.state.wrote(producer_id, epoch)
            if not heads.of(row, ATTRIBUTES) & IS_TRANSACTIONAL:
                continue
            running = self.state.open.get(producer_id)
            if running is None:
                position, size = heads.of(row, BATCH_START), heads.of(row, BATCH_END) - heads.of(row, BATCH_START)
                running = self.state.begin(
                    producer_id,
                    part.target,
                    position + heads.shift,
                    size,
                    heads.of(row, BASE_OFFSET),
                    epoch,
                    heads.of(row, MAX_TIMESTAMP),
                    self.damages,
                )
            ended, latest = heads.of(chain.last, LAST_OFFSET), heads.of(chain.last, MAX_TIMESTAMP)
            running.add(chain.records, chain.batches, chain.bytes, ended, latest, epoch)
