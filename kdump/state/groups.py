"""Groups of consumers as the records of __consumer_offsets have them: what a group coordinator would load.

Source: org.apache.kafka.coordinator.group (GroupMetadataManager, OffsetMetadataManager, ClassicGroup, ConsumerGroup,
ShareGroup, StreamsGroup); names are those of the records' fields.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from kdump.answer import MS, Doc

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"

PartitionName = tuple[str, int]
"""Topic and partition."""


class Assigned(NamedTuple):
    """Partitions of a topic, by its name, or by its id where the record has that; tasks of a subtopology in a streams
    group."""

    topic: str
    partitions: tuple[int, ...]


class Member(NamedTuple):
    """A member of a group. None where its type of group has nothing of the kind, or no record has said it yet.

    A classic member's `subscribedTopicNames` and `assigned` are those of the consumer protocol (others, as Kafka
    Connect's, are not decoded)."""

    memberId: Annotated[str, Doc("its id")]
    instanceId: Annotated[str | None, Doc("group.instance.id of a static member")] = None
    rackId: Annotated[str | None, Doc("client.rack")] = None
    clientId: Annotated[str | None, Doc("client.id")] = None
    clientHost: Annotated[str | None, Doc("where it connects from")] = None
    memberEpoch: Annotated[int | None, Doc("assignment epoch that it has come to; -1: it has left; null: classic")] = (
        None
    )
    previousMemberEpoch: Annotated[int | None, Doc("the one before")] = None
    state: Annotated[
        str | None, Doc("STABLE, UNREVOKED_PARTITIONS, UNRELEASED_PARTITIONS, UNREVOKED_TASKS, UNRELEASED_TASKS")
    ] = None
    subscribedTopicNames: Annotated[tuple[str, ...], Doc("topics that it asks for")] = ()
    subscribedTopicRegex: Annotated[str | None, Doc("regular expression that it asks by")] = None
    serverAssignor: Annotated[str | None, Doc("assignor that it asks for")] = None
    rebalanceTimeoutMs: Annotated[int | None, Doc("rebalance timeout", MS)] = None
    sessionTimeoutMs: Annotated[int | None, Doc("session timeout of a classic member", MS)] = None
    assigned: Annotated[
        tuple[Assigned, ...], Doc("of {…}: what it has; in a streams group active tasks, by subtopology")
    ] = ()
    revoking: Annotated[tuple[Assigned, ...], Doc("of {…}: what it has yet to give up")] = ()
    target: Annotated[tuple[Assigned, ...], Doc("of {…}: what it shall have")] = ()
    standby: Annotated[tuple[Assigned, ...], Doc("of {…}: standby tasks")] = ()
    warmup: Annotated[tuple[Assigned, ...], Doc("of {…}: warmup tasks")] = ()
    processId: Annotated[str | None, Doc("of a streams member")] = None
    topologyEpoch: Annotated[int | None, Doc("of a streams member")] = None


@dataclass
class Group:
    """A group. `partition` is that of __consumer_offsets which has it. `epoch` is the generation of a classic group;
    the assignment's epoch is -1 for none. A simple group only holds offsets: no record stands for the group itself.
    `is_deleted`: its record was deleted, and offsets of it are left. Times are epoch ms, None for none."""

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
    share_topics: dict[str, str] = field(default_factory=dict)
    """Of a share group: initializing, initialized or deleting, by topic."""
    members: dict[str, Member] = field(default_factory=dict)
    is_simple: bool = False
    is_deleted: bool = False

    @property
    def state(self) -> str:
        """The state in which a coordinator has the group once it has loaded the log, in Kafka's words. A rebalance of
        a classic group leaves no trace in the log until it is over, so PreparingRebalance never comes out."""
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


class Commit(NamedTuple):
    """A committed offset. None for none; times are epoch ms. `recordOffset` is that of its record."""

    offset: int
    leaderEpoch: int | None
    metadata: str
    commitTimestamp: int
    expireTimestamp: int | None
    topicId: str | None
    recordOffset: int


class ShareState(NamedTuple):
    """What __share_group_state has of a share group and a partition: everything below `startOffset` is done with (-1:
    it has not begun), and so are `deliveryCompleteCount` records above it (-1: not said)."""

    startOffset: int
    stateEpoch: int
    leaderEpoch: int
    snapshotEpoch: int
    deliveryCompleteCount: int
    writeTimestamp: int | None
    recordOffset: int


class LogRead(NamedTuple):
    """A partition of __consumer_offsets or __share_group_state that was read: the offset behind its last record, and
    the last one's timestamp."""

    topic: str
    partition: int
    path: str
    endOffset: int
    endTime: int | None


@dataclass
class Groups:
    """What the logs that were read say together. `pending`: by partition of __consumer_offsets and producer id, the
    commits of a transaction that has not ended. `share`: by group, then by topic id and partition.
    `problems`: one line for what could not be read; with any, what is here may be out of date or incomplete."""

    groups: dict[str, Group] = field(default_factory=dict)
    offsets: dict[str, dict[PartitionName, Commit]] = field(default_factory=dict)
    pending: dict[tuple[int, int], dict[tuple[str, str, int], Commit]] = field(default_factory=dict)
    share: dict[str, dict[PartitionName, ShareState]] = field(default_factory=dict)
    logs: list[LogRead] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def pending_by_group(self) -> dict[str, dict[PartitionName, list[tuple[int, Commit]]]]:
        """The pending commits by group and partition, each with the producer id of its transaction."""
        found: dict[str, dict[PartitionName, list[tuple[int, Commit]]]] = {}
        for (_, producer_id), commits in self.pending.items():
            for (group, topic, partition), commit in commits.items():
                found.setdefault(group, {}).setdefault((topic, partition), []).append((producer_id, commit))
        return found
