"""Consumer lag: committed offsets compared with the partitions on the same disks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, NamedTuple

from kdump.answer import EPOCH_MS, NAME, OFFSET, TEXT, Cell, Doc, Shown, answer, of_fact
from kdump.cluster.log_offsets import MOST_COUNTED, LogOffsets, LogOffsetsByPartition
from kdump.format.count_text import count_text
from kdump.kafka.leader_epoch_file_cache import EpochEntry, end_offset_for
from kdump.state.committed_offsets import OffsetAndMetadata, PartitionName, Removal
from kdump.state.groups import GroupCoordinatorState, ShareState
from kdump.state.metadata_image import MetadataImage
from kdump.state.value_texts import pending_text

OTHER_TOPIC = "committed for a deleted topic of the same name"
NO_PARTITION = "no such partition"
TOPIC_DELETED = "topic deleted"
TOPIC_UNKNOWN = "topic not in the cluster's metadata"
BELOW_START = "{} below the log start offset: auto.offset.reset applies"
ABOVE_END = "{} above the log end offset: auto.offset.reset applies"
SHARE_BELOW_START = "{} below the log start offset: the share group continues there"
SHARE_ABOVE_END = "{} above the log end offset: the share group gets nothing until the log has reached it"
"""SharePartition.updateCacheAndOffsets: it moves to the log start offset, and never back."""
TRUNCATED = "leader epoch {} ends at {}: consumers detect a truncation, and continue there"

Waiting = Mapping[str, Mapping[PartitionName, Sequence[tuple[int, OffsetAndMetadata]]]]

GroupId = Annotated[str, Doc("group ID")]
TopicName = Annotated[str, Doc("topic name; the topic ID if the name is unknown")]
PartitionNumber = Annotated[int, Doc("partition number")]
TopicId = Annotated[str | None, Doc("topic ID, as Kafka prints it")]
LogStart = Annotated[int | None, Doc("first offset of the partition on the same disk; null: not on this disk", OFFSET)]
LogEndOffset = Annotated[int | None, Doc("the log end offset on that disk, as a broker that starts has it", OFFSET)]
HighWatermark = Annotated[int | None, Doc("from replication-offset-checkpoint, which is written every 5 s", OFFSET)]
LagIsMinimum = Annotated[
    bool,
    Doc("whether the lag may be higher: only a follower's copy is on these disks, and its leader's log may end later"),
    Shown("lag is minimum", 6, blank=0),
]
RecordOffset = Annotated[int | None, Doc("offset of the record with this state in the coordinator's log", OFFSET)]
"""Fields that both kinds of offsets share."""


class PendingCommit(NamedTuple):
    """An offset in an open transaction, which may commit it or not."""

    producerId: int
    offset: int
    recordOffset: int


def _style(value: CommittedPosition | SharePosition) -> str:
    return "bad" if value.remark and getattr(value, "startOffset", None) != -1 else ""


@answer("groupOffset", _style)
class CommittedPosition(NamedTuple):
    """A group's offset in a partition. `offset` is None if only an open transaction has one."""

    groupId: Annotated[GroupId, Shown("group", least=12, cuts=NAME)]
    topic: Annotated[TopicName, Shown(least=12, cuts=NAME)]
    partition: Annotated[PartitionNumber, Shown()]
    offset: Annotated[
        int | None,
        Doc("committed offset: the next record to read; null: so far only in a transaction", OFFSET),
        Shown(),
    ]
    leaderEpoch: Annotated[
        int | None, Doc("leader epoch of the last record that the consumer read"), Shown(rank=1, after="highWatermark")
    ]
    metadata: Annotated[
        str | None, Doc("text that the client stored with the offset"), Shown(rank=2, least=10, after="commitTimestamp")
    ]
    commitTimestamp: Annotated[
        int | None, Doc("when it was committed", EPOCH_MS), Shown("committed", 3, after="pending")
    ]
    expireTimestamp: Annotated[int | None, Doc("when it expires, if a client older than Kafka 2.1 set this", EPOCH_MS)]
    topicId: TopicId
    pending: Annotated[
        tuple[PendingCommit, ...],
        Doc("of {…}: offsets in open transactions"),
        Shown(rank=7, blank=0, after="leaderEpoch"),
        Cell(pending_text),
    ]
    logStartOffset: Annotated[LogStart, Shown("log start", 4)]
    logEndOffset: Annotated[LogEndOffset, Shown("log end", 6)]
    highWatermark: Annotated[HighWatermark, Shown("high watermark", 1)]
    lag: Annotated[
        int | None,
        Doc("logEndOffset - offset, at least 0; null: unknown, or as of an earlier time", "offsets"),
        Shown(rank=8, after="offset"),
    ]
    recordsBehind: Annotated[
        int | None,
        Doc(
            "number of records among these offsets: transaction markers, and what compaction has removed, are none; "
            f"null: not counted, because the lag is above {MOST_COUNTED} or unknown, or there is damage",
            "records",
        ),
        Shown("records behind", 2, after="lag"),
    ]
    lagIsMinimum: LagIsMinimum
    remark: Annotated[
        str, Doc("what is wrong with the offset; empty if nothing is"), Shown(rank=7, least=24, cuts=TEXT)
    ]
    recordOffset: RecordOffset


