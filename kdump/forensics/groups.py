"""Answers of `kdump groups` except offsets (kdump.state.lag): groups and their members."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kdump.answer import EPOCH_MS, INLINE, Doc, answer
from kdump.state.groups import Member
from kdump.state.lag import GroupId


@answer("group")
class DescribedGroup(NamedTuple):
    """A group, with totals of its offsets."""

    groupId: GroupId
    groupType: Annotated[str, Doc("classic, consumer, share or streams")]
    state: Annotated[
        str, Doc("that in which a coordinator would load it: Empty, Stable, Assigning, Reconciling, NotReady, Dead")
    ]
    epoch: Annotated[int, Doc("epoch of the group; the generation of a classic one; -1: none")]
    protocolType: Annotated[str | None, Doc("of a classic group: consumer, connect …")]
    protocol: Annotated[str | None, Doc("of a classic group: the assignor it agreed on")]
    leader: Annotated[str | None, Doc("of a classic group: id of the member that assigns")]
    stateTimestamp: Annotated[int | None, Doc("of a classic group: when it got into the state", EPOCH_MS)]
    assignmentEpoch: Annotated[int, Doc("group epoch that the target assignment was made for; -1: none")]
    assignmentTimestamp: Annotated[int | None, Doc("when the target assignment was made", EPOCH_MS)]
    topologyEpoch: Annotated[int | None, Doc("of a streams group")]
    validatedTopologyEpoch: Annotated[int | None, Doc("of a streams group: the topology whose topics are there")]
    subtopologies: Annotated[tuple[str, ...], Doc("of a streams group: their ids")]
    regexes: Annotated[
        dict[str, tuple[str, ...]], Doc("what regular expressions of the members matched: topics by expression")
    ]
    shareTopics: Annotated[dict[str, str], Doc("of a share group: initializing, initialized or deleting, by topic")]
    isSimple: Annotated[bool, Doc("offsets without a group: a client that commits, and never joined")]
    members: Annotated[int, Doc("how many")]
    partitions: Annotated[int, Doc("in which it has an offset, or a share group state")]
    pending: Annotated[int, Doc("offsets in transactions that have not ended")]
    lag: Annotated[int | None, Doc("of all partitions whose end is known; null: of none", "records")]
    lagUnknown: Annotated[int, Doc("partitions whose end is not known")]
    remarks: Annotated[int, Doc("partitions whose offset has something wrong")]
    lastCommit: Annotated[int | None, Doc("the newest commitTimestamp", EPOCH_MS)]
    offsetsPartition: Annotated[int, Doc("partition of __consumer_offsets that has the group")]


@answer("groupMember")
class GroupMember(NamedTuple):
    """A member of a group."""

    groupId: GroupId
    member: Annotated[Member, INLINE]
