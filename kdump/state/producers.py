"""What a broker remembers of each producer, rebuilt from a partition's batches.

Source: org.apache.kafka.storage.internals.log.ProducerStateManager, ProducerStateEntry and ProducerAppendInfo, as a
replay has it (AppendOrigin.REPLICATION), which refuses nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from kdump.format.batch import sequence
from kdump.log.region import Batch
from kdump.state.marker import Marker

MOST_PRODUCERS = 1_000_000
"""Producers that are remembered; beyond that the one that was idle for longest is forgotten."""
EXPIRATION = 86_400_000
"""producer.id.expiration.ms by default (TransactionLogConfig): what a broker forgets an idle producer after."""
HALF = 1 << 30
WRAP = 1 << 31

EPOCH_DECREASED, EPOCH_START, GAP, DUPLICATE = "epoch-decreased", "epoch-start", "gap", "duplicate"
"""What may be wrong with a batch beside the one before it of the same producer."""


@dataclass(slots=True)
class Producer:
    """One producer id. -1: none. Timestamps are epoch ms; offsets and sequences are those of its last data batch in its
    current `epoch`, as in ProducerStateEntry."""

    epoch: int
    highest_epoch: int = -1
    batch_epoch: int = -1
    """Epoch of its last data batch; a marker may raise `epoch` later."""
    last_sequence: int = -1
    last_offset: int = -1
    offset_delta: int = 0
    batch_timestamp: int = -1
    timestamp: int = -1
    """Of its last batch or marker."""
    coordinator_epoch: int = -1
    txn_first_offset: int = -1
    damages: int = 0
    """How many damages the log had shown when it was last heard of."""

    def set_epoch(self, epoch: int) -> None:
        """ProducerStateEntry.maybeUpdateProducerEpoch: another epoch begins a new history."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.last_sequence = self.last_offset = self.batch_epoch = -1
            self.offset_delta = 0
        self.highest_epoch = max(self.highest_epoch, epoch)

    def is_expired(self, now: int, expiration: int = EXPIRATION) -> bool:
        """Whether a broker would have forgotten it at `now`, epoch ms (ProducerStateManager.isProducerExpired)."""
        return self.txn_first_offset < 0 and now - self.timestamp >= expiration


class Break(NamedTuple):
    """A batch that does not follow the one before it of the same producer. `kind` is one of EPOCH_DECREASED,
    EPOCH_START (a new epoch that does not begin with sequence 0), GAP and DUPLICATE; `expected` and `actual` are epochs
    for the first, else sequences; `epoch` is the batch's. `idle`: ms since it was heard of; `damaged`: damage lies
    between the two."""

    kind: str
    epoch: int
    expected: int
    actual: int
    last_sequence: int
    last_offset: int
    idle: int
    damaged: bool


class Producers:
    """Producers by id, as of the batches that were told so far. `forgotten` counts those for whom there was no room;
    `make` makes one from its id's first epoch."""

    def __init__(self, make: Callable[[int], Producer] | None = None) -> None:
        self.by_id: OrderedDict[int, Producer] = OrderedDict()
        self.make = make or (lambda epoch: Producer(epoch, epoch))
        self.forgotten = 0

    def get(self, producer_id: int) -> Producer | None:
        return self.by_id.get(producer_id)

    def touch(self, producer_id: int, epoch: int) -> Producer:
        """The producer, made if need be, now the one that was last heard of."""
        producer = self.by_id.get(producer_id)
        if producer is not None:
            self.by_id.move_to_end(producer_id)
            return producer
        producer = self.by_id[producer_id] = self.make(epoch)
        if len(self.by_id) > MOST_PRODUCERS:
            self.by_id.popitem(last=False)
            self.forgotten += 1
        return producer

    def data(self, batch: Batch, damages: int = 0) -> None:
        """A data batch of a producer (ProducerAppendInfo.appendDataBatch)."""
        assert batch.producerId is not None
        self.wrote(
            batch.producerId,
            batch.producerEpoch or 0,
            batch.lastSequence if batch.lastSequence is not None else -1,
            batch.lastOffset,
            batch.lastOffsetDelta or 0,
            -1 if batch.maxTimestamp is None else batch.maxTimestamp,
            batch.baseOffset or 0 if batch.isTransactional else None,
            damages,
        )

    def wrote(
        self,
        producer_id: int,
        epoch: int,
        last_sequence: int,
        last_offset: int,
        offset_delta: int,
        timestamp: int,
        transaction: int | None,
        damages: int,
    ) -> None:
        """One data batch or several of a producer, of which these are the last one's; `transaction` is the base offset
        of the first, if they are transactional."""
        now = self.touch(producer_id, epoch)
        now.set_epoch(epoch)
        now.batch_epoch = epoch
        now.last_sequence, now.last_offset, now.offset_delta = last_sequence, last_offset, offset_delta
        now.batch_timestamp = now.timestamp = timestamp
        now.damages = damages
        if transaction is not None and now.txn_first_offset < 0:
            now.txn_first_offset = transaction

    def marker(self, batch: Batch, marker: Marker) -> None:
        """A transaction marker (ProducerAppendInfo.appendEndTxnMarker). Since transaction version 2 it has the epoch
        behind that of the data."""
        assert batch.producerId is not None
        epoch = batch.producerEpoch or 0
        now = self.touch(batch.producerId, epoch)
        now.set_epoch(epoch)
        if marker.coordinatorEpoch is not None:
            now.coordinator_epoch = marker.coordinatorEpoch
        timestamp = batch.maxTimestamp if marker.timestamp is None else marker.timestamp
        now.timestamp = -1 if timestamp is None else timestamp
        now.txn_first_offset = -1


def follows(before: Producer, batch: Batch, damages: int = 0) -> Break | None:
    """How a data batch with a sequence breaks with what went `before`; None where it follows, as
    ProducerAppendInfo.checkProducerEpoch and checkSequence have it."""
    epoch, base = batch.producerEpoch or 0, batch.baseSequence or 0
    idle = (batch.maxTimestamp or 0) - before.timestamp
    damaged = before.damages != damages

    def broken(kind: str, expected: int, actual: int) -> Break:
        return Break(kind, epoch, expected, actual, before.last_sequence, before.last_offset, idle, damaged)

    if epoch < before.highest_epoch:
        return broken(EPOCH_DECREASED, before.highest_epoch, epoch)
    if epoch > before.highest_epoch:
        return broken(EPOCH_START, 0, base) if base != 0 else None
    if before.last_sequence < 0 or before.batch_epoch != epoch:
        return None
    expected = sequence(before.last_sequence, 1)
    ahead = (base - expected) % WRAP
    if ahead == 0:
        return None
    return broken(GAP if ahead < HALF else DUPLICATE, expected, base)