@answer("groupShare", _style)
class SharePosition(NamedTuple):
    """A share group's offset in a partition; see ShareState. `lag` does not count records above the start that are
    done."""

    groupId: Annotated[GroupId, Shown("group", least=12, cuts=NAME)]
    topic: Annotated[TopicName, Shown(least=12, cuts=NAME)]
    partition: Annotated[PartitionNumber, Shown()]
    startOffset: Annotated[
        int,
        Doc("all records below it are done; -1: not started, share.auto.offset.reset applies", OFFSET),
        Shown("start"),
    ]
    deliveryCompleteCount: Annotated[
        int,
        Doc("records above startOffset that are done; -1: unknown", "records"),
        Shown("complete above", 2, blank=-1),
    ]
    stateEpoch: Annotated[int, Doc("epoch of the state; -1: unknown"), Shown(rank=1, blank=-1)]
    leaderEpoch: Annotated[int, Doc("epoch of the partition leader that wrote it"), Shown(rank=1)]
    topicId: TopicId
    logStartOffset: Annotated[LogStart, Shown("log start", 4, after="lag")]
    logEndOffset: Annotated[LogEndOffset, Shown("log end", 6, after="logStartOffset")]
    highWatermark: HighWatermark
    lag: Annotated[
        int | None,
        Doc("logEndOffset - startOffset - deliveryCompleteCount; null: unknown", "records"),
        Shown(rank=8, after="startOffset"),
    ]
    lagIsMinimum: LagIsMinimum
    remark: Annotated[
        str, Doc("what is wrong with the offset; empty if nothing is"), Shown(rank=7, least=24, cuts=TEXT)
    ]
    recordOffset: RecordOffset


class LagContext:
    """The disks around the groups. `metadata` is None if the cluster's metadata is not there. If `is_now` is false, the
    groups are as of an earlier time, to which the current ends of the partitions do not apply."""

    def __init__(self, disks: LogOffsetsByPartition, metadata: MetadataImage | None, is_now: bool = True) -> None:
        self.disks, self.metadata, self.is_now = disks, metadata, is_now

    def topic_name(self, topic: str) -> str:
        """Return the name of a topic with a known ID; any other text unchanged."""
        described = self.metadata.by_id.get(topic) if self.metadata else None
        return described.name if described else topic

    def end(self, topic: str, partition: int) -> LogOffsets | None:
        return self.disks.end(topic, partition) if self.is_now else None

    def records_behind(self, topic: str, partition: int, offset: int) -> int | None:
        return self.disks.records_from(topic, partition, offset) if self.is_now else None

    def missing(self, topic: str, partition: int, topic_id: str | None) -> str:
        """Return what is wrong with the partition itself; empty if nothing is."""
        if not self.is_now:
            return ""
        described = self.metadata.topics.get(topic) if self.metadata else None
        if described is not None:
            if topic_id is not None and described.id != topic_id:
                return OTHER_TOPIC
            return "" if partition in described.partitions or not described.partitions else NO_PARTITION
        if (topic, partition) in self.disks.found:
            return ""
        if topic in self.disks.deleted:
            return TOPIC_DELETED
        return TOPIC_UNKNOWN if self.metadata is not None and self.metadata.topics else ""


def positions(
    groups: GroupCoordinatorState, group: str, waiting_of: Waiting, context: LagContext
) -> Iterator[CommittedPosition]:
    """Yield every partition in which the group has an offset, in order. `waiting_of` is groups.pending_by_group()."""
    offsets = groups.offsets.get(group, {})
    pending = waiting_of.get(group, {})
    for topic, partition in sorted({*offsets, *pending}):
        commit = offsets.get((topic, partition))
        waiting = tuple(
            PendingCommit(number, c.offset, c.recordOffset) for number, c in pending.get((topic, partition), ())
        )
        yield _position(group, topic, partition, commit, waiting, context)


