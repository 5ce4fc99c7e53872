"""Family log, epochs: leader epochs of batches, and leader-epoch-checkpoint."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise

from kdump.check.carried import NUMBER
from kdump.check.finding import Finding, found
from kdump.check.rule import NONE, BatchContext, FindingMerger, PartitionContext, Rule, SegmentContext
from kdump.format.count_text import count_text
from kdump.format.header_columns import BASE, EPOCH, HeaderColumns, within


class Epochs(Rule):
    """Checks that leader epochs do not decrease and agree with leader-epoch-checkpoint."""

    carries = {"last": NUMBER}

    def __init__(self, known: PartitionContext) -> None:
        entries = known.epochs or ()
        self.falling = next(
            (b for a, b in pairwise(entries) if a.epoch >= b.epoch or a.startOffset >= b.startOffset), None
        )
        self.known = known
        self.starts = [] if self.falling else [entry.startOffset for entry in entries]
        self.epochs = [entry.epoch for entry in entries]
        self.last = -1
        self.missing = FindingMerger()
        self.differing = FindingMerger()
        self.expected = 0

    def batch(self, seen: BatchContext) -> Iterable[Finding]:
        batch = seen.batch
        epoch = batch.partitionLeaderEpoch
        if not seen.sound or epoch is None:
            return NONE
        if epoch == self.last and not self.starts:
            return NONE
        return list(self._batch(seen, epoch))

    def free(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        if self.starts:
            if self.last < 0 or self.missing.first is not None or self.differing.first is not None:
                return first
            entry = bisect_right(self.starts, heads.of(first, BASE)) - 1
            if entry >= 0 and self.epochs[entry] != self.last:
                return first
            if entry + 1 < len(self.starts):
                stop = within(heads, BASE, first, stop, 0, self.starts[entry + 1] - 1)
        return within(heads, EPOCH, first, stop, self.last, self.last)

    def _batch(self, seen: BatchContext, epoch: int) -> Iterator[Finding]:
        batch = seen.batch
        if epoch == -1:
            self.missing.add(seen)
            return
        yield from self._missing()
        if epoch < self.last:
            yield found(
                "leader-epoch-decreased",
                seen.part.target,
                f"leader epoch {epoch}, but the batch before it has {self.last}",
                position=batch.position,
                size=batch.size,
                offset=batch.baseOffset,
                expected=self.last,
                actual=epoch,
            )
        self.last = epoch
        base = batch.baseOffset or 0
        entry = bisect_right(self.starts, base) - 1
        if entry >= 0 and self.epochs[entry] != epoch:
            if self.differing.first is not None and self.expected != self.epochs[entry]:
                yield from self._differing()
            self.expected = self.epochs[entry]
            self.differing.add(seen)
        else:
            yield from self._differing()

    def finish(self, part: SegmentContext) -> Iterable[Finding]:
        return [*self._missing(), *self._differing()]

    def _missing(self) -> Iterator[Finding]:
        taken = self.missing.take()
        if taken:
            first, count, end, last = taken
            batches = count_text(count, "batch", "batches")
            message = f"{batches} without a leader epoch, offsets {first.batch.baseOffset}..{last}"
            position = first.batch.position
            yield found(
                "leader-epoch-missing",
                first.part.target,
                message,
                position=position,
                size=end - position,
                offset=first.batch.baseOffset,
                actual=-1,
            )

    def _differing(self) -> Iterator[Finding]:
        taken = self.differing.take()
        if taken:
            first, count, end, last = taken
            batch = first.batch
            message = (
                f"leader epoch {batch.partitionLeaderEpoch} in {count_text(count, 'batch', 'batches')}, offsets "
                f"{batch.baseOffset}..{last}, but {self.expected} in leader-epoch-checkpoint"
            )
            yield found(
                "leader-epoch-checkpoint-mismatch",
                first.part.target,
                message,
                position=batch.position,
                size=end - batch.position,
                offset=batch.baseOffset,
                expected=self.expected,
                actual=batch.partitionLeaderEpoch,
            )

    def end(self) -> Iterable[Finding]:
        entry, at = self.falling, self.known.epochs_at
        if entry is None or at is None:
            return NONE
        message = f"epoch {entry.epoch} from offset {entry.startOffset} on: not above the previous line in both columns"
        code = "leader-epoch-checkpoint-mismatch"
        return [found(code, at, message, position=entry.position, size=entry.size, offset=entry.startOffset)]
