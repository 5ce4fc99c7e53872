"""History in __transaction_state, as far as compaction has kept it: the transactional ID of each producer ID, and how
its transactions were to end.

Source: org.apache.kafka.coordinator.transaction.TransactionMetadata (prepareAbortOrCommit, prepareComplete): the
PrepareCommit or PrepareAbort record is the decision, and contains the epoch of the markers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kdump.format.transaction_record import TransactionMetadata
from kdump.state.marker import ABORT, COMMIT
from kdump.state.records import ENTRY

ROOM = 48 * 1024 * 1024
"""Maximum memory for the history, in bytes."""
DECISIONS = {"PrepareCommit": COMMIT, "PrepareAbort": ABORT}


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


Place = tuple[str, int]
"""Topic and partition."""
Life = tuple[int, int]
"""Producer ID and the epoch of its markers."""


@dataclass
class TransactionHistory:
    """Producer IDs, decisions and last records. `is_whole` is False if some were dropped to limit memory."""

    names: dict[int, str] = field(default_factory=dict)
    """Producer ID -> transactional ID. Unique, because a producer ID is assigned only once."""
    decided: dict[Place, dict[Life, CoordinatorDecision]] = field(default_factory=dict)
    """Latest decision for each producer ID and epoch, by partition."""
    done: set[Life] = field(default_factory=set)
    """Producer IDs and epochs whose transaction the coordinator recorded as complete: every partition has its
    marker."""
    told: dict[str, LastRecord] = field(default_factory=dict)
    is_whole: bool = True
    _room: int = ROOM

    def add(self, said: TransactionMetadata, name: str, offset: int, timestamp: int | None) -> None:
        """Add a record. Records must be added in the order of the log."""
        assert said.transactionalId is not None
        if said.tombstone:
            self.told.pop(said.transactionalId, None)
            return
        if not self._takes(0 if said.transactionalId in self.told else ENTRY):
            return
        self.told[said.transactionalId] = LastRecord(name, offset, timestamp)
        for number in (said.producerId, said.previousProducerId, said.nextProducerId):
            if number >= 0 and number not in self.names and self._takes(ENTRY // 2):
                self.names[number] = said.transactionalId
        kind = DECISIONS.get(said.state)
        if kind is not None:
            self._decided(said, CoordinatorDecision(kind, said.transactionalId, offset, name))
        elif said.state in ("CompleteCommit", "CompleteAbort") and self._takes(ENTRY // 2):
            self.done.add((said.producerId, said.producerEpoch))

    def _decided(self, said: TransactionMetadata, decision: CoordinatorDecision) -> None:
        life = (said.producerId, said.producerEpoch)
        self.done.discard(life)
        for topic, numbers in said.partitions.items():
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