def _position(
    group: str,
    topic: str,
    partition: int,
    commit: OffsetAndMetadata | None,
    waiting: tuple[PendingCommit, ...],
    context: LagContext,
) -> CommittedPosition:
    end = context.end(topic, partition)
    remark = context.missing(topic, partition, commit.topicId if commit else None)
    if commit is not None and end is not None and not remark:
        remark = out_of_range(commit.offset, end) or truncated(commit, context.disks.epochs(topic, partition), end)
    lag = max(0, end.logEndOffset - commit.offset) if commit is not None and end is not None else None
    return of_fact(
        CommittedPosition,
        commit,
        end,
        groupId=group,
        topic=topic,
        partition=partition,
        pending=waiting,
        lag=lag,
        recordsBehind=None
        if commit is None or lag is None
        else context.records_behind(topic, partition, commit.offset),
        lagIsMinimum=lag is not None and end is not None and end.is_behind,
        remark=remark,
    )


NAMED = 3
"""Maximum number of partitions that are named with their leaders."""


def behind_text(ends: LogOffsetsByPartition) -> str:
    """Return of which partitions the lag is a minimum, and why; empty if of none."""
    behind = [f"{name} ({f'leader {n}' if n >= 0 else 'no leader'})" for name, n in ends.behind.items()]
    if not behind:
        return ""
    more = f" and {len(behind) - NAMED:,} more" if len(behind) > NAMED else ""
    partitions = count_text(len(behind), "partition")
    return (
        f"the lag is a minimum in {partitions}, of which only a follower's copy is on these disks: "
        f"{', '.join(behind[:NAMED])}{more}"
    )


def removals(groups: GroupCoordinatorState, group: str, context: LagContext) -> list[Removal]:
    """Return the offsets of a group that were removed, but for those that were removed with their topic."""
    every = groups.removed.of(group, groups.offsets.get(group, {}))
    return [each for each in every if not context.missing(each.topic, each.partition, each.topicId)]


def out_of_range(offset: int, end: LogOffsets, below: str = BELOW_START, above: str = ABOVE_END) -> str:
    """Return why a consumer cannot continue from `offset`; empty if it can."""
    if offset < end.logStartOffset:
        return below.format(end.logStartOffset - offset)
    if offset > end.logEndOffset:
        return above.format(offset - end.logEndOffset)
    return ""


def truncated(commit: OffsetAndMetadata, epochs: Sequence[EpochEntry], end: LogOffsets) -> str:
    """Return that a consumer takes the log for truncated below its offset; empty if it does not. It asks where the
    committed epoch ends (OffsetsForLeaderEpoch; SubscriptionState.maybeCompleteValidation), and an epoch whose records
    are deleted ends where the next one begins (KAFKA-19902)."""
    epoch = commit.leaderEpoch
    epoch_end = None if epoch is None or epoch < 0 else end_offset_for(epochs, epoch, end.logEndOffset)
    if epoch_end is None or epoch_end.startOffset >= commit.offset:
        return ""
    return TRUNCATED.format(epoch, epoch_end.startOffset)


def share_positions(groups: GroupCoordinatorState, group: str, context: LagContext) -> Iterator[SharePosition]:
    """Yield every partition of which the share group has state, ordered by topic name."""
    states: Mapping[tuple[str, int], ShareState] = groups.share.get(group, {})
    for topic_id, partition in sorted(states, key=lambda at: (context.topic_name(at[0]), at[1])):
        state = states[topic_id, partition]
        topic = context.topic_name(topic_id)
        end = context.end(topic, partition)
        remark, lag = "", None
        if context.is_now and context.metadata and context.metadata.topics and topic_id not in context.metadata.by_id:
            remark = TOPIC_UNKNOWN
        elif end is not None and state.startOffset >= 0:
            remark = out_of_range(state.startOffset, end, SHARE_BELOW_START, SHARE_ABOVE_END)
            lag = max(0, end.logEndOffset - state.startOffset - max(0, state.deliveryCompleteCount))
        yield of_fact(
            SharePosition,
            state,
            end,
            groupId=group,
            topic=topic,
            partition=partition,
            topicId=topic_id,
            lag=lag,
            lagIsMinimum=lag is not None and end is not None and end.is_behind,
            remark=remark,
        )
