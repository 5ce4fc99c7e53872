"""Answers of `kdump groups` except offsets (kdump.cluster.lag): groups and their members."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any, NamedTuple

from kdump.answer import EPOCH_MS, INLINE, NAME, Doc, Shown, answer, of_fact
from kdump.cluster.lag import (
    CommittedPosition,
    GroupId,
    LagContext,
    SharePosition,
    positions,
    removals,
    share_positions,
)
from kdump.state.committed_offsets import Removal, Rewind
from kdump.state.groups import SHARE, Assigned, Group, GroupCoordinatorState, Member


@answer(
    "group",
    lambda value: "torn" if value.remarks else "",
    measures=lambda group: [("kdump_group_lag", group.lag, group.groupId)],
)
class DescribedGroup(NamedTuple):
    """A group, with totals of its offsets."""

    groupId: Annotated[GroupId, Shown("group", least=20, cuts=NAME)]
    groupType: Annotated[str, Doc("classic, consumer, share or streams"), Shown("type", 6)]
    state: Annotated[
        str, Doc("state after a coordinator loads it: Empty, Stable, Assigning, Reconciling, NotReady, Dead"), Shown()
    ]
    epoch: Annotated[int, Doc("group epoch, or generation of a classic group; -1: none"), Shown(rank=3, blank=-1)]
    protocolType: Annotated[str | None, Doc("protocol type of a classic group: consumer, connect …")]
    protocol: Annotated[str | None, Doc("assignor that a classic group agreed on"), Shown(rank=2)]
    leader: Annotated[str | None, Doc("ID of the member of a classic group that assigns partitions")]
    stateTimestamp: Annotated[int | None, Doc("time at which a classic group entered its state", EPOCH_MS)]
    assignmentEpoch: Annotated[int, Doc("group epoch of the target assignment; -1: none")]
    assignmentTimestamp: Annotated[int | None, Doc("time of the target assignment", EPOCH_MS)]
    topologyEpoch: Annotated[int | None, Doc("topology epoch of a streams group")]
    validatedTopologyEpoch: Annotated[
        int | None, Doc("epoch of the topology of a streams group whose topics all exist")
    ]
    subtopologies: Annotated[tuple[str, ...], Doc("IDs of the subtopologies of a streams group")]
    regexes: Annotated[
        dict[str, tuple[str, ...]], Doc("topics that match the members' regular expressions, by expression")
    ]
    shareTopics: Annotated[
        dict[str, str], Doc("state of the topics of a share group: initializing, initialized or deleting")
    ]
    isSimple: Annotated[bool, Doc("whether it has only offsets: its clients commit, but never joined the group")]
    members: Annotated[int, Doc("number of members"), Shown(rank=8)]
    partitions: Annotated[int, Doc("number of partitions with an offset or a share group state"), Shown(rank=5)]
    pending: Annotated[
        int, Doc("number of offsets in transactions that have not ended"), Shown(rank=6, blank=0, after="remarks")
    ]
    lag: Annotated[
        int | None, Doc("total lag of the partitions whose end is known; null if none is", "offsets"), Shown(rank=8)
    ]
    lagIsMinimum: Annotated[
        bool,
        Doc("whether the lag may be higher: of a partition, only a follower's copy is on these disks"),
        Shown("lag is minimum", 6, blank=0),
    ]
    recordsBehind: Annotated[
        int | None,
        Doc("total of the records behind; null if they were not counted in a partition, or of share groups", "records"),
        Shown("records behind", 2),
    ]
    lagUnknown: Annotated[int, Doc("number of partitions whose end is unknown"), Shown(rank=1, blank=0)]
    remarks: Annotated[int, Doc("number of partitions with a problem with their offset"), Shown(rank=7, blank=0)]
    wentBack: Annotated[int, Doc("number of partitions whose committed offset went back, and has not caught up since")]
    removedOffsets: Annotated[
        int, Doc("number of partitions whose committed offset was removed (expired or deleted), also if not for good")
    ]
    lastCommit: Annotated[int | None, Doc("newest commitTimestamp", EPOCH_MS), Shown("last commit", 4)]
    offsetsPartition: Annotated[int, Doc("partition of __consumer_offsets that contains the group")]


@answer("groupMember")
class GroupMember(NamedTuple):
    """A member of a group."""

    groupId: Annotated[GroupId, Shown("group", least=16, cuts=NAME)]
    member: Annotated[Member, INLINE]


ASSIGNMENTS = ("assigned", "revoking", "target", "standby", "warmup")


def described(
    group: Group, positions: list[CommittedPosition], shares: list[SharePosition], went_back: int, removed: int
) -> DescribedGroup:
    """Return a group with totals over its `positions` and `shares`. `went_back`: how many offsets went back; `removed`:
    how many were removed."""
    places: list[CommittedPosition | SharePosition] = [*positions, *shares]
    lags = [each.lag for each in places if each.lag is not None]
    behind = [each.recordsBehind for each in positions]
    times = [each.commitTimestamp for each in positions if each.commitTimestamp is not None]
    return of_fact(
        DescribedGroup,
        group,
        groupType=group.type,
        members=len(group.members),
        partitions=len(positions) + len(shares),
        pending=sum(len(each.pending) for each in positions),
        lag=sum(lags) if lags else None,
        lagIsMinimum=any(each.lagIsMinimum for each in places),
        recordsBehind=None if None in behind or group.type == SHARE else sum(each or 0 for each in behind),
        lagUnknown=len(positions) + len(shares) - len(lags),
        remarks=sum(bool(each.remark) for each in places),
        wentBack=went_back,
        removedOffsets=removed,
        lastCommit=max(times, default=None),
        offsetsPartition=group.partition,
    )


def members_of(group: Group, context: LagContext) -> list[GroupMember]:
    rows = []
    for member in group.members.values():
        named: dict[str, Any] = {
            name: tuple(_with_name(each, context) for each in getattr(member, name)) for name in ASSIGNMENTS
        }
        rows.append(GroupMember(group.groupId, member._replace(**named)))
    return rows


def _with_name(assigned: Assigned, context: LagContext) -> Assigned:
    return assigned._replace(topic=context.topic_name(assigned.topic))


class GroupDescription(NamedTuple):
    """A group: itself, its members and its offsets."""

    group: DescribedGroup
    members: list[GroupMember]
    offsets: list[CommittedPosition]
    shares: list[SharePosition]
    rewinds: list[Rewind]
    removed: list[Removal]


def describe_groups(
    groups: GroupCoordinatorState, context: LagContext, name: Callable[[str], bool], topic: Callable[[str], bool]
) -> Iterator[GroupDescription]:
    """Yield the selected groups, with their offsets in the selected topics."""
    waiting = groups.pending_by_group()
    for group in (groups.groups[each] for each in sorted(groups.groups) if name(each)):
        own = [each for each in positions(groups, group.groupId, waiting, context) if topic(each.topic)]
        shares = [each for each in share_positions(groups, group.groupId, context) if topic(each.topic)]
        committed = groups.offsets.get(group.groupId, {})
        rewinds = [each for each in groups.rewinds.of(group.groupId, committed) if topic(each.topic)]
        removed = [each for each in removals(groups, group.groupId, context) if topic(each.topic)]
        yield GroupDescription(
            described(group, own, shares, len(rewinds), len(removed)),
            members_of(group, context),
            own,
            shares,
            rewinds,
            removed,
        )
