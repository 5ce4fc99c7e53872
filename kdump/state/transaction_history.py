"""History in __transaction_state, as far as compaction has kept it: the transactional ID of each producer ID, and how
its transactions were to end.

Source: org.apache.kafka.coordinator.transaction.TransactionMetadata (prepareAbortOrCommit, prepareComplete): the
PrepareCommit or PrepareAbort record is the decision, and contains the epoch of the markers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kdump.format.transaction_record import TransactionMetadata
from kdump.state.internal_records import ENTRY
from kdump.state.transaction_marker import ABORT, COMMIT

ROOM = 48 * 1024 * 1024
"""Maximum memory for the history, in bytes."""
DECISIONS = {"PrepareCommit": COMMIT, "PrepareAbort": ABORT}
COMPLETED = {"CompleteCommit": COMMIT, "CompleteAbort": ABORT}


class CoordinatorDecision(NamedTuple):
    """How a transaction was to end, COMMIT or ABORT, and the record that decided it: at `offset` in the partition
    directory `name`."""

    type: str
    transactionalId: str
    offset: int
    name: str


class LastRecord(NamedTuple):
    """Location of the last record of a transactional ID: partition directory and offset. `timestamp` is epoch ms."""

    name: str
    offset: int
    timestamp: int | None


RecordPosition = tuple[str, int]
"""Topic and partition."""
Life = tuple[int, int]
"""Producer ID and the epoch of its markers."""


@dataclass
class TransactionHistory:
    """Producer IDs, decisions and last records. `is_whole` is False if some were dropped to limit memory."""

    names: dict[int, str] = field(default_factory=dict)
    """Producer ID -> transactional ID. Unique, because a producer ID is assigned only once."""
    decided: dict[RecordPosition, dict[Life, CoordinatorDecision]] = field(default_factory=dict)
    """Latest decision for each producer ID and epoch, by partition."""
    done: set[Life] = field(default_factory=set)
    """Producer IDs and epochs whose transaction the coordinator recorded as complete: every partition has its
    marker."""
    last_records: dict[str, LastRecord] = field(default_factory=dict)
    is_whole: bool = True
    _room: int = ROOM

    def add(self, record: TransactionMetadata, name: str, offset: int, timestamp: int | None) -> None:
        """Add a record. Records must be added in the order of the log."""
        assert record.transactionalId is not None
        if record.tombstone:
            self.last_records.pop(record.transactionalId, None)
            return
        if not self._takes(0 if record.transactionalId in self.last_records else ENTRY):
            return
        self.last_records[record.transactionalId] = LastRecord(name, offset, timestamp)
        for number in (record.producerId, record.previousProducerId, record.nextProducerId):
            if number >= 0 and number not in self.names and self._takes(ENTRY // 2):
                self.names[number] = record.transactionalId
        kind = DECISIONS.get(record.state)
        if kind is not None:
            self._decided(record, CoordinatorDecision(kind, record.transactionalId, offset, name))
        elif record.state in COMPLETED and self._takes(ENTRY // 2):
            self.done.add((record.producerId, record.producerEpoch))

    def _decided(self, record: TransactionMetadata, decision: CoordinatorDecision) -> None:
        life = (record.producerId, record.producerEpoch)
        self.done.discard(life)
        for topic, numbers in record.partitions.items():
            for number in numbers:
                lives = self.decided.setdefault((topic, number), {})
                if life in lives or self._takes(ENTRY):
                    lives[life] = decision

    def _takes(self, size: int) -> bool:
        if size > self._room:
            self.is_whole = False
            return False
        self._room -= size
        return True
