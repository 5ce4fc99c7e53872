"""Family log, producers: sequences and epochs of idempotent producers.

Source: ProducerAppendInfo.checkProducerEpoch, checkSequence; ProducerStateManager.
"""

from __future__ import annotations

from collections.abc import Iterable

from kdump.check.finding import INFO, WARNING, Code, Finding
from kdump.check.resume_state import NUMBER
from kdump.check.resume_state import PRODUCERS as STATE
from kdump.check.rule import LOST, NONE, BatchContext, PartitionContext, Rule, SegmentContext, hides
from kdump.format.batch import TRANSACTIONAL, sequence
from kdump.format.heads import (
    ATTRIBUTES,
    BASE,
    LAST,
    MAX_TIMESTAMP,
    PRODUCER,
    PRODUCER_EPOCH,
    SEQUENCE,
    Chain,
    Heads,
    chains,
)
from kdump.log.region import Region
from kdump.state.producers import (
    DUPLICATE,
    EPOCH_DECREASED,
    EPOCH_START,
    EXPIRATION,
    GAP,
    MOST_PRODUCERS,
    ProducerState,
    SequenceBreak,
    follows,
)

OLD = "info if the producer's previous batch is older than producer.id.expiration.ms"
COMPACTED = "info in a compacted log"
APPENDED = (
    "readers do not check sequence numbers; a broker checks them only in produce requests, where it would reject these "
    "with OutOfOrderSequenceException"
)
LOST_OR_FORGOTTEN = (
    "Compare with another replica (kdump diff). What no replica has was lost, or never existed: a broker that has lost "
    "the state of a producer accepts any sequence"
)

SEQUENCE_GAP = Code(
    code="sequence-gap",
    family="producers",
    severity=WARNING,
    meaning="Sequence numbers of a producer are missing between two of its batches.",
    consequence=f"records of this producer may be missing; {APPENDED}",
    fix=LOST_OR_FORGOTTEN,
    source="ProducerAppendInfo.checkSequence",
    unless=f"{OLD}; {COMPACTED}",
)

SEQUENCE_DUPLICATE = Code(
    code="sequence-duplicate",
    family="producers",
    severity=WARNING,
    meaning="A producer's sequence numbers are repeated.",
    consequence=(
        "consumers may get these records twice; readers do not check sequence numbers, and a broker appends no batch "
        "that repeats one of a producer's last five"
    ),
    fix="Find out how the log was copied or restored, or whether the broker had lost the producer's state",
    source="ProducerAppendInfo.checkSequence, ProducerStateEntry.findDuplicateBatch",
    unless=OLD,
)

SEQUENCE_EPOCH_START = Code(
    code="sequence-epoch-start",
    family="producers",
    severity=WARNING,
    meaning="The first batch of a new producer epoch has a sequence other than 0.",
    consequence=f"the first records of that epoch may be missing; {APPENDED}",
    fix=LOST_OR_FORGOTTEN,
    source="ProducerAppendInfo.checkSequence",
    unless=f"{OLD}; {COMPACTED}",
)

PRODUCER_EPOCH_DECREASED = Code(
    code="producer-epoch-decreased",
    family="producers",
    severity=WARNING,
    meaning="A producer's batch has a lower producer epoch than an earlier one.",
    consequence=(
        "a fenced producer wrote this batch; a broker that loads the log only logs a warning, and rejects such a batch "
        "with InvalidProducerEpochException only in a produce request"
    ),
    fix=(
        "Look at the batches of both epochs (kdump inspect --producer-id): usually two instances used one "
        "transactional ID"
    ),
    source="ProducerAppendInfo.checkProducerEpoch",
    unless=f"{OLD}; {COMPACTED}",
    needs_log_dir=True,
)


CODES = {
    EPOCH_DECREASED: PRODUCER_EPOCH_DECREASED,
    EPOCH_START: SEQUENCE_EPOCH_START,
    GAP: SEQUENCE_GAP,
    DUPLICATE: SEQUENCE_DUPLICATE,
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

    def free(self, part: SegmentContext, heads: Heads, first: int, stop: int) -> int:
        start = self.known.log_start
        if start is not None and heads.of(first, LAST) < start:
            return first
        if len(self.state.by_id) + stop - first > MOST_PRODUCERS:  # at the limit, producers must be removed one by one
            return first
        stop, found = chains(heads, first, stop, not self.quiet)
        return stop if self.quiet else min((chain.first for chain in found if self._odd(heads, chain)), default=stop)

    def _odd(self, heads: Heads, chain: Chain) -> bool:
        """Return True if the first batch of a chain does not continue its producer's last known epoch and sequence."""
        before = self.state.get(heads.of(chain.first, PRODUCER))
        if before is None:
            return False
        epoch = heads.of(chain.first, PRODUCER_EPOCH)
        if epoch != before.epoch or epoch != before.highest_epoch:
            return True
        known = before.last_sequence >= 0 and before.batch_epoch == epoch
        return known and heads.of(chain.first, SEQUENCE) != sequence(before.last_sequence, 1)

    def take(self, part: SegmentContext, heads: Heads, first: int, stop: int) -> None:
        self.broken = None
        for chain in chains(heads, first, stop, False)[1]:
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
        return CODES[broken.kind].finding(
            seen.part.target,
            message=message,
            position=batch.position,
            size=batch.size,
            offset=batch.baseOffset,
            expected=broken.expected,
            actual=broken.actual,
            severity=severity,
            consequence=consequence,
        )
