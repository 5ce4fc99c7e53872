"""Family log, producers: sequences and epochs of idempotent producers.

Source: ProducerAppendInfo.checkProducerEpoch, checkSequence; ProducerStateManager."""

from __future__ import annotations

from collections.abc import Iterable

from kdump.check.finding import INFO, Code, Finding
from kdump.check.rule import NONE, BatchContext, Observer, SegmentContext
from kdump.check.watchers.producers import ProducerWatcher
from kdump.core.header_columns import HeaderColumns
from kdump.state.producer_state import DUPLICATE, EPOCH_DECREASED, EPOCH_START, GAP, SequenceBreak, default_expiration

SEQUENCE_GAP = Code("sequence-gap")
SEQUENCE_DUPLICATE = Code("sequence-duplicate")
SEQUENCE_EPOCH_START = Code("sequence-epoch-start")
PRODUCER_EPOCH_DECREASED = Code("producer-epoch-decreased")


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
        severity, case = None, ""
        if broken.idle > default_expiration(self.known.release.release):
            severity, case = INFO, "forgotten"
        if broken.kind != DUPLICATE:
            if self.known.compacted:
                severity, case = INFO, "cleanedProducer"
            if broken.damaged:
                severity, case = INFO, "damage"
                message += "; there is damage between the two"
        return CODES[broken.kind].finding(
            seen.part.target,
            message=message,
            position=batch.position,
            size=batch.size,
            offset=batch.baseOffset,
            expected=broken.expected,
            actual=broken.actual,
            severity=severity,
            case=case,
            producer_id=batch.producerId,
        )
