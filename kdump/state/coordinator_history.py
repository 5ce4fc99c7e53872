"""What __transaction_state says of the past, as far as compaction has left it: whose a producer id was, and how each of
its transactions was to end.

Source: org.apache.kafka.coordinator.transaction.TransactionMetadata (prepareAbortOrCommit, prepareComplete): the record
PrepareCommit or PrepareAbort decides, and it has the epoch that the markers get.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kdump.format.transaction_record import Transaction
from kdump.state.marker import ABORT, COMMIT
from kdump.state.records import ENTRY

ROOM = 48 * 1024 * 1024
"""Bytes of memory that the past may take."""
DECISIONS = {"PrepareCommit": COMMIT, "PrepareAbort": ABORT}


class Decision(NamedTuple):
    """How a transaction was to end: COMMIT or ABORT, by the record at `offset` of the partition's directory `name`."""

    type: str
    transactionalId: str
    offset: int
    name: str


class Told(NamedTuple):
    """Where the last record of a transactional id stands: the directory, and its offset."""

    name: str
    offset: int
    timestamp: int | None


Place = tuple[str, int]
"""A topic and a partition."""
Life = tuple[int, int]
"""A producer id, and the epoch of its markers."""


@dataclass
class History:
    """`is_whole` is False where there was no room for all of it."""

    names: dict[int, str] = field(default_factory=dict)
    """Producer id -> transactional id: an id is given out once."""
    decided: dict[Place, dict[Life, Decision]] = field(default_factory=dict)
    """The latest decision of each producer's epoch, by partition."""
    done: set[Life] = field(default_factory=set)
    """Those of which the coordinator wrote that every partition has its marker."""
    told: dict[str, Told] = field(default_factory=dict)
    is_whole: bool = True
    _room: int = ROOM

    def add(self, said: Transaction, name: str, offset: int, timestamp: int | None) -> None:
        """A record, in the order of the log."""
        assert said.transactionalId is not None
        if said.tombstone:
            self.told.pop(said.transactionalId, None)
            return
        if not self._takes(0 if said.transactionalId in self.told else ENTRY):
            return
        self.told[said.transactionalId] = Told(name, offset, timestamp)
        for number in (said.producerId, said.previousProducerId, said.nextProducerId):
            if number >= 0 and number not in self.names and self._takes(ENTRY // 2):
                self.names[number] = said.transactionalId
        kind = DECISIONS.get(said.state)
        if kind is not None:
            self._decided(said, Decision(kind, said.transactionalId, offset, name))
        elif said.state in ("CompleteCommit", "CompleteAbort") and self._takes(ENTRY // 2):
            self.done.add((said.producerId, said.producerEpoch))

    def _decided(self, said: Transaction, decision: Decision) -> None:
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
