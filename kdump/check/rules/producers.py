"""Family log, producers: sequences and epochs of idempotent producers.

Source: ProducerAppendInfo.checkProducerEpoch, checkSequence; ProducerStateManager.
"""

from __future__ import annotations

from collections.abc import Iterable

from kdump.check.finding import INFO, WARNING, Code, Finding
from kdump.check.rule import LOST, NONE, BatchContext, Observer, SegmentContext
from kdump.check.watchers.producers import ProducerWatcher
from kdump.core.header_columns import HeaderColumns
from kdump.state.producer_state import DUPLICATE, EPOCH_DECREASED, EPOCH_START, GAP, SequenceBreak, default_expiration

OLD = "info if the producer's previous batch is older than producer.id.expiration.ms (a day; before 3.4 a week)"
COMPACTED = "info in a compacted log"
APPENDED = (
    "readers do not check sequence numbers; a broker checks them only in produce requests, where it would reject these "
    "with OutOfOrderSequenceException"
)
LOST_OR_FORGOTTEN = (
    "Compare with another replica (kdump diff). What no replica has was lost, or never existed: a broker that has lost "
    "the state of a producer accepts any sequence, except from a transactional producer with transaction version 2"
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
        "Look at the batches of both epochs (kdump inspect DIR --producer-id PRODUCER-ID): usually two instances used "
        "one transactional ID"
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


def break_text(broken: SequenceBreak) -> str:
    """Return a description of how a batch breaks with its producer's previous batch."""
    if broken.kind == EPOCH_DECREASED:
        return f"epoch {broken.actual}, but an earlier batch has {broken.expected}"
    if broken.kind == EPOCH_START:
        return f"epoch {broken.epoch} starts with sequence {broken.actual}"
    return f"sequence {broken.actual} follows {broken.last_sequence} (offset {broken.last_offset})"


class ProducerSequenceRule(Observer):
    """Reports batches whose sequence or epoch does not follow that of their producer's previous batch."""

    def __init__(self, producers: ProducerWatcher) -> None:
        self.producers = producers
        self.known = producers.known

    def first_suspect(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        return stop  # the watcher examines every batch that does not follow its producer's previous one

    def batch(self, seen: BatchContext) -> Iterable[Finding]:
        broken = self.producers.broken
        return NONE if broken is None else (self._found(seen, broken),)

    def _found(self, seen: BatchContext, broken: SequenceBreak) -> Finding:
        batch = seen.batch
        message = f"producer {batch.producerId}: "
        message += break_text(broken)
        severity = consequence = None
        if broken.idle > default_expiration(self.known.release.release):
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
            producer_id=batch.producerId,
        )
