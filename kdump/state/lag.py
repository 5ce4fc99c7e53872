"""Consumer lag: committed offsets compared with the partitions on the same disks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, NamedTuple

from kdump.answer import EPOCH_MS, OFFSET, Doc, answer
from kdump.state.groups import Commit, Groups, PartitionName, ShareState
from kdump.state.image import Metadata
from kdump.state.partition_ends import Disks, PartitionEnd

Waiting = Mapping[str, Mapping[PartitionName, Sequence[tuple[int, Commit]]]]

GroupId = Annotated[str, Doc("the group")]
TopicName = Annotated[str, Doc("its name; its id where the name is not known")]
PartitionNumber = Annotated[int, Doc("of the topic")]
TopicId = Annotated[str | None, Doc("id of the topic, as Kafka prints it")]
LogStart = Annotated[int | None, Doc("first offset of the partition on the same disk; null: it is not there", OFFSET)]
LogEnd = Annotated[int | None, Doc("behind its last sound batch on that disk", OFFSET)]
HighWatermark = Annotated[int | None, Doc("as replication-offset-checkpoint has it, written down every 5 s", OFFSET)]
RecordOffset = Annotated[int | None, Doc("of the record that says so, in the coordinator's log", OFFSET)]
"""Fields that both kinds of offsets share."""


class Pending(NamedTuple):
    """An offset in an open transaction, which may commit it or not."""

    producerId: int
    offset: int
    recordOffset: int


@answer("groupOffset")
class Position(NamedTuple):
    """A group's offset in a partition. `offset` is None if only an open transaction has one."""

    groupId: GroupId
    topic: TopicName
    partition: PartitionNumber
    offset: Annotated[
        int | None, Doc("committed: the next record to read; null: only a transaction has one yet", OFFSET)
    ]
    leaderEpoch: Annotated[int | None, Doc("of the last record that was read")]
    metadata: Annotated[str | None, Doc("what the client put beside the offset")]
    commitTimestamp: Annotated[int | None, Doc("when it was committed", EPOCH_MS)]
    expireTimestamp: Annotated[int | None, Doc("when it expires, where a client of before Kafka 2.1 said so", EPOCH_MS)]
    topicId: TopicId
    pending: Annotated[tuple[Pending, ...], Doc("of {…}: in transactions that have not ended")]
    logStartOffset: LogStart
    logEndOffset: LogEnd
    highWatermark: HighWatermark
    lag: Annotated[
        int | None, Doc("logEndOffset - offset, never below 0; null: not known, or as of an earlier moment", "records")
    ]
    remark: Annotated[str, Doc("what is wrong with the offset; empty: nothing")]
    recordOffset: RecordOffset


@answer("groupShare")
class SharePosition(NamedTuple):
    """A share group's offset in a partition; see ShareState. `lag` does not count records above the start that are
    done."""

    groupId: GroupId
    topic: TopicName
    partition: PartitionNumber
    startOffset: Annotated[int, Doc("all below is done with; -1: not begun", OFFSET)]
    deliveryCompleteCount: Annotated[int, Doc("done with above startOffset; -1: not said", "records")]
    stateEpoch: Annotated[int, Doc("epoch of the state; -1: not said")]
    leaderEpoch: Annotated[int, Doc("of the partition's leader that wrote it")]
    topicId: TopicId
    logStartOffset: LogStart
    logEndOffset: LogEnd
    highWatermark: HighWatermark
    lag: Annotated[int | None, Doc("logEndOffset - startOffset - deliveryCompleteCount; null: not known", "records")]
    remark: Annotated[str, Doc("what is wrong with the offset; empty: nothing")]
    recordOffset: RecordOffset


