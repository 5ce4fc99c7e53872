"""Consumer groups according to the records of __consumer_offsets: the state that a group coordinator would load.

Source: org.apache.kafka.coordinator.group (GroupMetadataManager, OffsetMetadataManager, ClassicGroup, ConsumerGroup,
ShareGroup, StreamsGroup); names are those of the records' fields."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from kdump.answer import MS, NAME, Cell, Doc, Shown
from kdump.state.committed_offsets import (
    CommittedOffsets,
    OffsetAndMetadata,
    OffsetRewinds,
    PartitionName,
    RemovedOffsets,
)
from kdump.state.value_texts import assigned_text

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"


class Assigned(NamedTuple):
    """Partitions of a topic, given by its name or, if the record has that, its ID; in a streams group, tasks of a
    subtopology."""

    topic: str
    partitions: tuple[int, ...]


class Member(NamedTuple):
    """A group member. None if its type of group has no such field, or no record contains it yet.

    A classic member's `subscribedTopicNames` and `assigned` are those of the consumer protocol (others, such as Kafka
    Connect's, are not decoded)."""

    memberId: Annotated[str, Doc("member ID"), Shown("member", least=16, cuts=NAME)]
    instanceId: Annotated[
        str | None, Doc("group.instance.id of a static member"), Shown("instance", 6, least=10, cuts=NAME)
    ] = None
    rackId: Annotated[str | None, Doc("client.rack")] = None
    clientId: Annotated[str | None, Doc("client.id"), Shown("client", 8, least=12)] = None
    clientHost: Annotated[str | None, Doc("host that the client connects from"), Shown("host", 8)] = None
    memberEpoch: Annotated[
        int | None,
        Doc("epoch of its assignment; -1: it has left; -2: a static member has left; null: classic group"),
        Shown("epoch", 4),
    ] = None
    previousMemberEpoch: Annotated[int | None, Doc("its memberEpoch before the current one")] = None
    state: Annotated[
        str | None,
        Doc("STABLE, UNREVOKED_PARTITIONS, UNRELEASED_PARTITIONS, UNREVOKED_TASKS, UNRELEASED_TASKS"),
        Shown(rank=4),
    ] = None
    subscribedTopicNames: Annotated[
        tuple[str, ...], Doc("topics that it subscribes to"), Shown("subscribed", 3, least=12)
    ] = ()
    subscribedTopicRegex: Annotated[
        str | None, Doc("regular expression that it subscribes with"), Shown("regex", 3, least=8)
    ] = None
    serverAssignor: Annotated[str | None, Doc("server-side assignor that it requests")] = None
    rebalanceTimeoutMs: Annotated[int | None, Doc("rebalance timeout", MS)] = None
    sessionTimeoutMs: Annotated[int | None, Doc("session timeout of a classic member", MS)] = None
    assigned: Annotated[
        tuple[Assigned, ...],
        Doc("of {…}: its assigned partitions; in a streams group, its active tasks by subtopology"),
        Shown(rank=7, least=16),
        Cell(assigned_text),
    ] = ()
    revoking: Annotated[
        tuple[Assigned, ...], Doc("of {…}: what it still has to give up"), Shown(rank=6, least=12), Cell(assigned_text)
    ] = ()
    target: Annotated[
        tuple[Assigned, ...], Doc("of {…}: its target assignment"), Shown(rank=2, least=16), Cell(assigned_text)
    ] = ()
    standby: Annotated[tuple[Assigned, ...], Doc("of {…}: standby tasks"), Cell(assigned_text)] = ()
    warmup: Annotated[tuple[Assigned, ...], Doc("of {…}: warmup tasks"), Cell(assigned_text)] = ()
    processId: Annotated[str | None, Doc("process ID of a streams member")] = None
    topologyEpoch: Annotated[int | None, Doc("topology epoch of a streams member")] = None


