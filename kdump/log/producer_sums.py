"""Sums of batches by producer, from their headers: rows of the table producers, from which the summary of a scan is
computed without reading the table batches again, and what a report draws."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kdump.core.header_columns import HeaderColumns, add_producers
from kdump.log.region import Batch

MAX_PRODUCERS = 50_000
"""Number of producers of a segment whose sums are held in memory; then they are written."""
NAMES = ("batches", "records", "size", "firstTimestamp", "lastTimestamp")


class ProducerSums:
    """Sums of data batches whose checksums match. `sums`: by producer ID and epoch, the values of NAMES, and the first
    and the last offset."""

    def __init__(self) -> None:
        self.sums: dict[tuple[int, int], list[int]] = {}

    @property
    def is_full(self) -> bool:
        """Whether the rows should be taken now."""
        return len(self.sums) >= MAX_PRODUCERS

    def batch(self, batch: Batch) -> None:
        """Add one batch."""
        producer, epoch, time = batch.producerId, batch.producerEpoch, batch.maxTimestamp
        if producer is None or producer < 0 or epoch is None or time is None or batch.isControlBatch:
            return
        if not batch.crcValid:
            return
        base, last = batch.baseOffset or 0, batch.lastOffset
        held = self.sums.setdefault((producer, epoch), [0, 0, 0, time, time, base, last])
        held[:3] = held[0] + 1, held[1] + batch.possible_records, held[2] + batch.size
        held[3:] = min(held[3], time), max(held[4], time), min(held[5], base), max(held[6], last)

    def batches(self, heads: HeaderColumns, first: int, stop: int) -> None:
        """Add the batches first..stop-1: valid, without control batches."""
        add_producers(self.sums, heads, first, stop)

    def take(self) -> Iterator[dict[str, Any]]:
        """Yield the rows, and begin again."""
        sums, self.sums = self.sums, {}
        for (producer, epoch), values in sums.items():
            yield {"producerId": producer, "producerEpoch": epoch, **dict(zip(NAMES, values))}
