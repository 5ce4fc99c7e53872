"""What restart-plan answers about the replicas of a partition on several brokers' disks: who may lead, and what the
others then lose."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from kdump.answer import NESTED, OFFSET, Doc, PathText, answer


class GivenReplica(NamedTuple):
    """A replica on a disk that was given. Offsets after startup are None if it is unknown how the log is loaded."""

    broker: int
    path: PathText
    inSync: bool
    starts: bool
    logStartOffset: int | None
    logEndOffset: int | None
    leaderEpoch: int | None
    highWatermark: int | None
    missing: bool = False
    """Whether the broker has nothing of it, and creates an empty log."""


class ReplicaLoss(NamedTuple):
    """What one replica has, and the leader has not. `lost`: number of offsets; `acknowledged`: those of them below a
    high watermark; `possiblyAcknowledged`: those above it that min.insync.replicas replicas had."""

    broker: int
    truncatesTo: int | None
    by: str
    firstOffset: int | None
    lost: int
    records: int | None
    acknowledged: int
    possiblyAcknowledged: int
    bytes: int | None = None


class StrayReplica(NamedTuple):
    """A partition directory that becomes stray."""

    broker: int
    topic: PathText
    partition: int


class LeaderOutcome(NamedTuple):
    """What happens if a broker leads the partition. Totals count an offset once, whichever replicas had it. `strays`:
    what the metadata of an elected controller does not have, and newer metadata has."""

    leader: int
    election: str
    allowed: bool
    lost: int
    acknowledged: int
    possiblyAcknowledged: int
    replicas: list[ReplicaLoss]
    halts: bool = False
    strays: tuple[StrayReplica, ...] = ()

    @property
    def cost(self) -> tuple[int, int, int]:
        """The worst first: smaller is better."""
        return self.acknowledged, self.possiblyAcknowledged, self.lost


def rank(outcome: LeaderOutcome, longest: int | None) -> tuple[object, ...]:
    """Return the sort key of an outcome; the lowest is best. What the `longest` metadata log has is more likely
    committed than what only another one has."""
    of_longest = sum(loss.possiblyAcknowledged for loss in outcome.replicas if loss.broker == longest)
    return outcome.halts, outcome.acknowledged, of_longest, outcome.possiblyAcknowledged, outcome.lost


@answer("restartReplicas")
@dataclass(kw_only=True)
class PartitionReplicas:
    """A partition whose replicas differ, or lose records at startup."""

    topic: Annotated[PathText, Doc("topic")]
    partition: Annotated[int, Doc("partition")]
    leader: Annotated[int | None, Doc("leader in the metadata; null if there is none")] = None
    leaderEpoch: Annotated[int, Doc("leader epoch in the metadata")]
    brokers: Annotated[list[int], Doc("the brokers with replicas, in the metadata")]
    isr: Annotated[list[int], Doc("in-sync replicas in the metadata")] = field(default_factory=list)
    eligibleLeaderReplicas: Annotated[list[int], Doc("eligible leader replicas (KIP-966) in the metadata")] = field(
        default_factory=list
    )
    minInSyncReplicas: Annotated[int, Doc("min.insync.replicas in the metadata, or 1")]
    uncleanLeaderElection: Annotated[
        bool, Doc("whether unclean.leader.election.enable is true in the metadata; false if it is not there")
    ] = False
    firstLeads: Annotated[
        bool,
        Doc(
            "whether the first broker to start that may lead the partition leads it; otherwise it is the one that the "
            "controllers fence last, which no file shows"
        ),
    ] = False
    given: Annotated[
        list[GivenReplica],
        Doc(
            f"the replicas on the given disks, each {NESTED}; offsets are those after startup, null if unknown; "
            "missing: the broker has nothing of a replica that the metadata assigns to it, and creates an empty log"
        ),
    ]
    outcomes: Annotated[
        list[LeaderOutcome],
        Doc(
            f"for each given replica as leader, {NESTED}; election: current, isr, elr, lastKnownLeader, "
            "unclean, or quorum for __cluster_metadata; "
            "allowed: whether the controllers elect it without an administrator; lost: number of offsets that are on a "
            "disk now, and on none once the others follow this leader; replicas: of each replica that loses some, "
            "truncatesTo (null if the startup alone loses them, or if unknown), by (epochs, highWatermark, logStart or "
            "startup), and records and bytes (null if they were not counted); halts: whether it has a metadata record "
            "that no controller can apply; strays: the partition directories that become stray by its metadata alone"
        ),
    ]
    saved: Annotated[
        list[int], Doc("brokers that lose records at startup, and then fetch all of them again from any leader")
    ] = field(default_factory=list)
    notes: Annotated[list[PathText], Doc("other remarks")]
    _longest: int | None = None
    """The node with the longest metadata log; None of other partitions."""

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def notGiven(self) -> Annotated[list[int], Doc("brokers with replicas whose disks were not given", after="given")]:
        here = {replica.broker for replica in self.given}
        return [broker for broker in self.brokers if broker not in here]

    @property
    def best_outcome(self) -> LeaderOutcome | None:
        return min(self.outcomes, key=lambda each: (*rank(each, self._longest), not each.allowed), default=None)

    @property
    def best(
        self,
    ) -> Annotated[
        int | None,
        Doc("the leader with which least is lost; null if none of the replicas can be loaded", after="outcomes"),
    ]:
        return None if self.best_outcome is None else self.best_outcome.leader

    @property
    def expected(self) -> list[LeaderOutcome]:
        """The outcomes of leaders that the controllers elect by themselves."""
        return [outcome for outcome in self.outcomes if outcome.allowed]

    @property
    def worst(self) -> LeaderOutcome | None:
        """The outcome with which most is lost, of those that the controllers may bring about by themselves."""
        return max(self.expected, key=lambda each: each.cost, default=None)


class ChosenLeader(NamedTuple):
    """A partition whose best leader is not elected without an administrator. `stopped`: the brokers that must not start
    before it leads, because they are elected and lack records."""

    topic: PathText
    partition: int
    leader: int
    stopped: list[int]


class WorstLoss(NamedTuple):
    """The replica that loses most if the worst leader is elected. `truncatesTo` is None if its own startup truncates
    it, or if it is unknown."""

    topic: PathText
    partition: int
    broker: int
    leader: int
    truncatesTo: int | None
    logEndOffset: int
    lost: int
    records: int | None
    bytes: int | None
    acknowledged: int


@answer("restartCluster")
class ClusterSummary(NamedTuple):
    """The plan of several brokers together."""

    nodes: Annotated[list[int], Doc("node IDs of the given disks")]
    metadata: Annotated[PathText, Doc("log directory with the newest cluster metadata; empty if there is none")]
    metadataOffset: Annotated[int | None, Doc("end offset of that metadata; null if there is none", OFFSET)]
    partitions: Annotated[
        int, Doc("number of partitions of which at least two of the given brokers have a replica, an empty one counted")
    ]
    hasQuorum: Annotated[
        bool | None,
        Doc(
            "whether the voters can elect a controller that does not halt; null if no file states the voters, or the "
            "disks of fewer than two of them were given, and not of all"
        ),
    ]
    halting: Annotated[
        list[int],
        Doc("voters that can be elected, and then halt with all others, at a metadata record that none can apply"),
    ]
    quorumLoses: Annotated[
        int, Doc("records of the metadata that may have been committed, and that an elected controller may lack")
    ]
    quorumLosesLeast: Annotated[int, Doc("the same with the controller that lacks the fewest")]
    voters: Annotated[list[int], Doc("the voters of the quorum; empty if hasQuorum is null")]
    ableVoters: Annotated[list[int], Doc("those of them that can take part in elections with these disks")]
    electable: Annotated[list[int], Doc("those that may be elected")]
    firstVoters: Annotated[
        list[int],
        Doc(
            "the voters to start first, alone, so that the one is elected with which least is lost; empty if it does "
            "not matter"
        ),
    ]
    strays: Annotated[
        int, Doc("number of directories that become stray by the metadata of a controller that may be elected")
    ]
    differing: Annotated[int, Doc("number of partitions whose replicas differ so that some may be lost")]
    losing: Annotated[int, Doc("number of partitions that lose records in the best order")]
    startOrder: Annotated[list[int], Doc("order of starting the brokers with which least is lost")]
    lost: Annotated[int, Doc("offsets that are lost in that order", "offsets")]
    acknowledged: Annotated[int, Doc("offsets among them that are below a high watermark", "offsets")]
    worstLost: Annotated[int, Doc("offsets that are lost in the worst order", "offsets")]
    worstAcknowledged: Annotated[int, Doc("offsets among them that are below a high watermark", "offsets")]
    worst: Annotated[
        WorstLoss | None,
        Doc(
            f"the replica that loses most in the worst order, {NESTED}; leader: the broker that then leads; "
            "truncatesTo: null if its own startup removes the records, or if unknown; null if none loses any"
        ),
    ]
    chosen: Annotated[
        list[ChosenLeader],
        Doc(
            f"partitions that lose less with a leader that only an unclean election by you can choose, each {NESTED}; "
            "stopped: the brokers to keep stopped until it leads"
        ),
    ]
    assumptions: Annotated[list[PathText], Doc("what the plan assumes because no disk states it")]

    @property
    def majority(self) -> int:
        """Number of voters that elect a controller."""
        return len(self.voters) // 2 + 1

    @property
    def order_decides(self) -> bool:
        """Whether the replicas lose less in the best order than in the worst."""
        return (self.worstLost, self.worstAcknowledged) != (self.lost, self.acknowledged)

    @property
    def loses(self) -> bool:
        """Whether records or metadata may be lost, or no controller may stay up."""
        return bool(self.worstLost or self.quorumLoses or self.halting or self.hasQuorum is False)
