"""What a broker remembers of each producer, rebuilt from a partition's batches.

Source: org.apache.kafka.storage.internals.log.ProducerStateManager, ProducerStateEntry and ProducerAppendInfo.
"""

from __future__ import annotations

from dataclasses import dataclass

MOST_PRODUCERS = 1_000_000
"""Producers that are remembered; beyond that the one that was idle for longest is forgotten."""


@dataclass
class Producer:
    """One producer id. -1: none. Timestamps are epoch ms."""

    epoch: int
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


class Producers:
    """Producers by id, as of the batches that were told so far."""

    def __init__(self) -> None:
        self.by_id: dict[int, Producer] = {}

    def get(self, producer_id: int) -> Producer | None:
        return self.by_id.get(producer_id)

    def touch(self, producer_id: int, epoch: int) -> Producer:
        """The producer, made if need be, now the one that was last heard of."""
        producer = self.by_id.pop(producer_id, None) or Producer(epoch)
        self.by_id[producer_id] = producer
        if len(self.by_id) > MOST_PRODUCERS:
            del self.by_id[next(iter(self.by_id))]
        return producer