@dataclass
class Group:
    """A group. `partition`: its partition of __consumer_offsets; `epoch`: the generation, for a classic group;
    `assignmentEpoch` is -1 if there is no assignment. A simple group has only offsets, and no record of its own.
    `is_deleted`: its record was deleted, but some of its offsets remain. Times are epoch ms, None if unset."""

    groupId: str
    type: str
    partition: int
    epoch: int = -1
    protocolType: str | None = None
    protocol: str | None = None
    leader: str | None = None
    stateTimestamp: int | None = None
    assignmentEpoch: int = -1
    assignmentTimestamp: int | None = None
    topologyEpoch: int | None = None
    validatedTopologyEpoch: int | None = None
    subtopologies: tuple[str, ...] = ()
    regexes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What each regular expression of its members matched when it was last resolved."""
    shareTopics: dict[str, str] = field(default_factory=dict)
    """For a share group: initializing, initialized or deleting, by topic."""
    members: dict[str, Member] = field(default_factory=dict)
    isSimple: bool = False
    is_deleted: bool = False

    @property
    def state(self) -> str:
        """State of the group in a coordinator that has loaded the log, in Kafka's terms. A rebalance of a classic group
        is not in the log until it has finished, so this is never PreparingRebalance."""
        if self.is_deleted:
            return "Dead"
        if not self.members:
            return "Empty"
        if self.type in (CLASSIC, SHARE):
            return "Stable"
        if self.type == STREAMS and (self.topologyEpoch is None or self.validatedTopologyEpoch != self.topologyEpoch):
            return "NotReady"
        if self.epoch > self.assignmentEpoch:
            return "Assigning"
        done = all(m.state == "STABLE" and m.memberEpoch == self.assignmentEpoch for m in self.members.values())
        return "Stable" if done else "Reconciling"


class ShareState(NamedTuple):
    """The state of a partition of a share group in __share_group_state: all records below `startOffset` are done (-1:
    it has not started), and `deliveryCompleteCount` records above it (-1: unknown)."""

    startOffset: int
    stateEpoch: int
    leaderEpoch: int
    snapshotEpoch: int
    deliveryCompleteCount: int
    writeTimestamp: int | None
    recordOffset: int
    snapshotOffset: int = -1
    """Offset of the last ShareSnapshot: the coordinator keeps its log from the lowest of them on."""


class LogRead(NamedTuple):
    """A partition of __consumer_offsets or __share_group_state that was read: the offset after its last record."""

    topic: str
    partition: int
    path: str
    endOffset: int


@dataclass
class GroupCoordinatorState:
    """The combined state of all logs that were read. `pending`: the commits of open transactions, by partition of
    __consumer_offsets and producer ID. `share`: by group, then by topic ID and partition. `problems`: one line for each
    thing that could not be read; if there are any, the rest may be out of date or incomplete."""

    groups: dict[str, Group] = field(default_factory=dict)
    offsets: CommittedOffsets = field(default_factory=CommittedOffsets)
    pending: dict[tuple[int, int], dict[tuple[str, str, int], OffsetAndMetadata]] = field(default_factory=dict)
    share: dict[str, dict[PartitionName, ShareState]] = field(default_factory=dict)
    rewinds: OffsetRewinds = field(default_factory=OffsetRewinds)
    removed: RemovedOffsets = field(default_factory=RemovedOffsets)
    logs: list[LogRead] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def pending_by_group(self) -> dict[str, dict[PartitionName, list[tuple[int, OffsetAndMetadata]]]]:
        """Return the pending commits by group and partition, each with the producer ID of its transaction."""
        pending: dict[str, dict[PartitionName, list[tuple[int, OffsetAndMetadata]]]] = {}
        for (_, producer_id), commits in self.pending.items():
            for (group, topic, partition), commit in commits.items():
                pending.setdefault(group, {}).setdefault((topic, partition), []).append((producer_id, commit))
        return pending
