"""Answers of `kdump groups` except offsets (kdump.cluster.lag): groups and their members."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kdump.answer import EPOCH_MS, INLINE, Doc, answer
from kdump.cluster.lag import GroupId
from kdump.state.groups import Member


@answer("group")
class DescribedGroup(NamedTuple):
    """A group, with totals of its offsets."""

    groupId: GroupId
    groupType: Annotated[str, Doc("classic, consumer, share or streams")]
    state: Annotated[
        str, Doc("state after a coordinator loads it: Empty, Stable, Assigning, Reconciling, NotReady, Dead")
    ]
    epoch: Annotated[int, Doc("group epoch, or generation of a classic group; -1: none")]
    protocolType: Annotated[str | None, Doc("protocol type of a classic group: consumer, connect …")]
    protocol: Annotated[str | None, Doc("assignor that a classic group agreed on")]
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
    members: Annotated[int, Doc("number of members")]
    partitions: Annotated[int, Doc("number of partitions with an offset or a share group state")]
    pending: Annotated[int, Doc("number of offsets in transactions that have not ended")]
    lag: Annotated[int | None, Doc("total lag of the partitions whose end is known; null if none is", "offsets")]
    recordsBehind: Annotated[
        int | None,
        Doc("total of the records behind; null if they were not counted in a partition, or of share groups", "records"),
    ]
    lagUnknown: Annotated[int, Doc("number of partitions whose end is unknown")]
    remarks: Annotated[int, Doc("number of partitions with a problem with their offset")]
    wentBack: Annotated[int, Doc("number of partitions whose committed offset went back, and has not caught up since")]
    lastCommit: Annotated[int | None, Doc("newest commitTimestamp", EPOCH_MS)]
    offsetsPartition: Annotated[int, Doc("partition of __consumer_offsets that contains the group")]


@answer("groupMember")
class GroupMember(NamedTuple):
    """A member of a group."""

    groupId: GroupId
    member: Annotated[Member, INLINE]
