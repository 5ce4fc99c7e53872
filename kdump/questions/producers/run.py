"""Producers: what they wrote, their sequence and epoch errors, and the state that a broker would load at startup."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from kdump.answer import Note
from kdump.check.engine.partition_scan import PartitionScan
from kdump.check.engine.rule_list import ledger_rules
from kdump.check.finding import Finding
from kdump.check.options import Options
from kdump.check.rule import Observer
from kdump.check.totals import CheckTotals
from kdump.cluster.partition_summary import log_end
from kdump.io.run import PLAIN_RUN, Run
from kdump.log.paths import Target
from kdump.questions.certain_answers import REPORTED, certain_answers
from kdump.questions.find_partitions import PartitionInput, find_partitions, is_away, release_doubts
from kdump.questions.producers.answer import EXPIRED, LIVE, UNKNOWN, PartitionProducers, Producer, ProducerEvent
from kdump.questions.producers.ledger import ProducerHistory, ProducerLedger
from kdump.state.producer_state import MAX_PRODUCERS, ProducerState, default_expiration
from kdump.state.releases import PRODUCER_EXPIRATION

ProducersAnswer = Producer | ProducerEvent | PartitionProducers | Finding | Note
STATES = (LIVE, EXPIRED, UNKNOWN)
REPORTED_PREFIXES = ("snapshot-", "sequence-", "producer-")
"""Prefixes of the codes that are reported in addition to those of damaged bytes."""
TOLD_BY_EVENTS = ("sequence-", "producer-")
"""Prefixes of the codes that an event reports, too."""


class ProducersQuery(NamedTuple):
    """What to select. `expiration`: producer.id.expiration.ms, None for the release's default; `topic`: predicate for
    topic names; `events`: also yield ProducerEvent. `on_producer` is called with the producer ID and the transactional
    ID of each producer that exists, whether it is selected or not."""

    expiration: int | None = None
    topic: Callable[[str], bool] = lambda name: True
    states: frozenset[str] = frozenset(STATES)
    producer_ids: frozenset[int] = frozenset()
    transactional_ids: frozenset[str] = frozenset()
    broken: bool = False
    """Select only producers with a sequence or epoch error."""
    events: bool = False
    on_producer: Callable[[int, str | None], None] = lambda producer_id, transactional_id: None

    def wants(self, row: Producer | ProducerEvent) -> bool:
        self.on_producer(row.producerId, row.transactionalId)
        if self.producer_ids and row.producerId not in self.producer_ids:
            return False
        if self.transactional_ids and row.transactionalId not in self.transactional_ids:
            return False
        if isinstance(row, ProducerEvent):
            return True
        broken = row.gaps + row.duplicates + row.fenced + row.epochStarts
        return row.state in self.states and bool(broken or not self.broken)


def producers(
    paths: str | Iterable[str], question: ProducersQuery | None = None, *, run: Run = PLAIN_RUN
) -> Iterator[ProducersAnswer]:
    """Yield the producers of the partitions that `paths` stand for: segments, partition directories, log directories,
    or directories above. Reads lazily; memory grows with the producers of a partition, up to a million of them.

    One partition after the other: each ProducerEvent where it happened, if events are selected; then each Producer, and
    PartitionProducers; between them a Finding for what could not be read, for a sequence or epoch error, and for a
    snapshot that contradicts the log, and a Note for anything else that could not be taken into account.

    What cannot be read is passed to `run.unreadable`, which raises it by default. Options state from when ages are
    computed, and the release."""
    question = question or ProducersQuery()
    options = Options.as_of(run, only=frozenset({"transactions"}))
    inputs, _ = find_partitions([paths] if isinstance(paths, str) else paths, options)
    chosen = [place for place in inputs if place.known.topic is None or question.topic(place.known.topic)]
    run.expect(sum(place.size for place in chosen))
    if question.expiration is None:
        yield from release_doubts(chosen, (PRODUCER_EXPIRATION,))
    for place in chosen:
        run.begin(place)
        yield from _of(place, question)


def _of(place: PartitionInput, question: ProducersQuery) -> Iterator[ProducersAnswer]:
    totals = CheckTotals()
    place, looking = place.now()
    if is_away(place):
        return

    def observers(scan: PartitionScan) -> list[Observer]:
        default = default_expiration(place.known.release.release)
        expiration = default if question.expiration is None else question.expiration
        own = ledger_rules(scan)
        return [*own, ProducerLedger(scan, expiration, _base(scan, place), with_events=question.events)]

    state = ProducerState(ProducerHistory)
    scan = PartitionScan(place.partition, place.known, place.options, totals, observers, producers=state)
    is_shown = partial(_is_reported, question=question)
    for answer in certain_answers(scan, PartitionProducers, looking, is_shown):
        if not isinstance(answer, (Producer, ProducerEvent)) or question.wants(answer):
            yield answer
        if isinstance(answer, PartitionProducers) and answer.forgotten:
            note = (
                f"more than {MAX_PRODUCERS} producers: the {answer.forgotten} that were idle for longest are left out"
            )
            yield Note(answer.path, note)


def _is_reported(finding: Finding, question: ProducersQuery) -> bool:
    if question.events and finding.code.startswith(TOLD_BY_EVENTS):
        return False
    return finding.code in REPORTED or finding.code.startswith(REPORTED_PREFIXES)


def _base(scan: PartitionScan, place: PartitionInput) -> Target | None:
    """Return the producer snapshot from which a broker starts; None if there is none."""
    start = scan.transactions.start
    return (
        start.newest(log_end(place.partition, place.known.clean, [])) if start is not None and start.snapshots else None
    )
