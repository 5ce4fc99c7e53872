"""Which transactions of a partition are open, and which a marker has ended, from its batches in order.

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
from kdump.state.marker import Marker

MOST_OPEN = 1_000_000
"""Open transactions that are kept; a log with more of them is no broker's."""


@dataclass(slots=True)
class Open:
    """A transaction without a marker yet. `target`, `position` and `size` are its first batch; or, with `seeded`, the
    entry of the snapshot that says where it began. Timestamps are epoch ms, -1 for none."""

    target: Target
    position: int
    size: int
    first_offset: int
    epoch: int
    timestamp: int
    """Of its first batch: the largest in it."""
    records: int = 0
    batches: int = 0
    bytes: int = 0
    last_offset: int = -1
    last_timestamp: int = -1
    last_epoch: int = -1
    damages: int = 0
    """How many damages the log had shown when it began."""
    seeded: bool = False

    def add(self, records: int, batches: int, size: int, last_offset: int, timestamp: int, epoch: int) -> None:
        """More of its data: so many bytes of batches, of which the last has these."""
        self.records += records
        self.batches += batches
        self.bytes += size
        self.last_offset, self.last_timestamp, self.last_epoch = last_offset, timestamp, epoch


class Ended(NamedTuple):
    """What a marker did. `transaction` is None where no data of it came before: none was written here, or it is gone.
    `newest` is the highest epoch of the producer before the marker, -1 for none; `stable` the last stable offset behind
    the marker, as a .txnindex has it."""

    producer_id: int
    marker: Marker
    epoch: int
    offset: int
    transaction: Open | None
    newest: int
    stable: int


class Transactions:
    """The open transactions by producer id, those that began first in front. `untracked` counts those that there was no
    room for."""

    def __init__(self) -> None:
        self.open: OrderedDict[int, Open] = OrderedDict()
        self.epochs: dict[int, int] = {}
        self.untracked = 0

    def seed(self, target: Target, position: int, size: int, entry: Mapping[str, int]) -> None:
        """A transaction that is open as a snapshot begins, if that is what the `entry` says: told in order of
        currentTxnFirstOffset, before any batch."""
        first = entry["currentTxnFirstOffset"]
        if first < 0:
            return
        epoch, timestamp = entry["epoch"], entry["timestamp"]
        self.epochs[entry["producerId"]] = epoch
        self.open[entry["producerId"]] = Open(
            target, position, size, first, epoch, -1, last_timestamp=timestamp, last_epoch=epoch, seeded=True
        )

    def data(self, target: Target, batch: Batch, damages: int = 0) -> Open | None:
        """A data batch of a producer: the open transaction that it is in, or, for one that is not transactional, that
        it may not be in."""
        producer_id, epoch = batch.producerId, batch.producerEpoch or 0
        assert producer_id is not None
        self.wrote(producer_id, epoch)
        running = self.open.get(producer_id)
        if not batch.isTransactional:
            return running
        timestamp = -1 if batch.maxTimestamp is None else batch.maxTimestamp
        if running is None:
            if len(self.open) >= MOST_OPEN:
                self.untracked += 1
                return None
            first = batch.baseOffset or 0
            running = Open(target, batch.position, batch.size, first, epoch, timestamp, damages=damages)
            self.open[producer_id] = running
        running.add(batch.recordCount or 0, 1, batch.size, batch.lastOffset, timestamp, epoch)
        return running

    def wrote(self, producer_id: int, epoch: int) -> None:
        """A producer has written data, be it in a transaction or not."""
        if len(self.epochs) < MOST_OPEN:
            self.epochs[producer_id] = max(epoch, self.epochs.get(producer_id, -1))

    def marker(self, batch: Batch, marker: Marker) -> Ended:
        """A transaction marker."""
        producer_id, epoch = batch.producerId, batch.producerEpoch or 0
        assert producer_id is not None
        closed = self.open.pop(producer_id, None)
        newest = self.epochs.get(producer_id, -1)
        if newest >= 0 or len(self.epochs) < MOST_OPEN:
            self.epochs[producer_id] = max(epoch, newest)
        undecided = self.first_undecided
        stable = batch.lastOffset + 1 if undecided is None else undecided
        return Ended(producer_id, marker, epoch, batch.lastOffset, closed, newest, stable)

    @property
    def first_undecided(self) -> int | None:
        """First offset of the open transaction that began first; None without any."""
        first = next(iter(self.open.values()), None)
        return None if first is None else first.first_offset
