"""Family log, epochs: leader epochs of batches, and leader-epoch-checkpoint."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from kdump.check.finding import Code, Finding
from kdump.check.partition_context import PartitionContext
from kdump.check.resume_state import NUMBER
from kdump.check.rule import NONE, BatchContext, FindingMerger, Observer, SegmentContext
from kdump.core.column_numbers import BASE_OFFSET, LEADER_EPOCH
from kdump.core.header_columns import HeaderColumns, within
from kdump.format.count_text import count_text
from kdump.kafka.leader_epoch_file_cache import first_falling

LEADER_EPOCH_DECREASED = Code("leader-epoch-decreased")
LEADER_EPOCH_MISSING = Code("leader-epoch-missing")
LEADER_EPOCH_CHECKPOINT_MISMATCH = Code("leader-epoch-checkpoint-mismatch")


class LeaderEpochRule(Observer):
    """Checks that leader epochs do not decrease and agree with leader-epoch-checkpoint."""

    saved_fields = {"last": NUMBER, "unlisted": NUMBER}

    def __init__(self, context: PartitionContext) -> None:
        entries = context.epochs or ()
        number = first_falling(entries)
        self.falling = None if number is None else entries[number]
        self.known = context
        self.starts = [] if self.falling else [entry.startOffset for entry in entries]
        self.epochs = [entry.epoch for entry in entries]
        self.last = -1
        self.unlisted: int | None = None
        """If the checkpoint lists no epoch: the offset from which on the batches have another one than before."""
        self.missing = FindingMerger()
        self.differing = FindingMerger()
        self.expected = 0

    def batch(self, seen: BatchContext) -> Iterable[Finding]:
        batch = seen.batch
        epoch = batch.partitionLeaderEpoch
        if not seen.is_valid or epoch is None:
            return NONE
        if epoch == self.last and not self.starts:
            return NONE
        return list(self._batch(seen, epoch))

    def first_suspect(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        if self.starts:
            if self.last < 0 or self.missing.first is not None or self.differing.first is not None:
                return first
            entry = bisect_right(self.starts, heads.of(first, BASE_OFFSET)) - 1
            if entry >= 0 and self.epochs[entry] != self.last:
                return first
            if entry + 1 < len(self.starts):
                stop = within(heads, BASE_OFFSET, first, stop, 0, self.starts[entry + 1] - 1)
        return within(heads, LEADER_EPOCH, first, stop, self.last, self.last)

    def _batch(self, seen: BatchContext, epoch: int) -> Iterator[Finding]:
        batch = seen.batch
        if epoch == -1:
            self.missing.add(seen)
            return
        yield from self._missing()
        if epoch < self.last:
            yield LEADER_EPOCH_DECREASED.finding(
                seen.part.target,
                message=f"leader epoch {epoch}, but the batch before it has {self.last}",
                position=batch.position,
                size=batch.size,
                offset=batch.baseOffset,
                expected=self.last,
                actual=epoch,
            )
        base = batch.baseOffset or 0
        if self.unlisted is None and 0 <= self.last < epoch:
            self.unlisted = base
        self.last = epoch
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
            yield LEADER_EPOCH_MISSING.finding(
                first.part.target,
                message=message,
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
            yield LEADER_EPOCH_CHECKPOINT_MISMATCH.finding(
                first.part.target,
                message=message,
                position=batch.position,
                size=end - batch.position,
                offset=batch.baseOffset,
                next_offset=last + 1,
                expected=self.expected,
                actual=batch.partitionLeaderEpoch,
            )

    def end(self) -> Iterable[Finding]:
        entry, target = self.falling, self.known.epochs_at
        if self.unlisted is not None and self.known.epochs == () and target is not None:
            return [
                LEADER_EPOCH_CHECKPOINT_MISMATCH.finding(
                    target,
                    message=f"it lists no epoch, but the batches from offset {self.unlisted} on have another one than "
                    "those before",
                    offset=self.unlisted,
                    case="unlisted",
                )
            ]
        if entry is None or target is None:
            return NONE
        message = f"epoch {entry.epoch} from offset {entry.startOffset} on: not above the previous line in both columns"
        return [
            LEADER_EPOCH_CHECKPOINT_MISMATCH.finding(
                target, message=message, position=entry.position, size=entry.size, offset=entry.startOffset
            )
        ]
