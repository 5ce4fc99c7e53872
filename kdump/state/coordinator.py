"""What __transaction_state says: the transactions that their coordinators know, and which of them are ongoing.

Source: kafka.coordinator.transaction.TransactionStateManager (loadTransactionMetadata, partitionFor), and for what
hangs, FindHangingTransactionsCommand of org.apache.kafka.tools.TransactionsCommand.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from kdump.format.transaction_record import Transaction, decode_transaction
from kdump.log.internal_topics import TRANSACTION_TOPIC
from kdump.log.paths import segments_in
from kdump.log.record import Record
from kdump.log.region import Limits
from kdump.state.coordinator_history import History
from kdump.state.records import ENTRY, MOST_PROBLEMS, ROOM, bounded, read_records, too_large

DIRECTORY = re.compile(rf"{TRANSACTION_TOPIC}-([0-9]{{1,10}})")
OPEN = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
"""States in which the coordinator will yet write a marker to each partition that is listed."""


@dataclass
class Coordinator:
    """What the partitions of __transaction_state on a disk say, together. `partitions` are their numbers;
    `partition_count` is how many the cluster has of them, None if that is not known. `problems`: one line for what
    could not be read; with any, the transactions may be out of date or incomplete."""

    by_id: dict[str, Transaction] = field(default_factory=dict)
    partitions: set[int] = field(default_factory=set)
    partition_count: int | None = None
    problems: list[str] = field(default_factory=list)
    history: History = field(default_factory=History)
    _open: dict[int, list[Transaction]] | None = field(default=None, repr=False, compare=False)

    @property
    def is_complete(self) -> bool:
        """Whether all that the coordinators know is here. A transactional id decides which of the partitions it is in
        (its hash modulo their number), and a producer id does not tell the transactional id: so all are needed."""
        whole = self.partition_count is not None and self.partitions >= set(range(self.partition_count))
        return whole and not self.problems

    def ongoing(self, producer_id: int, producer_epoch: int, topic: str, partition: int) -> bool | None:
        """Whether the open transaction of this producer in this partition will yet get its marker: its coordinator has
        the partition in a transaction of that producer id that is ongoing or about to end. None when that is not here
        and the coordinators are not complete.

        A transaction keeps its `producerId` until it has ended, so that neither the previous nor the next one counts.
        Its epoch may be above that of the data (a fenced producer's is raised before the abort, and since transaction
        version 2 every end raises it), and a marker of a higher epoch ends the older data. Below it, the leader
        refuses the marker.
        """
        if self._open is None:
            self._open = {}
            for known in self.by_id.values():
                if known.state in OPEN:
                    self._open.setdefault(known.producerId, []).append(known)
        for known in self._open.get(producer_id, ()):
            if producer_epoch <= known.producerEpoch and partition in known.partitions.get(topic, ()):
                return True
        return False if self.is_complete else None

    def of_producer(self, producer_id: int) -> Transaction | None:
        """The last that its coordinator said of the transactional id that the producer id belongs to; None where that
        is not known."""
        name = self.history.names.get(producer_id)
        return None if name is None else self.by_id.get(name)


def read_coordinator(
    directories: Sequence[str], partition_count: int | None = None, limits: Limits | None = None
) -> Coordinator | None:
    """What the `directories`, every __transaction_state-N on the disk, say. None when none of them is one.

    `partition_count`: how many partitions the topic has in the cluster (Metadata.topics says that). Never raises:
    what cannot be read is in `problems`, and what stands behind it in the log is read on, for each record stands for
    itself.
    """
    found = Coordinator(partition_count=partition_count)
    replay = _Replay(found)
    for directory in directories:
        match = DIRECTORY.fullmatch(os.path.basename(os.path.abspath(directory)))
        if not match:
            continue
        replay.name = ""
        number = int(match[1])
        if number in found.partitions:
            replay.note(f"{directory}: partition {number} is in another log directory too")
        found.partitions.add(number)
        try:
            names = segments_in(directory)
        except OSError as error:
            replay.note(f"{directory}: {error.strerror}")
            continue
        if not names:
            replay.note(f"{directory}: no segment")
        replay.name = match[0]
        for name in names:
            for record in read_records(os.path.join(directory, name), bounded(limits), replay.note):
                if record is not None and not record.is_control:
                    replay.apply(record)
    return found if found.partitions else None


class _Replay:
    """Records -> the last value of each transactional id, in bounded memory."""

    def __init__(self, found: Coordinator) -> None:
        self.found = found
        self.name = ""
        self.room = ROOM
        self.is_full = False

    def note(self, problem: str) -> None:
        if len(self.found.problems) < MOST_PROBLEMS:
            self.found.problems.append(f"{self.name}/{problem}" if self.name else problem)

    def apply(self, record: Record) -> None:
        if too_large(record):
            self.note(f"offset {record.offset}: a record of {record.keySize} + {record.valueSize} bytes")
            return
        said = decode_transaction(record.key, record.value)
        if said.problem is not None or said.transactionalId is None:
            self.note(f"offset {record.offset}: {said.problem}")
            return
        self.found.history.add(said, self.name, record.offset or 0, record.timestamp)
        before = self.found.by_id.pop(said.transactionalId, None)
        self.room += _size(before) if before else 0
        if said.tombstone:
            return
        if _size(said) <= self.room:
            self.room -= _size(said)
            self.found.by_id[said.transactionalId] = said
        elif not self.is_full:
            self.is_full = True
            self.note(f"offset {record.offset}: more transactions than are kept in memory, {ROOM} bytes")


def _size(known: Transaction) -> int:
    """About how many bytes of memory it takes."""
    assert known.transactionalId is not None
    listed = sum(ENTRY + sys.getsizeof(topic) + 40 * len(numbers) for topic, numbers in known.partitions.items())
    return ENTRY + 200 + sys.getsizeof(known.transactionalId) + listed
