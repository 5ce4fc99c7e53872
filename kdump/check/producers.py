"""Family log, producers: sequences and epochs of idempotent producers; and snapshots of their state held against it.

Source: ProducerAppendInfo.checkProducerEpoch, checkSequence; ProducerStateManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kdump.check.catalogue import INFO
from kdump.check.finding import Finding, found
from kdump.check.rule import DAY, LOST, NONE, Known, Part, Rule, Seen
from kdump.format.batch import sequence
from kdump.format.heads import (
    BASE,
    LAST,
    MAX_TIMESTAMP,
    PRODUCER,
    PRODUCER_EPOCH,
    SEQUENCE,
    Chain,
    Heads,
    chains,
    within,
)
from kdump.log.paths import Target
from kdump.log.region import Region
from kdump.state.producers import MOST_PRODUCERS, Producer, Producers

HALF = 1 << 30
WRAP = 1 << 31


class Sequences(Rule):
    """Keeps the producers' state, for itself and for those that compare with it."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.quiet = known.internal
        self.state = Producers()
        self.damages = 0

    def region(self, part: Part, region: Region) -> Iterable[Finding]:
        self.damages += 1
        return NONE

    def batch(self, seen: Seen) -> Iterable[Finding]:
        batch = seen.batch
        if not seen.sound:
            self.damages += 1
            return NONE
        producer_id = batch.producerId
        if producer_id is None or producer_id < 0:
            return NONE
        epoch = batch.producerEpoch or 0
        if batch.isControlBatch:
            if seen.marker is not None:
                self._marker(producer_id, epoch, seen)
            return NONE
        start = self.known.log_start
        below = start is not None and batch.lastOffset < start
        before = self.state.get(producer_id)
        findings = NONE
        if not self.quiet and not below and before is not None and (batch.baseSequence or 0) >= 0:
            findings = tuple(self._compared(seen, before, epoch))
        last = batch.lastSequence if batch.lastSequence is not None else -1
        self._wrote(producer_id, epoch, last, batch.lastOffset, batch.lastOffsetDelta or 0, batch.maxTimestamp or -1)
        return findings

    def free(self, part: Part, heads: Heads, first: int, stop: int) -> int:
        start = self.known.log_start
        if start is not None and heads.of(first, LAST) < start:
            return first
        if len(self.state.by_id) + stop - first > MOST_PRODUCERS:  # whoever is forgotten must be so at once
            return first
        stop, found = chains(heads, first, stop, not self.quiet)
        return stop if self.quiet else min((chain.first for chain in found if self._odd(heads, chain)), default=stop)

    def _odd(self, heads: Heads, chain: Chain) -> bool:
        """Whether the first batch of a producer does not follow the last that is known of it."""
        before = self.state.get(heads.of(chain.first, PRODUCER))
        if before is None:
            return False
        expected = sequence(before.last_sequence, 1) if before.last_sequence >= 0 else None
        differs = expected is not None and heads.of(chain.first, SEQUENCE) != expected
        return differs or heads.of(chain.first, PRODUCER_EPOCH) != before.epoch

    def take(self, part: Part, heads: Heads, first: int, stop: int) -> None:
        for chain in chains(heads, first, stop, False)[1]:
            row = chain.last
            delta = heads.of(row, LAST) - heads.of(row, BASE)
            self._wrote(
                heads.of(row, PRODUCER),
                heads.of(row, PRODUCER_EPOCH),
                sequence(heads.of(row, SEQUENCE), delta),
                heads.of(row, LAST),
                delta,
                heads.of(row, MAX_TIMESTAMP),
            )

    def _wrote(self, producer_id: int, epoch: int, last_sequence: int, offset: int, delta: int, timestamp: int) -> None:
        """What is known of a producer behind a batch of it."""
        now = self.state.touch(producer_id, epoch)
        now.epoch = max(now.epoch, epoch)
        now.batch_epoch = epoch
        now.last_sequence = last_sequence
        now.last_offset = offset
        now.offset_delta = delta
        now.batch_timestamp = now.timestamp = timestamp or -1
        now.damages = self.damages

    def _marker(self, producer_id: int, epoch: int, seen: Seen) -> None:
        assert seen.marker is not None
        now = self.state.touch(producer_id, epoch)
        if epoch > now.epoch:
            # A marker that bumps the epoch starts a new history (ProducerStateEntry.maybeUpdateProducerEpoch).
            now.epoch = epoch
            now.last_sequence = now.last_offset = now.batch_epoch = -1
        if seen.marker.coordinatorEpoch is not None:
            now.coordinator_epoch = seen.marker.coordinatorEpoch
        now.timestamp = seen.batch.maxTimestamp or -1

    def _compared(self, seen: Seen, before: Producer, epoch: int) -> Iterator[Finding]:
        batch = seen.batch
        base = batch.baseSequence or 0
        if epoch < before.epoch:
            said = f"epoch {epoch}, an earlier batch has {before.epoch}"
            yield self._found("producer-epoch-decreased", seen, before, said, before.epoch, epoch)
        elif epoch > before.epoch:
            if base != 0:
                said = f"epoch {epoch} begins with sequence {base}"
                yield self._found("sequence-epoch-start", seen, before, said, 0, base)
        elif before.last_sequence >= 0:
            expected = sequence(before.last_sequence, 1)
            ahead = (base - expected) % WRAP
            if ahead == 0:
                return
            code = "sequence-gap" if ahead < HALF else "sequence-duplicate"
            said = f"sequence {base} behind {before.last_sequence} (offset {before.last_offset})"
            yield self._found(code, seen, before, said, expected, base)

    def _found(self, code: str, seen: Seen, before: Producer, said: str, expected: int, actual: int) -> Finding:
        batch = seen.batch
        severity = consequence = None
        if (batch.maxTimestamp or 0) - before.timestamp > DAY:
            severity = INFO
            consequence = "the broker had forgotten the producer by then, and took the batch"
        if code != "sequence-duplicate":
            if self.known.compacted:
                severity = INFO
                consequence = "the cleaner has removed batches of this producer"
            if before.damages != self.damages:
                severity = INFO
                said += "; damage lies between the two"
                consequence = LOST
        return found(
            code,
            seen.part.target,
            f"producer {batch.producerId}: {said}",
            position=batch.position,
            size=batch.size,
            offset=batch.baseOffset,
            expected=expected,
            actual=actual,
            severity=severity,
            consequence=consequence,
        )


