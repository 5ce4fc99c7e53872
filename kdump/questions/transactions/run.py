"""Transactions, what blocks the last stable offset, and what the coordinators state about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from kdump.answer import Note, of_fact
from kdump.check.engine.partition_scan import PartitionScan
from kdump.check.engine.rule_list import ledger_rules
from kdump.check.engine.units import CheckUnit, units_of
from kdump.check.finding import Finding
from kdump.check.options import Options
from kdump.check.partition_context import PartitionContext
from kdump.check.totals import CheckTotals
from kdump.cluster.transaction_coordinator import UNENDED, TransactionCoordinatorState
from kdump.io.fault_tolerant import careful_source
from kdump.io.run import PLAIN_RUN, Run, ignore
from kdump.log.partition_directory import PartitionDirectory
from kdump.questions.certain_answers import REPORTED, certain_answers
from kdump.questions.find_partitions import PartitionInput, is_away, partitions_of
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

TransactionsAnswer = Transaction | PartitionTransactions | CoordinatorTransaction | Difference | Finding | Note
TRANSACTION_TIMEOUT = 900_000
"""Default of transaction.max.timeout.ms: no transaction is open for longer, unless it hangs."""
STATES = (COMMITTED, ABORTED, OPEN, HANGING, LOST)
TOLD_BY_ROWS = ("transaction-open", "transaction-hanging")
"""Findings that repeat what the transaction's row states."""
REPORTED_PREFIXES = ("transaction-", "txn-index-", "snapshot-")
"""Prefixes of the codes that are reported in addition to those of damaged bytes."""


class TransactionsQuery(NamedTuple):
    """What to select. `topic`: predicate for topic names. `on_producer` is called with the producer ID and the
    transactional ID of each transaction that exists, whether it is selected or not; `on_coordinator` with what was read
    of each node's __transaction_state, before its answers. `only_unended`: only those that have not ended are of
    interest, so that reading can begin at the newest producer snapshot."""

    topic: Callable[[str], bool] = lambda name: True
    states: frozenset[str] = frozenset(STATES)
    producer_ids: frozenset[int] = frozenset()
    transactional_ids: frozenset[str] = frozenset()
    only_unended: bool = False
    on_producer: Callable[[int, str | None], None] = lambda producer_id, transactional_id: None
    on_coordinator: Callable[[TransactionCoordinatorState], object] = ignore

    def wants(self, row: Transaction) -> bool:
        self.on_producer(row.producerId, row.transactionalId)
        if row.state not in self.states or (self.producer_ids and row.producerId not in self.producer_ids):
            return False
        return not self.transactional_ids or row.transactionalId in self.transactional_ids


def transactions(
    paths: str | Iterable[str], question: TransactionsQuery | None = None, *, run: Run = PLAIN_RUN
) -> Iterator[TransactionsAnswer]:
    """Yield the transactions of the partitions that `paths` stand for: segments, partition directories, log
    directories, or directories above. Reads lazily, in bounded memory.

    First the coordinator's last record for each transactional ID (CoordinatorTransaction), if __transaction_state is on
    the same disks. Then, one partition after the other, each Transaction where it ended, those that have not ended, and
    PartitionTransactions; between them a Difference where log and coordinator disagree, a Finding for what could not be
    read and for a .txnindex that contradicts the log, and a Note for anything else that could not be taken into
    account.

    What cannot be read is passed to `run.unreadable`, which raises it by default. Options state from when ages are
    computed, when a transaction is old, and the release."""
    question = question or TransactionsQuery()
    options = Options.as_of(run, only=frozenset({"transactions", "indexes"}), open_source=careful_source)
    named = (paths,) if isinstance(paths, str) else tuple(paths)
    contexts: list[PartitionContext] = []  # of every unit, also without partitions that may have transactions

    def units() -> Iterator[CheckUnit]:
        for unit in units_of(options.disks_at(named), options):
            contexts.append(unit.known)
            yield unit

    inputs = partitions_of(units(), named, options)
    chosen = [place for place in inputs if place.known.topic is None or question.topic(place.known.topic)]
    if chosen or not inputs:
        yield from _coordinators(contexts, question, options.now)
    run.expect(sum(place.size for place in chosen))
    for place in chosen:
        run.begin(place)
        yield from transactions_of(place, question)


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
    contexts: Iterable[PartitionContext], question: TransactionsQuery, now: int
) -> Iterator[TransactionsAnswer]:
    seen: list[TransactionCoordinatorState] = []
    for context in contexts:
        coordinator = context.coordinator
        if not isinstance(coordinator, TransactionCoordinatorState) or coordinator in seen:
            continue
        seen.append(coordinator)
        question.on_coordinator(coordinator)
        for problem in coordinator.problems:
            yield Note("", problem)
        for name, record in coordinator.by_id.items():
            last_record = coordinator.history.last_records.get(name)
            question.on_producer(record.producerId, name)
            if last_record is None or (question.producer_ids and record.producerId not in question.producer_ids):
                continue
            if question.transactional_ids and name not in question.transactional_ids:
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


def transactions_of(place: PartitionInput, question: TransactionsQuery) -> Iterator[TransactionsAnswer]:
    """Yield the transactions of one partition."""
    place, looking = place.now()
    if is_away(place):
        return
    here = _where_open(place) if question.only_unended else place.partition
    scan = PartitionScan(here, place.known, place.options, CheckTotals(), with_transactions)
    for answer in certain_answers(scan, PartitionTransactions, looking, is_shown_with_transactions):
        if not isinstance(answer, Transaction) or question.wants(answer):
            yield answer


def is_shown_with_transactions(finding: Finding) -> bool:
    """Return True if a finding is about damaged bytes, or about transactions and their index and not repeated by a
    row."""
    if finding.code in TOLD_BY_ROWS:
        return False
    return finding.code in REPORTED or finding.code.startswith(REPORTED_PREFIXES)
