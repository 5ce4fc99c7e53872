"""The producers that wrote to a partition, by epoch, from the headers of its batches; in a bounded table."""

from __future__ import annotations

from kdump.core.header_columns import HeaderColumns
from kdump.forensics.postmortem.facts import ProducerEpoch
from kdump.log.producer_sums import ProducerSums
from kdump.log.region import Batch

MAX_PRODUCER_EPOCHS = 4096
"""Maximum number of producer epochs in the table; when it is full, the half with the fewest bytes is removed."""


class ProducerEpochs(ProducerSums):
    """Collects valid batches. `count`: number of producer epochs, where one that was removed and appears again counts
    twice."""

    removed = 0

    @property
    def count(self) -> int:
        return len(self.sums) + self.removed

    def batch(self, batch: Batch) -> None:
        super().batch(batch)
        self._purge()

    def batches(self, heads: HeaderColumns, first: int, stop: int) -> None:
        super().batches(heads, first, stop)
        self._purge()

    def _purge(self) -> None:
        if len(self.sums) > MAX_PRODUCER_EPOCHS:
            kept = sorted(self.sums.items(), key=lambda item: -item[1][2])[: MAX_PRODUCER_EPOCHS // 2]
            self.removed += len(self.sums) - len(kept)
            self.sums = dict(kept)

    def largest(self, limit: int) -> list[ProducerEpoch]:
        """Return the `limit` producer epochs with the most bytes, in order of their first offsets."""
        found = [
            ProducerEpoch(*who, first, last, batches, records, size, newest)
            for who, (batches, records, size, _, newest, first, last) in self.sums.items()
        ]
        found = sorted(found, key=lambda each: -each.bytes)[:limit]
        return sorted(found, key=lambda each: (each.first, each.producerId, each.epoch))
