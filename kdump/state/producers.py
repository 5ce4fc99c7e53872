"""A broker's producer state, rebuilt from a partition's batches.

Source: org.apache.kafka.storage.internals.log.ProducerStateManager, ProducerStateEntry and ProducerAppendInfo, as used
in a replay (AppendOrigin.REPLICATION), which rejects nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from kdump.format.batch import sequence
from kdump.log.region import Batch
from kdump.state.marker import EndTxnMarker

MOST_PRODUCERS = 1_000_000
"""Maximum number of producers kept; beyond that, the one that was idle for longest is removed."""
EXPIRATION = 86_400_000
"""Default of producer.id.expiration.ms (TransactionLogConfig): the time after which a broker removes an idle
producer."""
HALF = 1 << 30
WRAP = 1 << 31

EPOCH_DECREASED, EPOCH_START, GAP, DUPLICATE = "epoch-decreased", "epoch-start", "gap", "duplicate"
"""Ways in which a batch can fail to follow the previous batch of its producer."""


@dataclass(slots=True)
class ProducerStateEntry:
    """State of one producer ID; -1 for none. Timestamps are epoch ms; offsets and sequences are those of the last data
    batch in the current `epoch`, as in ProducerStateEntry."""

    epoch: int
    highest_epoch: int = -1
    batch_epoch: int = -1
    """Epoch of the last data batch; a marker may raise `epoch` later."""
    last_sequence: int = -1
    last_offset: int = -1
    offset_delta: int = 0
    batch_timestamp: int = -1
    timestamp: int = -1
    """Timestamp of the last data batch or marker."""
    coordinator_epoch: int = -1
    txn_first_offset: int = -1
    damages: int = 0
    """Number of damaged regions found in the log up to the producer's last data batch."""

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch; a different one resets sequences and offsets (ProducerStateEntry.maybeUpdateProducerEpoch)."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.last_sequence = self.last_offset = self.batch_epoch = -1
            self.offset_delta = 0
        self.highest_epoch = max(self.highest_epoch, epoch)

    def is_expired(self, now: int, expiration: int = EXPIRATION) -> bool:
        """Return True if a broker would remove the producer at `now`, epoch ms
        (ProducerStateManager.isProducerExpired)."""
        return self.txn_first_offset < 0 and now - self.timestamp >= expiration


class SequenceBreak(NamedTuple):
    """A batch that does not follow the previous batch of the same producer.

    `kind` is EPOCH_DECREASED, EPOCH_START (a new epoch that does not start with sequence 0), GAP or DUPLICATE;
    `expected` and `actual` are epochs for EPOCH_DECREASED, else sequences; `epoch` is the batch's. `idle`: ms since
    the producer's last batch or marker; `damaged`: there is damage between the two batches.
    """

    kind: str
    epoch: int
    expected: int
    actual: int
    last_sequence: int
    last_offset: int
    idle: int
    damaged: bool


class ProducerState:
    """Producers by ID, as of the batches passed in so far. `forgotten` counts those removed to limit memory;
    `new_state` creates the state of a new producer from its first epoch."""

    def __init__(self, new_state: Callable[[int], ProducerStateEntry] | None = None) -> None:
        self.by_id: OrderedDict[int, ProducerStateEntry] = OrderedDict()
        self.new_state = new_state or (lambda epoch: ProducerStateEntry(epoch, epoch))
        self.forgotten = 0

    def get(self, producer_id: int) -> ProducerStateEntry | None:
        return self.by_id.get(producer_id)

    def touch(self, producer_id: int, epoch: int) -> ProducerStateEntry:
        """Return the producer, created if necessary, and make it the most recently active one."""
        producer = self.by_id.get(producer_id)
        if producer is not None:
            self.by_id.move_to_end(producer_id)
            return producer
        producer = self.by_id[producer_id] = self.new_state(epoch)
        if len(self.by_id) > MOST_PRODUCERS:
            self.by_id.popitem(last=False)
            self.forgotten += 1
        return producer

    def data(self, batch: Batch, damages: int = 0) -> None:
        """Apply a data batch of a producer (ProducerAppendInfo.appendDataBatch)."""
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
        """Apply one or more data batches of a producer, given the values of the last one. `transaction` is the base
        offset of the first if they are transactional, else None."""
        now = self.touch(producer_id, epoch)
        now.set_epoch(epoch)
        now.batch_epoch = epoch
        now.last_sequence, now.last_offset, now.offset_delta = last_sequence, last_offset, offset_delta
        now.batch_timestamp = now.timestamp = timestamp
        now.damages = damages
        if transaction is not None and now.txn_first_offset < 0:
            now.txn_first_offset = transaction

    def marker(self, batch: Batch, marker: EndTxnMarker) -> None:
        """Apply a transaction marker (ProducerAppendInfo.appendEndTxnMarker). Since transaction version 2 its epoch is
        one above that of the data."""
        assert batch.producerId is not None
        epoch = batch.producerEpoch or 0
        now = self.touch(batch.producerId, epoch)
        now.set_epoch(epoch)
        if marker.coordinatorEpoch is not None:
            now.coordinator_epoch = marker.coordinatorEpoch
        timestamp = batch.maxTimestamp if marker.timestamp is None else marker.timestamp
        now.timestamp = -1 if timestamp is None else timestamp
        now.txn_first_offset = -1


def follows(before: ProducerStateEntry, batch: Batch, damages: int = 0) -> SequenceBreak | None:
    """Return how a data batch with a sequence breaks with the producer's state `before`; None if it follows correctly.
    The rules are those of ProducerAppendInfo.checkProducerEpoch and checkSequence."""
    epoch, base = batch.producerEpoch or 0, batch.baseSequence or 0
    idle = (batch.maxTimestamp or 0) - before.timestamp
    damaged = before.damages != damages

    def broken(kind: str, expected: int, actual: int) -> SequenceBreak:
        return SequenceBreak(kind, epoch, expected, actual, before.last_sequence, before.last_offset, idle, damaged)

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
