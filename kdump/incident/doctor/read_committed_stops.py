"""What holds read_committed consumers: open and hanging transactions, from kdump.questions.transactions.run."""

from __future__ import annotations

from dataclasses import replace

from kdump.cluster.transaction_coordinator import TransactionCoordinatorState
from kdump.format.count_text import count_text, first_of
from kdump.format.iso_time import iso
from kdump.incident.doctor.disks import Disks
from kdump.incident.doctor.examination import Examination, OutOfTime, command
from kdump.io.errors import not_known
from kdump.log.internal_topics import TRANSACTION_TOPIC
from kdump.problems.catalogue import CLIENTS, OLD
from kdump.problems.problem import Problem
from kdump.questions.find_partitions import NO_TRANSACTIONS, PartitionInput
from kdump.questions.transactions.answer import HANGING, OPEN, PartitionTransactions, Transaction
from kdump.questions.transactions.run import transactions_of
from kdump.state.transaction_history import TransactionHistory
from kdump.state.transaction_marker import is_commit

SHOWN = 5
"""Maximum number of partitions of a transaction that are named."""


class TransactionsExamination:
    """Reads each partition from its newest producer snapshot on."""

    def __init__(self, disks: Disks, on: Examination) -> None:
        self.disks, self.on = disks, on
        self.hanging = self.open = self.blocked = self.prepared = 0
        self.places: list[PartitionInput] = []
        """The partitions, without those that a copy of a log directory repeats."""

    def run(self) -> None:
        question = self.on.question
        self.places = [place for place in self.disks.places if not self.disks.counts_twice(place.partition.path)]
        chosen = [
            place for place in self.places if not place.partition.state and place.known.topic not in NO_TRANSACTIONS
        ]
        question.partitionsLeft = len(chosen)
        try:
            for place in chosen:
                self._partition(place)
                question.partitions += 1
                question.partitionsLeft -= 1
        except OutOfTime:
            self.on.out_of_time("transactions", *self.disks.paths)
        finally:
            self._prepared()
            self._answer()
        question.isComplete = not question.partitionsLeft and not question.unread

    def _answer(self) -> None:
        question = self.on.question
        parts = [f"{self.hanging:,} HANGING" if self.hanging else "", f"{self.open:,} open" if self.open else ""]
        counts = " and ".join(filter(None, parts))
        count = count_text(question.partitions, "partition")
        coordinators = (place.known.coordinator for place in self.places)
        problems = (each.problems for each in coordinators if isinstance(each, TransactionCoordinatorState))
        begin = next(filter(None, map(not_known, problems)), "")
        if self.prepared:
            begin += f"{self.prepared:,} NOT COMPLETED by the coordinator; "
        if not counts and self.on.is_partial:
            read = f"no open transaction in what could be read of {count}"
            question.answer = begin + (read if question.partitions else "not known: no partition could be read")
        elif not counts:
            question.answer = f"{begin}no open transaction in {count}: no read_committed consumer waits for one"
        else:
            stopped = f"read_committed consumers stop below the log end in {self.blocked:,} of {count}"
            question.answer = f"{begin}{counts}; {stopped}"

    def _prepared(self) -> None:
        """Report the transactions that their coordinators have decided to end, and not completed: a recent one only if
        nothing was written since, because its completion takes a moment."""
        states = (place.known.coordinator for place in self.places)
        coordinators = {id(each): each for each in states if isinstance(each, TransactionCoordinatorState)}
        for coordinator in coordinators.values():
            for each in coordinator.prepared():
                last = coordinator.history.last_records.get(each.transactionalId or "")
                is_recent = self.on.now - (each.transactionLastUpdateTimestampMs or 0) <= self.on.timeout
                if last is None or (is_recent and coordinator.has_changed()):
                    continue
                self.prepared += 1
                source = coordinator.sources[last.name]
                values = {"transaction": each.transactionalId, "state": each.state, "log": last.name}
                partitions = [f"{topic}-{number}" for topic, numbers in each.partitions.items() for number in numbers]
                self.on.report(
                    Problem("transaction-not-completed", values),
                    source,
                    evidence=(
                        f"{last.name} at offset {last.offset}: producer {each.producerId}, epoch {each.producerEpoch}, "
                        f"since {iso(each.transactionLastUpdateTimestampMs)}, partitions {first_of(partitions, SHOWN)}",
                    ),
                    offset=last.offset,
                    transactionalId=each.transactionalId,
                    commands=(command("transactions", source, "--coordinator"),),
                )

    def _partition(self, place: PartitionInput) -> None:
        place = replace(place, options=self.on.reporting(place.options))
        for answer in transactions_of(place, lambda row: row.state in (OPEN, HANGING), only_unended=True):
            if isinstance(answer, Transaction):
                self._transaction(answer, place)
            elif isinstance(answer, PartitionTransactions):
                self.blocked += answer.heldBy is not None

    def _coordinator(self, row: Transaction, place: PartitionInput) -> str:
        """Return the broker that leads the partition of __transaction_state that has a transaction, as far as the
        metadata on these disks states it."""
        coordinator = place.known.coordinator
        history = coordinator.history if isinstance(coordinator, TransactionCoordinatorState) else TransactionHistory()
        last = history.last_records.get(row.transactionalId or "")
        if last is None:
            return "that broker"
        _, metadata = self.disks.newest_metadata(place.partition.source)
        topic = None if metadata is None else metadata.topics.get(TRANSACTION_TOPIC)
        partition = None if topic is None else topic.partitions.get(int(last.name.rpartition("-")[2]))
        if partition is None:
            return f"the leader of {last.name}"
        if partition.leader >= 0:
            return f"broker {partition.leader}, which leads {last.name},"
        brokers = partition.isr or partition.eligibleLeaderReplicas
        return f"broker {' or '.join(map(str, brokers))}, which can lead {last.name},"

    def _transaction(self, row: Transaction, place: PartitionInput) -> None:
        hangs = row.state == HANGING
        self.hanging += hangs
        self.open += not hangs
        idle = row.idle if row.idle is not None else row.age or 0
        if not hangs and idle <= self.on.timeout:
            return
        waits = not hangs and row.abort is None
        """For its coordinator, whose broker does not run."""
        name = row.transactionalId or f"producer {row.producerId}"
        begins = f"it begins at byte {row.position} of {row.file}, producer {row.producerId}, epoch {row.producerEpoch}"
        stop = max(row.firstOffset or 0, place.known.log_start or 0)
        values = {"TOPIC": row.topic, "PARTITION": row.partition, "OFFSET": row.firstOffset}
        committed = is_commit(row.outcome)
        problem = Problem(
            "transaction-hanging" if hangs else "transaction-open",
            {"transaction": name, "offset": stop, "broker": self._coordinator(row, place), **values},
            {"waits": waits, "overdue": True, "committed": committed},
            "waits" if waits else "committed" if committed else "",
        )
        self.on.report(
            problem,
            row.source,
            severity="error" if hangs else "warning",
            urgency=OLD if waits else CLIENTS,
            at=row,
            evidence=(begins, *row.remarks),
            offset=row.firstOffset,
            transactionalId=row.transactionalId,
            commands=(command("transactions", place.partition.path, "--open"),),
            commandForAll=command("transactions", place.partition.source, "--open"),
        )
