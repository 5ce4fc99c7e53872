"""Tracks open and ended transactions of a partition, from its batches in order.

Source: org.apache.kafka.storage.internals.log.ProducerAppendInfo (appendDataBatch, appendEndTxnMarker) and
ProducerStateManager (ongoingTxns, firstUndecidedOffset, lastStableOffset).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kdump.log.paths import Target
from kdump.log.region import Batch
from kdump.state.id_numbers import IdNumbers
from kdump.state.transaction_marker import EndTxnMarker

MAX_OPEN_TRANSACTIONS = 1_000_000
"""Maximum number of open transactions, and of producers with their epochs, that are kept; no log written by a broker
has more."""


@dataclass(slots=True)
class OngoingTxn:
    """A transaction without a marker yet. `target`, `position` and `size` (bytes) locate its first batch or, if
    `seeded`, the entry of the producer snapshot that it comes from. Timestamps are epoch ms, -1 for none."""

    target: Target
    position: int
    size: int
    first_offset: int
    epoch: int
    timestamp: int
    """Largest timestamp of its first batch."""
    records: int = 0
    batches: int = 0
    bytes: int = 0
    last_offset: int = -1
    last_timestamp: int = -1
    last_epoch: int = -1
    damages: int = 0
    """Number of damaged regions found in the log before its first batch."""
    seeded: bool = False

    def add(self, records: int, batches: int, size: int, last_offset: int, timestamp: int, epoch: int) -> None:
        """Add data. `records`, `batches` and `size` (bytes) are totals of the added batches; the other values are those
        of the last one."""
        self.records += records
        self.batches += batches
        self.bytes += size
        self.last_offset, self.last_timestamp, self.last_epoch = last_offset, timestamp, epoch


class CompletedTxn(NamedTuple):
    """Effect of a marker. `transaction`: None if the marker follows no data of its transaction, because none was
    written here or it was removed; `newest`: highest epoch of the producer before the marker, -1 for none; `stable`:
    last stable offset after the marker, as stored in a .txnindex; `repeats`: whether the partition has this marker
    already (a coordinator that finds PrepareCommit or PrepareAbort when it loads its log writes all markers again)."""

    producer_id: int
    marker: EndTxnMarker
    epoch: int
    offset: int
    transaction: OngoingTxn | None
    newest: int
    stable: int
    repeats: bool = False


class OpenTransactions:
    """Open transactions by producer ID, earliest first. `untracked` counts those beyond MAX_OPEN_TRANSACTIONS."""

    def __init__(self) -> None:
        self.open: OrderedDict[int, OngoingTxn] = OrderedDict()
        self.epochs = IdNumbers("h")
        self.raised = IdNumbers("h")
        """By producer ID, the epoch of its last marker that ended data, if the coordinator raised the epoch with it (in
        transaction version 2, and if it fenced the producer): no later transaction has a marker with this epoch."""
        self.untracked = 0

    def seed(self, target: Target, position: int, size: int, entry: Mapping[str, int]) -> None:
        """Add the open transaction of a producer snapshot's `entry`, if it has one. Call this before any batch, in
        order of currentTxnFirstOffset."""
        first = entry["currentTxnFirstOffset"]
        if first < 0:
            return
        epoch, timestamp = entry["epoch"], entry["timestamp"]
        self.epochs.put(entry["producerId"], epoch)
        self.open[entry["producerId"]] = OngoingTxn(
            target, position, size, first, epoch, -1, last_timestamp=timestamp, last_epoch=epoch, seeded=True
        )

    def data(self, target: Target, batch: Batch, damages: int = 0) -> OngoingTxn | None:
        """Apply a data batch of a producer. Returns the open transaction that it belongs to or, for a batch that is not
        transactional, the producer's open transaction: there should be none."""
        producer_id, epoch = batch.producerId, batch.producerEpoch or 0
        assert producer_id is not None
        self.wrote(producer_id, epoch)
        running = self.open.get(producer_id)
        if not batch.isTransactional:
            return running
        timestamp = -1 if batch.maxTimestamp is None else batch.maxTimestamp
        if running is None:
            if not self.has_room(1):
                self.untracked += 1
                return None
            first = batch.baseOffset or 0
            running = self.begin(producer_id, target, batch.position, batch.size, first, epoch, timestamp, damages)
        running.add(batch.possible_records, 1, batch.size, batch.lastOffset, timestamp, epoch)
        return running

    def begin(
        self,
        producer_id: int,
        target: Target,
        position: int,
        size: int,
        first_offset: int,
        epoch: int,
        timestamp: int,
        damages: int,
    ) -> OngoingTxn:
        """Open the transaction of a producer, to which its data must be added. Call `has_room` before; the parameters
        are those of OngoingTxn."""
        running = OngoingTxn(target, position, size, first_offset, epoch, timestamp, damages=damages)
        self.open[producer_id] = running
        return running

    def has_room(self, count: int) -> bool:
        """Return True if `count` more open transactions can be kept."""
        return len(self.open) + count <= MAX_OPEN_TRANSACTIONS

    def wrote(self, producer_id: int, epoch: int) -> None:
        """Record that a producer wrote data with this epoch, transactional or not."""
        if len(self.epochs) < MAX_OPEN_TRANSACTIONS:
            self.epochs.put(producer_id, max(epoch, self.epochs.get(producer_id)))

    def marker(self, producer_id: int, epoch: int, offset: int, marker: EndTxnMarker) -> CompletedTxn:
        """Apply the transaction marker of a producer's batch, whose last offset is `offset`."""
        closed = self.open.pop(producer_id, None)
        newest = self.epochs.get(producer_id)
        if newest >= 0 or len(self.epochs) < MAX_OPEN_TRANSACTIONS:
            self.epochs.put(producer_id, max(epoch, newest))
        repeats = closed is None and self.raised.get(producer_id) == epoch
        if (
            closed is not None
            and epoch > max(closed.epoch, closed.last_epoch)
            and len(self.raised) < MAX_OPEN_TRANSACTIONS
        ):
            self.raised.put(producer_id, epoch)
        undecided = self.first_undecided
        stable = offset + 1 if undecided is None else undecided
        return CompletedTxn(producer_id, marker, epoch, offset, closed, newest, stable, repeats)

    @property
    def first_undecided(self) -> int | None:
        """First offset of the earliest open transaction; None if none is open."""
        first = next(iter(self.open.values()), None)
        return None if first is None else first.first_offset
