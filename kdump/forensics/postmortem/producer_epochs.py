"""The producers that wrote to a partition, by epoch, from the headers of its batches; in a bounded table."""

from __future__ import annotations

from kdump.core.column_numbers import BASE_OFFSET, LAST_OFFSET, MAX_TIMESTAMP, PRODUCER_EPOCH, PRODUCER_ID
from kdump.core.header_columns import HeaderColumns, producer_writes
from kdump.forensics.postmortem.facts import ProducerEpoch
from kdump.log.region import Batch

MAX_PRODUCER_EPOCHS = 4096
"""Maximum number of producer epochs in the table; when it is full, the half with the fewest bytes is removed."""


class ProducerEpochs:
    """Collects data batches. `count`: number of producer epochs, where one that was removed and appears again counts
    twice."""

    def __init__(self) -> None:
        self.by_id: dict[tuple[int, int], ProducerEpoch] = {}
        self.removed = 0

    @property
    def count(self) -> int:
        return len(self.by_id) + self.removed

    def batch(self, batch: Batch) -> None:
        """Add a valid data batch."""
        if batch.producerId is not None and batch.producerId >= 0:
            base = batch.lastOffset if batch.baseOffset is None else batch.baseOffset
            newest = -1 if batch.maxTimestamp is None else batch.maxTimestamp
            counts = (1, batch.possible_records, batch.size)
            self._add(batch.producerId, batch.producerEpoch or 0, base, batch.lastOffset, counts, newest)

    def add_many(self, heads: HeaderColumns, first: int, stop: int) -> None:
        """Add the valid data batches first..stop-1."""
        while first < stop:
            upto, found = producer_writes(heads, first, stop, False)
            for chain in found:
                last = chain.last
                who = heads.of(last, PRODUCER_ID), heads.of(last, PRODUCER_EPOCH)
                offsets = heads.of(chain.first, BASE_OFFSET), heads.of(last, LAST_OFFSET)
                counts = (chain.batches, chain.records, chain.bytes)
                self._add(*who, *offsets, counts, heads.of(last, MAX_TIMESTAMP))
            first = upto

    def _add(self, pid: int, epoch: int, first: int, last: int, counts: tuple[int, int, int], newest: int) -> None:
        row = self.by_id.get((pid, epoch))
        if row is None:
            if len(self.by_id) >= MAX_PRODUCER_EPOCHS:
                self._purge()
            row = self.by_id[pid, epoch] = ProducerEpoch(pid, epoch, first, last)
        row.first, row.last = min(first, row.first), max(last, row.last)
        row.batches += counts[0]
        row.records += counts[1]
        row.bytes += counts[2]
        row.newest = max(newest, row.newest)

    def _purge(self) -> None:
        kept = sorted(self.by_id.items(), key=lambda item: -item[1].bytes)[: MAX_PRODUCER_EPOCHS // 2]
        self.removed += len(self.by_id) - len(kept)
        self.by_id = dict(kept)

    def largest(self, limit: int) -> list[ProducerEpoch]:
        """Return the `limit` producer epochs with the most bytes, in order of their first offsets."""
        found = sorted(self.by_id.values(), key=lambda each: -each.bytes)[:limit]
        return sorted(found, key=lambda each: (each.first, each.producerId, each.epoch))
