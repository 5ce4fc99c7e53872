"""What the metadata states of a partition."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from kdump.answer import Doc, Shown
from kdump.format.kafka_uuid import ZERO_UUID

NO_DIRECTORY = (ZERO_UUID, "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg")
"""Directory IDs of replicas that the metadata assigns to a broker, but to none of its log directories
(DirectoryId.MIGRATING, UNASSIGNED, LOST)."""


class PartitionRegistration(NamedTuple):
    """A partition. `directories`: the log directory ID of each replica, in the same order; empty if the record has
    none. `leader` is -1 if there is none. The eligible leader replicas are those outside the ISR that have all
    committed records (KIP-966)."""

    replicas: Annotated[
        tuple[int, ...], Doc("brokers with a replica, the preferred leader first", after="isr"), Shown(rank=8)
    ]
    directories: Annotated[tuple[str, ...], Doc("ID of the log directory of each replica", after="partitionEpoch")]
    leader: Annotated[int, Doc("broker that leads it; -1: none"), Shown()]
    leaderEpoch: Annotated[int, Doc("leader epoch, raised with each change of leader"), Shown("epoch", 4)]
    isr: Annotated[tuple[int, ...], Doc("brokers with an in-sync replica"), Shown()] = ()
    addingReplicas: Annotated[tuple[int, ...], Doc("replicas being added"), Shown("adding", 6)] = ()
    removingReplicas: Annotated[tuple[int, ...], Doc("replicas being removed"), Shown("removing", 6)] = ()
    eligibleLeaderReplicas: Annotated[
        tuple[int, ...], Doc("replicas out of sync, but with all committed records (KIP-966)"), Shown("elr", 5)
    ] = ()
    lastKnownElr: Annotated[
        tuple[int, ...],
        Doc("last leader, stored when the ISR became empty; empty if there is a leader"),
        Shown("last known elr", 3),
    ] = ()
    leaderRecoveryState: Annotated[str, Doc("RECOVERING after an unclean election, else RECOVERED")] = "RECOVERED"
    partitionEpoch: Annotated[int, Doc("partition epoch, raised with each change of the partition")] = -1

    def directory_of(self, node: int | None) -> str | None:
        """Return the ID of the log directory to which a broker's replica is assigned; None if it has none, or it is
        assigned to none of the broker's log directories."""
        if node not in self.replicas:
            return None
        number = self.replicas.index(node)
        directory = self.directories[number] if number < len(self.directories) else None
        return None if directory in NO_DIRECTORY else directory

    @property
    def is_under_replicated(self) -> bool:
        """Whether it has fewer in-sync replicas than replicas, not counting those being added (TopicCommand)."""
        adding = len(self.addingReplicas)
        return len(self.isr) < len(self.replicas) - (adding if adding < len(self.replicas) else 0)

    @property
    def is_offline(self) -> bool:
        return self.leader < 0

    @property
    def is_reassigning(self) -> bool:
        return bool(self.addingReplicas or self.removingReplicas)

    def __deepcopy__(self, memo: dict[int, Any]) -> PartitionRegistration:
        """Return itself, because it cannot be changed: the copy of a cluster is made for each aborted transaction."""
        return self