class Surroundings:
    """The disks around the groups. `metadata` is None if the cluster's metadata is not there. If `is_now` is false, the
    groups are as of an earlier time, to which the current ends of the partitions do not apply."""

    def __init__(self, disks: Disks, metadata: Metadata | None, is_now: bool = True) -> None:
        self.disks = disks
        self.metadata = metadata
        self.is_now = is_now

    def topic_name(self, topic: str) -> str:
        """Return the name of a topic with a known ID; any other text unchanged."""
        known = self.metadata.by_id.get(topic) if self.metadata else None
        return known.name if known else topic

    def end(self, topic: str, partition: int) -> PartitionEnd | None:
        return self.disks.end(topic, partition) if self.is_now else None

    def missing(self, topic: str, partition: int, topic_id: str | None) -> str:
        """Return what is wrong with the partition itself; empty if nothing is."""
        if not self.is_now:
            return ""
        known = self.metadata.topics.get(topic) if self.metadata else None
        if known is not None:
            if topic_id is not None and known.id != topic_id:
                return "committed for a topic of this name that was deleted; there is a new one"
            return "" if partition in known.partitions or not known.partitions else "no such partition"
        if (topic, partition) in self.disks.found:
            return ""
        if topic in self.disks.deleted:
            return "topic deleted"
        return "topic unknown to the cluster" if self.metadata is not None and self.metadata.topics else ""


def positions(groups: Groups, group: str, waiting_of: Waiting, around: Surroundings) -> Iterator[Position]:
    """Yield every partition in which the group has an offset, in order. `waiting_of` is groups.pending_by_group()."""
    offsets = groups.offsets.get(group, {})
    pending = waiting_of.get(group, {})
    for topic, partition in sorted({*offsets, *pending}):
        commit = offsets.get((topic, partition))
        waiting = tuple(Pending(number, c.offset, c.recordOffset) for number, c in pending.get((topic, partition), ()))
        yield _position(group, topic, partition, commit, waiting, around)


def _position(
    group: str, topic: str, partition: int, commit: Commit | None, waiting: tuple[Pending, ...], around: Surroundings
) -> Position:
    end = around.end(topic, partition)
    remark = around.missing(topic, partition, commit.topicId if commit else None)
    if commit is not None and end is not None and not remark:
        remark = out_of_range(commit.offset, end)
    lag = max(0, end.logEndOffset - commit.offset) if commit is not None and end is not None else None
    return Position(
        group,
        topic,
        partition,
        commit.offset if commit else None,
        commit.leaderEpoch if commit else None,
        commit.metadata if commit else None,
        commit.commitTimestamp if commit else None,
        commit.expireTimestamp if commit else None,
        commit.topicId if commit else None,
        waiting,
        end.logStartOffset if end else None,
        end.logEndOffset if end else None,
        end.highWatermark if end else None,
        lag,
        remark,
        commit.recordOffset if commit else None,
    )


def out_of_range(offset: int, end: PartitionEnd) -> str:
    """Return why a consumer cannot continue from `offset`; empty if it can."""
    if offset < end.logStartOffset:
        return f"below the log start: {end.logStartOffset - offset} records are gone, auto.offset.reset decides"
    if offset > end.logEndOffset:
        return f"above the log end by {offset - end.logEndOffset}: auto.offset.reset decides"
    return ""


def share_positions(groups: Groups, group: str, around: Surroundings) -> Iterator[SharePosition]:
    """Yield every partition of which the share group has state, ordered by topic name."""
    states: Mapping[tuple[str, int], ShareState] = groups.share.get(group, {})
    for topic_id, partition in sorted(states, key=lambda at: (around.topic_name(at[0]), at[1])):
        state = states[topic_id, partition]
        topic = around.topic_name(topic_id)
        end = around.end(topic, partition)
        remark, lag = "", None
        if around.is_now and around.metadata and around.metadata.topics and topic_id not in around.metadata.by_id:
            remark = "topic unknown to the cluster"
        elif state.startOffset < 0:
            remark = "not begun: share.auto.offset.reset decides"
        elif end is not None:
            remark = out_of_range(state.startOffset, end)
            lag = max(0, end.logEndOffset - state.startOffset - max(0, state.deliveryCompleteCount))
        yield SharePosition(
            group,
            topic,
            partition,
            state.startOffset,
            state.deliveryCompleteCount,
            state.stateEpoch,
            state.leaderEpoch,
            topic_id,
            end.logStartOffset if end else None,
            end.logEndOffset if end else None,
            end.highWatermark if end else None,
            lag,
            remark,
            state.recordOffset,
        )
