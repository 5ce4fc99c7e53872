"""Tracks open and ended transactions of a partition, from its batches in order.

Source: org.apache.kafka.storage.internals.log.ProducerAppendInfo (appendDataBatch, appendEndTxnMarker) and
ProducerStateManager (ongoingTxns, firstUndecidedOffset, lastStableOffset)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kdump.format.producer_snapshot import PRODUCER_ENTRY
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


def transaction_in(target: Target, position: int, entry: Mapping[str, int]) -> OngoingTxn | None:
    """Return the open transaction of the entry at byte `position` of a producer snapshot; None if it has none."""
    first, epoch, timestamp = entry["currentTxnFirstOffset"], entry["epoch"], entry["timestamp"]
    if first < 0:
        return None
    size = PRODUCER_ENTRY.size
    return OngoingTxn(target, position, size, first, epoch, -1, last_timestamp=timestamp, last_epoch=epoch, seeded=True)


def _is_same(one: OngoingTxn | None, other: OngoingTxn) -> bool:
    return one is not None and one.first_offset == other.first_offset


class OpenTransactions:
    """Open transactions by producer ID, earliest first. `untracked` counts those beyond MAX_OPEN_TRANSACTIONS."""

    def __init__(self) -> None:
        self.open: OrderedDict[int, OngoingTxn] = OrderedDict()
        self.epochs = IdNumbers("h")
        self.raised = IdNumbers("h")
        """By producer ID, the epoch of its last marker that ended data, if the coordinator raised the epoch with it (in
        transaction version 2, and if it fenced the producer): no later transaction has a marker with this epoch."""
        self.untracked = 0
        self.loaded: dict[int, OngoingTxn | None] = {}
        """Producers whose open transaction in a broker differs from the one in `open` (None: it has none), because of
        the producer snapshot that it loads, or because it does not read the log from its beginning."""

    def of_broker(self, producer_id: int) -> OngoingTxn | None:
        """Return the open transaction of a producer in a broker."""
        return self.loaded[producer_id] if producer_id in self.loaded else self.open.get(producer_id)

    @property
    def in_broker(self) -> Mapping[int, OngoingTxn]:
        """The open transactions of a broker by producer ID, earliest first."""
        if not self.loaded:
            return self.open
        differing = {producer_id: running for producer_id, running in self.loaded.items() if running is not None}
        same = {producer_id: running for producer_id, running in self.open.items() if producer_id not in self.loaded}
        return dict(sorted((same | differing).items(), key=lambda item: item[1].first_offset))

    def differ(self, producer_id: int, running: OngoingTxn | None) -> None:
        """Note that a broker has this open transaction of a producer, None for none."""
        if self.open.get(producer_id) is running:
            self.loaded.pop(producer_id, None)
        else:
            self.loaded[producer_id] = running

    def clear(self) -> None:
        """Forget the open transactions."""
        self.open.clear()
        self.loaded.clear()

    def load(self, loaded: Mapping[int, OngoingTxn]) -> None:
        """Note that a broker begins to read the log here, with these open transactions."""
        self.loaded = {producer_id: None for producer_id in self.open if producer_id not in loaded}
        for producer_id, running in loaded.items():
            if not self._has(producer_id, running):
                self.loaded[producer_id] = running

    def correct(self, stored: Mapping[int, OngoingTxn]) -> list[tuple[int, OngoingTxn]]:
        """Replace the open transactions by those that a producer snapshot lists here, because damage may hide batches.
        Returns the producers and their transactions that have ended."""
        before, self.open = self.open, OrderedDict()
        for number, running in sorted(stored.items(), key=lambda item: item[1].first_offset):
            own = before.get(number)
            self.open[number] = own if own is not None and _is_same(own, running) else running
            self.wrote(number, running.epoch)
        ended = [(number, running) for number, running in before.items() if self.open.get(number) is not running]
        return ended

    def _has(self, producer_id: int, running: OngoingTxn) -> bool:
        return _is_same(self.open.get(producer_id), running)

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
        if producer_id in self.loaded:
            self.load_data(target, batch, damages)
        if running is None:
            if not self.has_room(1):
                self.untracked += 1
                return None
            first = batch.baseOffset or 0
            running = self.begin(producer_id, target, batch.position, batch.size, first, epoch, timestamp, damages)
        running.add(batch.possible_records, 1, batch.size, batch.lastOffset, timestamp, epoch)
        return running

    def load_data(self, target: Target, batch: Batch, damages: int = 0) -> None:
        """Apply a transactional data batch to what a broker has."""
        producer_id, epoch = batch.producerId, batch.producerEpoch or 0
        assert producer_id is not None
        timestamp = -1 if batch.maxTimestamp is None else batch.maxTimestamp
        running = self.of_broker(producer_id)
        if running is None:
            first = batch.baseOffset or 0
            running = OngoingTxn(target, batch.position, batch.size, first, epoch, timestamp, damages=damages)
            self.loaded[producer_id] = running
        if running is not self.open.get(producer_id):
            running.add(batch.possible_records, 1, batch.size, batch.lastOffset, timestamp, epoch)

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
        if len(self.epochs) < MAX_OPEN_TRANSACTIONS and epoch > self.epochs.get(producer_id):
            self.epochs.put(producer_id, epoch)

    def marker(self, producer_id: int, epoch: int, offset: int, marker: EndTxnMarker) -> CompletedTxn:
        """Apply the transaction marker of a producer's batch, whose last offset is `offset`."""
        closed = self.open.pop(producer_id, None)
        self.loaded.pop(producer_id, None)
        newest = self.epochs.get(producer_id)
        if epoch > newest and (newest >= 0 or len(self.epochs) < MAX_OPEN_TRANSACTIONS):
            self.epochs.put(producer_id, epoch)
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
        """First offset of the earliest open transaction in the log; None if none is open."""
        first = next(iter(self.open.values()), None)
        return None if first is None else first.first_offset
