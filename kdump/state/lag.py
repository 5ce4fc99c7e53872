"""How far groups are behind: committed offsets beside the partitions on the same disks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kdump.state.groups import Commit, Groups, PartitionName, ShareState
from kdump.state.image import Metadata
from kdump.state.partition_ends import Disks, PartitionEnd

Waiting = Mapping[str, Mapping[PartitionName, Sequence[tuple[int, Commit]]]]


class Pending(NamedTuple):
    """An offset that a transaction which has not ended will commit, or not."""

    producerId: int
    offset: int
    recordOffset: int


class Position(NamedTuple):
    """Where a group stands in a partition. `offset` is null where only a transaction that has not ended says one.
    The ends of the partition are null where it is not on the disk; `lag` is logEndOffset - offset, never below 0.
    `remark` says what is wrong with the offset; empty if nothing is."""

    groupId: str
    topic: str
    partition: int
    offset: int | None
    leaderEpoch: int | None
    metadata: str | None
    commitTimestamp: int | None
    expireTimestamp: int | None
    topicId: str | None
    pending: tuple[Pending, ...]
    logStartOffset: int | None
    logEndOffset: int | None
    highWatermark: int | None
    lag: int | None
    remark: str
    recordOffset: int | None


class SharePosition(NamedTuple):
    """Where a share group stands in a partition; see ShareState. `lag` leaves out what is done with above the start."""

    groupId: str
    topic: str
    partition: int
    startOffset: int
    deliveryCompleteCount: int
    stateEpoch: int
    leaderEpoch: int
    topicId: str
    logStartOffset: int | None
    logEndOffset: int | None
    highWatermark: int | None
    lag: int | None
    remark: str
    recordOffset: int


class Surroundings:
    """What the disks around the groups say: `metadata` is None where the cluster's is not there. Without `is_now`, the
    groups are as of an earlier moment, and the partitions' ends of today say nothing of them."""

    def __init__(self, disks: Disks, metadata: Metadata | None, is_now: bool = True) -> None:
        self.disks = disks
        self.metadata = metadata
        self.is_now = is_now

    def topic_name(self, topic: str) -> str:
        """The name of a topic that is known by its id; any other text as it is."""
        known = self.metadata.by_id.get(topic) if self.metadata else None
        return known.name if known else topic

    def end(self, topic: str, partition: int) -> PartitionEnd | None:
        return self.disks.end(topic, partition) if self.is_now else None

    def missing(self, topic: str, partition: int, topic_id: str | None) -> str:
        """What is wrong with the partition itself."""
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
    """Every partition in which the group has an offset, in order. `waiting_of` is groups.pending_by_group()."""
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
    """What a consumer that goes on from `offset` meets; empty for nothing unusual."""
    if offset < end.logStartOffset:
        return f"below the log start: {end.logStartOffset - offset} records are gone, auto.offset.reset decides"
    if offset > end.logEndOffset:
        return f"above the log end by {offset - end.logEndOffset}: auto.offset.reset decides"
    return ""


def share_positions(groups: Groups, group: str, around: Surroundings) -> Iterator[SharePosition]:
    """Every partition that the share group has state of, in order of the topics' names."""
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
