"""Keeps the state of a partition's idempotent producers.

Source: ProducerAppendInfo.checkProducerEpoch, checkSequence; ProducerStateManager."""

from __future__ import annotations

from typing import Any

from kdump.check.partition_context import PartitionContext
from kdump.check.resume_state import NUMBER
from kdump.check.resume_state import PRODUCERS as STATE
from kdump.check.rule import BatchContext, Observer, SegmentContext, may_hide_batches
from kdump.core.column_numbers import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_SEQUENCE,
    IS_TRANSACTIONAL,
    LAST_OFFSET,
    MAX_TIMESTAMP,
    PRODUCER_EPOCH,
    PRODUCER_ID,
)
from kdump.core.header_columns import HeaderColumns, ProducerWrites, producer_writes
from kdump.format.batch_header import sequence
from kdump.format.numbers import minus
from kdump.log.region import Region
from kdump.state.producer_state import MAX_PRODUCERS, ProducerState, SequenceBreak, follows
from kdump.state.transaction_marker import coordinator_epoch


class ProducerWatcher(Observer):
    """Keeps the producers' state in `state`. `broken`: how the current batch breaks with its producer's previous batch,
    None if it does not, and always in Kafka's own topics; `damages`: number of damaged places so far."""

    saved_fields = {"state": STATE, "damages": NUMBER}

    def __init__(self, context: PartitionContext, state: ProducerState[Any] | None = None) -> None:
        self.known = context
        self.quiet = context.internal
        self.state: ProducerState[Any] = ProducerState() if state is None else state
        self.damages = 0
        self.broken: SequenceBreak | None = None

    def region(self, part: SegmentContext, region: Region) -> None:
        self.damages += may_hide_batches(part, region)

    def unread(self) -> None:
        self.damages += 1

    def batch(self, seen: BatchContext) -> None:
        batch = seen.batch
        self.broken = None
        if not seen.is_valid and not batch.crcValid:  # with the checksum, only its length or magic is wrong
            self.damages += 1
            return
        producer_id = batch.producerId
        if producer_id is None or producer_id < 0:
            return
        if batch.isControlBatch:
            if seen.marker is not None:
                time = batch.maxTimestamp if seen.marker.timestamp is None else seen.marker.timestamp
                epoch = batch.producerEpoch or 0
                self.state.marker(producer_id, epoch, seen.marker.coordinatorEpoch, -1 if time is None else time)
            return
        start = self.known.log_start
        below = start is not None and batch.lastOffset < start
        before = self.state.get(producer_id)
        if not self.quiet and not below and before is not None and (batch.baseSequence or 0) >= 0:
            self.broken = follows(before, batch, self.damages)
        self.state.data(batch, self.damages)

    def first_suspect(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        start = self.known.log_start
        if start is not None and heads.of(first, LAST_OFFSET) < start:
            return first
        if len(self.state) + stop - first > MAX_PRODUCERS:  # at the limit, producers must be removed one by one
            return first
        stop, writes = producer_writes(heads, first, stop, not self.quiet)
        return (
            stop
            if self.quiet
            else min((chain.begins for chain in writes if self._is_suspect(heads, chain)), default=stop)
        )

    def _is_suspect(self, heads: HeaderColumns, chain: ProducerWrites) -> bool:
        """Return True if the first batch of a chain does not continue its producer's last known epoch and sequence."""
        before = None if chain.is_checked else self.state.get(heads.of(chain.begins, PRODUCER_ID))
        if before is None:
            return False
        epoch = heads.of(chain.begins, PRODUCER_EPOCH)
        if chain.first < 0:
            return not chain.is_next and bool(epoch < before.highest_epoch)
        if not chain.is_next and (epoch != before.epoch or epoch != before.highest_epoch):
            return True
        has_sequence = before.last_sequence >= 0 and before.batch_epoch == before.epoch == epoch
        return has_sequence and heads.of(chain.first, BASE_SEQUENCE) != sequence(before.last_sequence, 1)

    def accept_run(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> None:
        self.broken = None
        chains: list[ProducerWrites] = []
        replaced: set[int] = set()
        for chain in reversed(producer_writes(heads, first, stop, False)[1]):
            producer_id = heads.of(chain.begins, PRODUCER_ID)
            if producer_id not in replaced:
                chains.append(chain)
                if chain.first >= 0 and chain.marker >= 0:  # nothing of the state before it is left
                    replaced.add(producer_id)
        for chain in reversed(chains):
            if chain.first >= 0:
                self._wrote(heads, chain)
            if chain.marker >= 0:
                marker, of_coordinator = heads.row(chain.marker), coordinator_epoch(heads, chain.marker)
                self.state.marker(marker[PRODUCER_ID], marker[PRODUCER_EPOCH], of_coordinator, marker[MAX_TIMESTAMP])

    def _wrote(self, heads: HeaderColumns, chain: ProducerWrites) -> None:
        last, begins = heads.row(chain.last), heads.of(chain.first, BASE_OFFSET)
        delta = minus(last[LAST_OFFSET], last[BASE_OFFSET])
        self.state.wrote(
            last[PRODUCER_ID],
            last[PRODUCER_EPOCH],
            sequence(last[BASE_SEQUENCE], delta),
            last[LAST_OFFSET],
            delta,
            last[MAX_TIMESTAMP],
            begins if last[ATTRIBUTES] & IS_TRANSACTIONAL else None,
            self.damages,
        )
