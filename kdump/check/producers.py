"""Family log, producers: checks sequences and epochs of idempotent producers, and compares producer snapshots with the
log.

Source: ProducerAppendInfo.checkProducerEpoch, checkSequence; ProducerStateManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kdump.check.carried import NAMES, NUMBER
from kdump.check.carried import PRODUCERS as STATE
from kdump.check.catalogue import INFO
from kdump.check.finding import Finding, found
from kdump.check.rule import LOST, NONE, BatchContext, PartitionContext, Rule, SegmentContext, hides
from kdump.format.batch import TRANSACTIONAL, sequence
from kdump.format.header_columns import (
    ATTRIBUTES,
    BASE,
    LAST,
    MAX_TIMESTAMP,
    PRODUCER,
    PRODUCER_EPOCH,
    SEQUENCE,
    HeaderColumns,
    ProducerWrites,
    producer_writes,
    within,
)
from kdump.log.paths import Target
from kdump.log.region import Region
from kdump.state.producers import (
    DUPLICATE,
    EPOCH_DECREASED,
    EPOCH_START,
    EXPIRATION,
    GAP,
    MOST_PRODUCERS,
    ProducerState,
    ProducerStateEntry,
    SequenceBreak,
    follows,
)

CODES = {
    EPOCH_DECREASED: "producer-epoch-decreased",
    EPOCH_START: "sequence-epoch-start",
    GAP: "sequence-gap",
    DUPLICATE: "sequence-duplicate",
}


def said(broken: SequenceBreak) -> str:
    """Return a description of how a batch breaks with its producer's previous batch."""
    if broken.kind == EPOCH_DECREASED:
        return f"epoch {broken.actual}, but an earlier batch has {broken.expected}"
    if broken.kind == EPOCH_START:
        return f"epoch {broken.epoch} starts with sequence {broken.actual}"
    return f"sequence {broken.actual} follows {broken.last_sequence} (offset {broken.last_offset})"


