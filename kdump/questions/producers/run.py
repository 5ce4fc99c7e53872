"""Producers: what they wrote, their sequence and epoch errors, and the state that a broker would load at startup."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from kdump.answer import Note
from kdump.check.engine.partition_scan import PartitionScan
from kdump.check.engine.rule_list import ledger_rules
from kdump.check.finding import Finding
from kdump.check.options import Options
from kdump.check.rule import Observer
from kdump.check.totals import CheckTotals
from kdump.cluster.partition_summary import log_end
from kdump.format.kafka_release import KafkaRelease
from kdump.log.paths import Target
from kdump.query import ProducerIdsQuery, flag, many, now_option, offered, option, release_option, topic_option
from kdump.questions.certain_answers import REPORTED, certain_answers
from kdump.questions.find_partitions import PartitionInput, find_partitions, is_away, of_topics, release_doubts
from kdump.questions.producers.answer import EXPIRED, LIVE, UNKNOWN, PartitionProducers, Producer, ProducerEvent
from kdump.questions.producers.ledger import ProducerHistory, ProducerLedger
from kdump.state.producer_state import MAX_PRODUCERS, ProducerState, default_expiration
from kdump.state.releases import PRODUCER_EXPIRATION

__all__ = ["producers"]

ProducersAnswer = Producer | ProducerEvent | PartitionProducers | Finding | Note
STATES = (LIVE, EXPIRED, UNKNOWN)
REPORTED_PREFIXES = ("snapshot-", "sequence-", "producer-")
"""Prefixes of the codes that are reported in addition to those of damaged bytes."""
TOLD_BY_EVENTS = ("sequence-", "producer-")
"""Prefixes of the codes that an event reports, too."""


@dataclass(frozen=True, kw_only=True)
class ProducersQuery(ProducerIdsQuery):
    """Which producers to yield, and as of when."""

    events: bool = flag("--history", help="Show events in order: new epochs, gaps, duplicates, fencing, markers.")
    broken: bool = flag("--broken", help="Show only producers with a sequence or epoch error.")
    states: Iterable[str] = many(
        "--state", choices=STATES, default=STATES, help="Show only producers in this state; repeatable."
    )
    topics: Iterable[str] = topic_option("Read only partitions of these topics")
    producer_ids: Iterable[int] = many("--producer-id", type="numbers", help="Show only this producer; repeatable.")
    transactional_ids: Iterable[str] = many(
        "--transactional-id", type="names", metavar="ID", help="Show only producers with this ID; repeatable."
    )
    expiration: int | None = option(
        "--expiration", type="time", help="Assume this producer.id.expiration.ms.  [1d; before Kafka 3.4 7d]"
    )
    kafka_version: KafkaRelease | str | None = release_option("Apply the rules")
    now: int | None = now_option()

    @property
    def selects_states(self) -> bool:
        return self.states is not STATES

    def wants(self, row: Producer | ProducerEvent) -> bool:
        if not self.wants_producer(row.producerId, row.transactionalId):
            return False
        if isinstance(row, ProducerEvent):
            return True
        broken = row.gaps + row.duplicates + row.fenced + row.epochStarts
        return row.state in self.states and bool(broken or not self.broken)


def answers(query: ProducersQuery) -> Iterator[ProducersAnswer]:
    """Yield the producers of partitions, one partition after the other: see kdump.questions.producers.run.

    `events`: also yield the events of each producer, in log order."""
    options = Options.as_of(query.run, query.now, only=frozenset({"transactions"}), kafka_version=query.kafka_version)
    inputs, _ = find_partitions(query.paths, options)
    chosen = of_topics(inputs, query.of_topic)
    query.run.expect(sum(place.size for place in chosen))
    if query.expiration is None:
        yield from release_doubts(chosen, (PRODUCER_EXPIRATION,))
    for place in chosen:
        query.run.begin(place)
        yield from _of(place, query)


producers = offered("producers", ProducersQuery, answers)


def _of(place: PartitionInput, query: ProducersQuery) -> Iterator[ProducersAnswer]:
    """Yield of a partition, if asked for, each ProducerEvent where it happened; then each Producer, and
    PartitionProducers; between them a Finding for what could not be read, for a sequence or epoch error, and for a
    snapshot that contradicts the log, and a Note for anything else that could not be taken into account. Memory grows
    with the producers of the partition, up to a million of them."""
    totals = CheckTotals()
    place, looking = place.now()
    if is_away(place):
        return

    def observers(scan: PartitionScan) -> list[Observer]:
        default = default_expiration(place.known.release.release)
        expiration = default if query.expiration is None else query.expiration
        own = ledger_rules(scan)
        return [*own, ProducerLedger(scan, expiration, _base(scan, place), with_events=query.events)]

    state = ProducerState(ProducerHistory)
    scan = PartitionScan(place.partition, place.known, place.options, totals, observers, producers=state)
    is_shown = partial(_is_reported, query=query)
    for answer in certain_answers(scan, PartitionProducers, looking, is_shown):
        if not isinstance(answer, (Producer, ProducerEvent)) or query.wants(answer):
            yield answer
        if isinstance(answer, PartitionProducers) and answer.forgotten:
            note = (
                f"more than {MAX_PRODUCERS} producers: the {answer.forgotten} that were idle for longest are left out"
            )
            yield Note(answer.path, note)


def _is_reported(finding: Finding, query: ProducersQuery) -> bool:
    if query.events and finding.code.startswith(TOLD_BY_EVENTS):
        return False
    return finding.code in REPORTED or finding.code.startswith(REPORTED_PREFIXES)


def _base(scan: PartitionScan, place: PartitionInput) -> Target | None:
    """Return the producer snapshot from which a broker starts; None if there is none."""
    start = scan.transactions.start
    return (
        start.newest(log_end(place.partition, place.known.clean, [])) if start is not None and start.snapshots else None
    )