Snapshot = tuple[Target, list[tuple[int, dict[str, Any]]]]
"""A snapshot's file, and its entries: where each stands, and its values."""


class Snapshots(Rule):
    """Each snapshot is compared when the batches below its offset have been seen."""

    def __init__(self, sequences: Sequences, snapshots: list[Snapshot]) -> None:
        self.sequences = sequences
        self.waiting = sorted(snapshots, key=lambda snapshot: snapshot[0].name_offset or 0)

    def batch(self, seen: Seen) -> Iterable[Finding]:
        if not self.waiting or not seen.sound:
            return NONE
        base = seen.batch.lastOffset if seen.batch.baseOffset is None else seen.batch.baseOffset
        findings: list[Finding] = []
        while self.waiting and (self.waiting[0][0].name_offset or 0) <= base:
            findings.extend(self._compare(*self.waiting.pop(0)))
        return findings

    def free(self, part: Part, heads: Heads, first: int, stop: int) -> int:
        if not self.waiting:
            return stop
        return within(heads, BASE, first, stop, 0, (self.waiting[0][0].name_offset or 0) - 1)

    def end(self) -> Iterable[Finding]:
        return [finding for snapshot in self.waiting for finding in self._compare(*snapshot)]

    def _compare(self, at: Target, entries: list[tuple[int, dict[str, Any]]]) -> Iterator[Finding]:
        if self.sequences.damages:
            return
        for position, entry in entries:
            disk = self.sequences.state.get(entry["producerId"])
            if disk is None or disk.last_offset < 0 or entry["lastOffset"] < 0:
                continue
            wrong: tuple[str, int, int] | None = None
            if disk.last_offset > entry["lastOffset"]:
                wrong = ("lastOffset", disk.last_offset, entry["lastOffset"])
            elif disk.last_offset == entry["lastOffset"]:
                for name, values in (
                    ("epoch", (disk.batch_epoch, disk.epoch)),
                    ("lastSequence", (disk.last_sequence,)),
                    ("offsetDelta", (disk.offset_delta,)),
                    ("timestamp", (disk.batch_timestamp, disk.timestamp)),
                ):
                    if entry[name] not in values:
                        wrong = (name, values[0], entry[name])
                        break
            if wrong:
                name, expected, actual = wrong
                yield found(
                    "snapshot-mismatch",
                    at,
                    f"producer {entry['producerId']}: {name} {actual}, the log says {expected}",
                    position=position,
                    offset=disk.last_offset,
                    expected=expected,
                    actual=actual,
                )