class ProducerSequenceRule(Rule):
    """Checks sequences and epochs. Keeps the producers' state, which other rules use too. `broken`: how the current
    batch breaks with its producer's previous batch, None if it does not."""

    carries = {"state": STATE, "damages": NUMBER}

    def __init__(self, known: PartitionContext, state: ProducerState | None = None) -> None:
        self.known = known
        self.quiet = known.internal
        self.state = ProducerState() if state is None else state
        self.damages = 0
        self.broken: SequenceBreak | None = None

    def region(self, part: SegmentContext, region: Region) -> Iterable[Finding]:
        self.damages += hides(part, region)
        return NONE

    def unread(self) -> None:
        self.damages += 1

    def batch(self, seen: BatchContext) -> Iterable[Finding]:
        batch = seen.batch
        self.broken = None
        if not seen.sound:
            self.damages += 1
            return NONE
        producer_id = batch.producerId
        if producer_id is None or producer_id < 0:
            return NONE
        if batch.isControlBatch:
            if seen.marker is not None:
                self.state.marker(batch, seen.marker)
            return NONE
        start = self.known.log_start
        below = start is not None and batch.lastOffset < start
        before = self.state.get(producer_id)
        if not self.quiet and not below and before is not None and (batch.baseSequence or 0) >= 0:
            self.broken = follows(before, batch, self.damages)
        self.state.data(batch, self.damages)
        return NONE if self.broken is None else (self._found(seen, self.broken),)

    def free(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        start = self.known.log_start
        if start is not None and heads.of(first, LAST) < start:
            return first
        if len(self.state.by_id) + stop - first > MOST_PRODUCERS:  # at the limit, producers must be removed one by one
            return first
        stop, found = producer_writes(heads, first, stop, not self.quiet)
        return stop if self.quiet else min((chain.first for chain in found if self._odd(heads, chain)), default=stop)

    def _odd(self, heads: HeaderColumns, chain: ProducerWrites) -> bool:
        """Return True if the first batch of a chain does not continue its producer's last known epoch and sequence."""
        before = self.state.get(heads.of(chain.first, PRODUCER))
        if before is None:
            return False
        epoch = heads.of(chain.first, PRODUCER_EPOCH)
        if epoch != before.epoch or epoch != before.highest_epoch:
            return True
        known = before.last_sequence >= 0 and before.batch_epoch == epoch
        return known and heads.of(chain.first, SEQUENCE) != sequence(before.last_sequence, 1)

    def take(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> None:
        self.broken = None
        for chain in producer_writes(heads, first, stop, False)[1]:
            row = chain.last
            offset, begins = heads.of(row, LAST), heads.of(chain.first, BASE)
            delta = offset - heads.of(row, BASE)
            self.state.wrote(
                heads.of(row, PRODUCER),
                heads.of(row, PRODUCER_EPOCH),
                sequence(heads.of(row, SEQUENCE), delta),
                offset,
                delta,
                heads.of(row, MAX_TIMESTAMP),
                begins if heads.of(row, ATTRIBUTES) & TRANSACTIONAL.mask else None,
                self.damages,
            )

    def _found(self, seen: BatchContext, broken: SequenceBreak) -> Finding:
        batch = seen.batch
        message = f"producer {batch.producerId}: "
        message += said(broken)
        severity = consequence = None
        if broken.idle > EXPIRATION:
            severity = INFO
            consequence = "the broker no longer had state for this producer and accepted the batch"
        if broken.kind != DUPLICATE:
            if self.known.compacted:
                severity = INFO
                consequence = "the log cleaner removed batches of this producer"
            if broken.damaged:
                severity = INFO
                message += "; there is damage between the two"
                consequence = LOST
        return found(
            CODES[broken.kind],
            seen.part.target,
            message,
            position=batch.position,
            size=batch.size,
            offset=batch.baseOffset,
            expected=broken.expected,
            actual=broken.actual,
            severity=severity,
            consequence=consequence,
        )


Row = tuple[int, dict[str, Any]]
"""An entry of a producer snapshot: its position in the file, and its values."""


class ProducerSnapshotRule(Rule):
    """Compares each producer snapshot with the log once the batches below its offset have been processed. `read`
    returns the entries of a snapshot, None if it is not valid."""

    carries = {"first": NUMBER, "compared": NAMES}

    def __init__(
        self, sequences: ProducerSequenceRule, snapshots: list[Target], read: Callable[[Target], Iterator[Row] | None]
    ) -> None:
        self.sequences = sequences
        self.read = read
        self.waiting = sorted(snapshots, key=lambda at: at.name_offset or 0)
        self.first: int | None = None
        """First offset on the disk."""
        self.compared: list[str] = []
        """Paths of the snapshots that have been compared."""

    def resumed(self) -> None:
        self.waiting = [at for at in self.waiting if at.path not in self.compared]

    def batch(self, seen: BatchContext) -> Iterable[Finding]:
        if not self.waiting or not seen.sound:
            return NONE
        base = seen.batch.lastOffset if seen.batch.baseOffset is None else seen.batch.baseOffset
        self.first = base if self.first is None else self.first
        findings: list[Finding] = []
        while self.waiting and (self.waiting[0].name_offset or 0) <= base:
            findings.extend(self._compare(self.waiting.pop(0)))
        return findings

    def free(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        if not self.waiting:
            return stop
        return (
            first if self.first is None else within(heads, BASE, first, stop, 0, (self.waiting[0].name_offset or 0) - 1)
        )

    def end(self) -> Iterable[Finding]:
        return [finding for at in self.waiting for finding in self._compare(at)]

    def _compare(self, at: Target) -> Iterator[Finding]:
        self.compared.append(at.path)
        if self.sequences.damages:
            return
        for position, entry in self.read(at) or ():
            disk = self.sequences.state.get(entry["producerId"])
            if disk is None:
                continue
            wrong = self._open(disk, entry["currentTxnFirstOffset"])
            if wrong or disk.last_offset < 0 or entry["lastOffset"] < 0:
                pass
            elif disk.last_offset > entry["lastOffset"]:
                wrong = ("lastOffset", disk.last_offset, entry["lastOffset"])
            elif disk.last_offset == entry["lastOffset"]:
                for name, values in (
                    ("epoch", (disk.batch_epoch, disk.epoch, disk.highest_epoch)),
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
                    f"producer {entry['producerId']}: {name} is {actual}, but {expected} in the log",
                    position=position,
                    offset=disk.last_offset,
                    expected=expected,
                    actual=actual,
                )

    def _open(self, disk: ProducerStateEntry, said: int) -> tuple[str, int, int] | None:
        """Return how a snapshot's open transaction differs from the log's, as (field, expected, actual); None if it
        does not. A transaction that began below the first offset on the disk is known only to the snapshot, and
        compaction may have removed the batch that began it."""
        if self.sequences.known.compacted or disk.txn_first_offset == said or 0 <= said < (self.first or 0):
            return None
        return "currentTxnFirstOffset", disk.txn_first_offset, said
