"""Transactions, what blocks the last stable offset, and what the coordinators state about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from kdump.answer import Note, of_fact
from kdump.check.engine.partition_scan import PartitionScan
from kdump.check.engine.rule_list import ledger_rules
from kdump.check.engine.units import CheckUnit, units_of
from kdump.check.finding import Finding
from kdump.check.options import Options
from kdump.check.partition_context import PartitionContext
from kdump.check.totals import WITHOUT_MARKER, CheckTotals
from kdump.cluster.transaction_coordinator import UNENDED, TransactionCoordinatorState
from kdump.format.kafka_release import KafkaRelease
from kdump.io.fault_tolerant import careful_source
from kdump.log.partition_directory import PartitionDirectory
from kdump.query import (
    OLD_TRANSACTION,
    ProducerIdsQuery,
    many,
    now_option,
    offered,
    release_option,
    timeout_option,
    topic_option,
)
from kdump.questions.certain_answers import REPORTED, certain_answers
from kdump.questions.find_partitions import PartitionInput, is_away, of_topics, partitions_of
from kdump.questions.transactions.answer import (
    ABORTED,
    COMMITTED,
    HANGING,
    LOST,
    OPEN,
    CoordinatorTransaction,
    Difference,
    PartitionTransactions,
    Transaction,
)
from kdump.questions.transactions.ledger import with_transactions

__all__ = ["transactions"]

TransactionsAnswer = Transaction | PartitionTransactions | CoordinatorTransaction | Difference | Finding | Note
STATES = (COMMITTED, ABORTED, OPEN, HANGING, LOST)
REPORTED_PREFIXES = ("transaction-", "txn-index-", "snapshot-")
"""Prefixes of the codes that are reported in addition to those of damaged bytes."""


@dataclass(frozen=True, kw_only=True)
class TransactionsQuery(ProducerIdsQuery):
    """Which transactions to yield, and as of when."""

    states: Iterable[str] = many(
        "--state", choices=STATES, default=STATES, help="Show only transactions in this state; repeatable."
    )
    topics: Iterable[str] = topic_option("Read only partitions of these topics")
    producer_ids: Iterable[int] = many(
        "--producer-id", type="numbers", help="Show only transactions of this producer; repeatable."
    )
    transactional_ids: Iterable[str] = many(
        "--transactional-id", type="names", metavar="ID", help="Show only transactions with this ID; repeatable."
    )
    now: int | None = now_option()
    timeout: int = timeout_option(OLD_TRANSACTION)
    kafka_version: KafkaRelease | str | None = release_option("Show the command that aborts a transaction on brokers")

    def wants(self, row: Transaction) -> bool:
        return self.wants_producer(row.producerId, row.transactionalId) and row.state in self.states


def answers(query: TransactionsQuery) -> Iterator[TransactionsAnswer]:
    """Yield the transactions of partitions, one partition after the other, as they are read: see
    kdump.questions.transactions.run. Raises SourceError for input that cannot be read, unless you pass a `run` whose
    `unreadable` is then called with the error."""
    options = Options.as_of(
        query.run,
        query.now,
        only=frozenset({"transactions", "indexes"}),
        open_source=careful_source,
        transaction_timeout=query.timeout,
        kafka_version=query.kafka_version,
    )
    named = tuple(query.paths)
    contexts: list[PartitionContext] = []  # of every unit, also without partitions that may have transactions

    def units() -> Iterator[CheckUnit]:
        for unit in units_of(options.disks_at(named), options):
            contexts.append(unit.known)
            yield unit

    inputs = partitions_of(units(), named, options)
    chosen = of_topics(inputs, query.of_topic)
    if chosen or not inputs:
        yield from _coordinators(contexts, query, options.now)
    query.run.expect(sum(place.size for place in chosen))
    for place in chosen:
        query.run.begin(place)
        yield from transactions_of(place, query.wants)


transactions = offered("transactions", TransactionsQuery, answers)


def _where_open(place: PartitionInput) -> PartitionDirectory:
    """Return the partition from the segment on in which the oldest transaction begins that is open at the end. A valid
    producer snapshot at a segment's base offset has the transactions that were open there, so that the first reading
    begins at the newest one."""
    begins: int | None = None
    """First offset of the oldest transaction that is open at the end, once it is known to begin further back."""
    for number in range(len(place.partition.segments) - 1, 0, -1):
        here = _since(place.partition, number)
        if begins is not None and here.segments[0].offset > begins:
            continue
        scan = PartitionScan(here, place.known, place.options, CheckTotals(), ledger_rules)
        if scan.seeded_from is None:
            continue
        if begins is not None or not scan.open_transactions:
            return here
        for _ in scan.findings():
            pass
        seeded = (running.first_offset for running in scan.open_transactions.values() if running.seeded)
        begins = min(seeded, default=None)
        if begins is None or begins < place.partition.segments[0].offset:
            return here
    return place.partition


def _since(place: PartitionDirectory, number: int) -> PartitionDirectory:
    """Return the partition from the segment with this number on."""
    if not number:
        return place
    first = place.segments[number].offset
    snapshots = [target for target in place.snapshots if (target.name_offset or 0) >= first]
    newest = place.with_segments(place.segments[number:])
    return replace(newest, given=replace(newest.grouped, snapshots=snapshots))


def _coordinators(
    contexts: Iterable[PartitionContext], query: TransactionsQuery, now: int
) -> Iterator[TransactionsAnswer]:
    """Yield the coordinator's last record for each transactional ID, if __transaction_state is on the same disks."""
    seen: list[TransactionCoordinatorState] = []
    for context in contexts:
        coordinator = context.coordinator
        if not isinstance(coordinator, TransactionCoordinatorState) or coordinator in seen:
            continue
        seen.append(coordinator)
        query.run.found(coordinator)
        for problem in coordinator.problems:
            yield Note("", problem)
        for name, record in coordinator.by_id.items():
            last_record = coordinator.history.last_records.get(name)
            if not query.wants_producer(record.producerId, name) or last_record is None:
                continue
            start = record.transactionStartTimestampMs if record.transactionStartTimestampMs >= 0 else None
            is_open = record.state in UNENDED
            updated = record.transactionLastUpdateTimestampMs
            yield of_fact(
                CoordinatorTransaction,
                last_record,
                record,
                source=coordinator.sources[last_record.name],
                path=last_record.name,
                transactionalId=name,
                transactionStartTimestampMs=start,
                transactionLastUpdateTimestampMs=updated if updated >= 0 else None,
                age=now - start if is_open and start is not None else None,
                partitions=tuple(
                    f"{topic}-{n}" for topic, numbers in record.partitions.items() for n in sorted(numbers)
                ),
            )


def transactions_of(
    place: PartitionInput, wants: Callable[[Transaction], bool], *, only_unended: bool = False
) -> Iterator[TransactionsAnswer]:
    """Yield of a partition each Transaction where it ended, those that have not ended, and PartitionTransactions;
    between them a Difference where log and coordinator disagree, a Finding for what could not be read and for a
    .txnindex that contradicts the log, and a Note for anything else that could not be taken into account.
    `only_unended`: only those that have not ended are of interest, so that reading can begin at the newest producer
    snapshot."""
    place, looking = place.now()
    if is_away(place):
        return
    here = _where_open(place) if only_unended else place.partition
    scan = PartitionScan(here, place.known, place.options, CheckTotals(), with_transactions)
    for answer in certain_answers(scan, PartitionTransactions, looking, is_shown_with_transactions):
        if not isinstance(answer, Transaction) or wants(answer):
            yield answer


def is_shown_with_transactions(finding: Finding) -> bool:
    """Return True if a finding is about damaged bytes, or about transactions and their index and not repeated by a
    row."""
    if finding.code in WITHOUT_MARKER:
        return False  # the row states it
    return finding.code in REPORTED or finding.code.startswith(REPORTED_PREFIXES)
