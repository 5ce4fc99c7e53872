"""Reads __transaction_state: the coordinators' transactions, and which of them are ongoing.

Source: kafka.coordinator.transaction.TransactionStateManager (loadTransactionMetadata, partitionFor) and, for hanging
transactions, FindHangingTransactionsCommand of org.apache.kafka.tools.TransactionsCommand."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from kdump.cluster.internal_log import bounded, read_records
from kdump.cluster.topic_coverage import TopicCoverage
from kdump.format.count_text import plain_count
from kdump.format.transaction_record import TransactionMetadata, decode_transaction
from kdump.io.errors import Gone, NotKnown, SourceError, Unread, listing_error, unread
from kdump.io.run import PLAIN_RUN, Limits, Run
from kdump.log.internal_topics import TRANSACTION_TOPIC
from kdump.log.live_files import FileWatch, identity
from kdump.log.record import Record
from kdump.log.served_files import segments_in
from kdump.state.internal_records import ENTRY, MAX_PROBLEMS, ROOM, too_large
from kdump.state.transaction_history import COMPLETED, TransactionHistory
from kdump.state.transaction_marker import ABORT

DIRECTORY = re.compile(rf"{TRANSACTION_TOPIC}-([0-9]{{1,10}})(?:\.[0-9a-f]{{32}}-(?:stray|future))?")
PREPARED = ("PrepareCommit", "PrepareAbort", "PrepareEpochFence")
"""States in which the coordinator has decided how the transaction ends, but not recorded that each listed partition has
its marker: until then the producer gets CONCURRENT_TRANSACTIONS."""
UNENDED = ("Ongoing", *PREPARED)
"""States in which a partition may lack its marker."""


@dataclass
class TransactionCoordinatorState:
    """Combined contents of the __transaction_state partitions on a disk. `partitions`: their numbers; `sources`: the
    log directory of each, by its name;
    `partition_count`: how many the cluster has, None if unknown. `problems`: one line for each thing that could not be
    read; if there are any, the transactions may be outdated or incomplete."""

    by_id: dict[str, TransactionMetadata] = field(default_factory=dict)
    partitions: set[int] = field(default_factory=set)
    partition_count: int | None = None
    sources: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    history: TransactionHistory = field(default_factory=TransactionHistory)
    logs: FileWatch = field(default_factory=FileWatch, repr=False, compare=False)
    """The logs as they were when they were read."""
    _open: dict[int, list[TransactionMetadata]] | None = field(default=None, repr=False, compare=False)

    @property
    def is_complete(self) -> bool:
        """Whether every partition of __transaction_state was read without problems. All are needed, because a producer
        ID does not show in which partition its transactional ID is (its hash modulo the number of partitions)."""
        return self.coverage.is_complete and not self.problems

    @property
    def coverage(self) -> TopicCoverage:
        """Which partitions of __transaction_state were read."""
        return TopicCoverage(TRANSACTION_TOPIC, frozenset(self.partitions), self.partition_count)

    def ongoing(self, producer_id: int, producer_epoch: int, topic: str, partition: int) -> bool | None:
        """Return True if the producer's open transaction in this partition will still get its marker: the coordinator
        lists the partition in a transaction of that producer ID that is ongoing or about to end. Returns None if there
        is no such transaction and the coordinators are not complete.

        A transaction keeps its `producerId` until it has ended, so the previous and next producer IDs do not count.
        Its epoch may be above that of the data (it is raised before a fenced producer's transaction is aborted and,
        since transaction version 2, at every end), and a marker with a higher epoch ends the older data. A marker with
        a lower epoch is rejected by the leader."""
        if self._open is None:
            self._open = {}
            for transaction in self.by_id.values():
                if transaction.state in UNENDED:
                    self._open.setdefault(transaction.producerId, []).append(transaction)
        for transaction in self._open.get(producer_id, ()):
            if producer_epoch <= transaction.producerEpoch and partition in transaction.partitions.get(topic, ()):
                return True
        return False if self.is_complete else None

    def outcome(self, producer_id: int, producer_epoch: int, topic: str, partition: int) -> str | None:
        """Return COMMIT or ABORT: how the coordinator ended the transaction that a producer has open in this partition,
        whose marker it has skipped or the partition has lost. None if that is not certain.

        Since transaction version 2, the marker's epoch is above that of the data. Before, the same epoch may have been
        committed before the transaction began; if it was aborted, the open one was, too, or its data came later."""
        history = self.history
        decided = history.decided.get((topic, partition), {}) if history.is_whole and not self.problems else {}
        epochs = [epoch for producer, epoch in decided if producer == producer_id and epoch >= producer_epoch]
        if epochs:
            first = min(epochs)
            decision = decided[producer_id, first].type
            return decision if first > producer_epoch or decision == ABORT else None
        last = self.of_producer(producer_id)
        if last is None or last.clientTransactionVersion < 2 or last.producerEpoch != producer_epoch + 1:
            return None
        return COMPLETED.get(last.state) if last.producerId == producer_id else None

    def has_changed(self) -> bool:
        """Return True if a coordinator has written since its log was read: it may know of newer transactions."""
        return any(identity(path) != self.logs.first[path] for path in self.logs.first)

    def prepared(self) -> list[TransactionMetadata]:
        """Return the transactions that the coordinators have decided to end, and not recorded as ended."""
        return [transaction for transaction in self.by_id.values() if transaction.state in PREPARED]

    def of_producer(self, producer_id: int) -> TransactionMetadata | None:
        """Return the coordinator's last record of the transactional ID that the producer ID belongs to; None if
        unknown."""
        name = self.history.names.get(producer_id)
        return None if name is None else self.by_id.get(name)


def read_coordinator(
    directories: Sequence[str], partition_count: int | None = None, limits: Limits = PLAIN_RUN.limits
) -> TransactionCoordinatorState | None:
    """Read `directories`, every __transaction_state-N on the disk. Returns None if none of them is one.

    `partition_count`: how many partitions the topic has in the cluster (see Metadata.topics). Never raises: what cannot
    be read is listed in `problems`, and reading continues after it, because the records are independent of each other.
    """
    state = TransactionCoordinatorState(partition_count=partition_count)
    replay = _Replay(state)
    for directory in directories:
        match = DIRECTORY.fullmatch(os.path.basename(os.path.abspath(directory)))
        if not match:
            continue
        replay.name = ""
        number = int(match[1])
        if number in state.partitions:
            replay.note(f"{directory}: partition {number} is also in another log directory")
        state.partitions.add(number)
        state.logs.look_at_log(directory)
        try:
            names = segments_in(directory)
        except OSError as error:
            replay.note(unread(SourceError(listing_error(error, directory))))
            continue
        if not names:
            replay.note(f"{directory}: no segments")
        replay.name = match[0]
        state.sources[match[0]] = os.path.dirname(directory)
        for name in names:
            for record in read_records(os.path.join(directory, name), replay.note, Run(bounded(limits))):
                if record is not None and not record.is_control:
                    replay.apply(record)
    return state if state.partitions else None


class _Replay:
    """Replays records into the last value of each transactional ID, with bounded memory."""

    def __init__(self, state: TransactionCoordinatorState) -> None:
        self.found = state
        self.name = ""
        self.room = ROOM
        self.is_full = False
        self.noted_newer: set[tuple[str, str]] = set()
        """Logs, with what of a newer release has been noted of each: at the first such record."""

    def note(self, problem: str) -> None:
        if len(self.found.problems) < MAX_PROBLEMS:
            has_path = isinstance(problem, (Unread, Gone)) or not self.name
            self.found.problems.append(problem if has_path else f"{self.name}/{problem}")

    def apply(self, record: Record) -> None:
        if too_large(record):
            self.note(
                f"offset {record.offset}: the record is too large: key {plain_count(record.keySize, 'byte')}, value "
                f"{plain_count(record.valueSize, 'byte')}"
            )
            return
        decoded = decode_transaction(record.key, record.value)
        if decoded.newer and (self.name, decoded.newer) not in self.noted_newer:
            self.noted_newer.add((self.name, decoded.newer))
            self.note(NotKnown(f"{self.name}: at offset {record.offset}: {decoded.newer}"))
        if decoded.problem is not None or decoded.transactionalId is None:
            if not decoded.newer:
                self.note(f"offset {record.offset}: {decoded.problem}")
            return
        self.found.history.add(decoded, self.name, record.offset or 0, record.timestamp)
        before = self.found.by_id.pop(decoded.transactionalId, None)
        self.room += _size(before) if before else 0
        if decoded.tombstone:
            return
        if _size(decoded) <= self.room:
            self.room -= _size(decoded)
            self.found.by_id[decoded.transactionalId] = decoded
        elif not self.is_full:
            self.is_full = True
            self.note(f"offset {record.offset}: too many transactions to keep in memory ({ROOM} bytes)")


def _size(transaction: TransactionMetadata) -> int:
    """Return about how many bytes of memory `known` takes."""
    assert transaction.transactionalId is not None
    listed = sum(ENTRY + sys.getsizeof(topic) + 40 * len(numbers) for topic, numbers in transaction.partitions.items())
    return ENTRY + 200 + sys.getsizeof(transaction.transactionalId) + listed
