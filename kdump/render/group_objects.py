"""Builds the JSON objects of groups, members and offsets; tables show the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kdump.answer import answer_object
from kdump.cluster.lag import CommittedPosition, LagContext, SharePosition
from kdump.forensics.answers import ChangedField, RecordedChange
from kdump.forensics.groups_answer import DescribedGroup, GroupMember
from kdump.state.as_of import Change
from kdump.state.groups import Assigned, Group
from kdump.state.secrets import HIDDEN, is_secret

Object = dict[str, Any]
ASSIGNMENTS = ("assigned", "revoking", "target", "standby", "warmup")


def group_object(
    group: Group, positions: list[CommittedPosition], shares: list[SharePosition], went_back: int
) -> Object:
    """Return a group with totals over its `positions` and `shares`. `went_back`: how many offsets went back."""
    places: list[CommittedPosition | SharePosition] = [*positions, *shares]
    lags = [each.lag for each in places if each.lag is not None]
    behind = [each.recordsBehind for each in positions]
    times = [each.commitTimestamp for each in positions if each.commitTimestamp is not None]
    return answer_object(
        DescribedGroup(
            groupId=group.groupId,
            groupType=group.type,
            state=group.state,
            epoch=group.epoch,
            protocolType=group.protocolType,
            protocol=group.protocol,
            leader=group.leader,
            stateTimestamp=group.stateTimestamp,
            assignmentEpoch=group.assignmentEpoch,
            assignmentTimestamp=group.assignmentTimestamp,
            topologyEpoch=group.topologyEpoch,
            validatedTopologyEpoch=group.validatedTopologyEpoch,
            subtopologies=group.subtopologies,
            regexes=group.regexes,
            shareTopics=group.share_topics,
            isSimple=group.is_simple,
            members=len(group.members),
            partitions=len(positions) + len(shares),
            pending=sum(len(each.pending) for each in positions),
            lag=sum(lags) if lags else None,
            recordsBehind=None if None in behind or shares else sum(each or 0 for each in behind),
            lagUnknown=len(positions) + len(shares) - len(lags),
            remarks=sum(bool(each.remark) for each in positions)
            + sum(bool(each.remark) and each.startOffset >= 0 for each in shares),
            wentBack=went_back,
            lastCommit=max(times, default=None),
            offsetsPartition=group.partition,
        )
    )


def member_objects(group: Group, context: LagContext) -> list[Object]:
    found = []
    for member in group.members.values():
        named: dict[str, Any] = {
            name: tuple(_with_name(each, context) for each in getattr(member, name)) for name in ASSIGNMENTS
        }
        found.append(answer_object(GroupMember(group.groupId, member._replace(**named))))
    return found


def _with_name(assigned: Assigned, context: LagContext) -> Assigned:
    return assigned._replace(topic=context.topic_name(assigned.topic))


def change_object(
    source: str, change: Change, *, show_secrets: bool = False, topic_name: Callable[[str], str] = str
) -> Object:
    """Return a change in the log `source`; secret configs are hidden. `topic_name` returns the name of a topic ID."""
    fields = []
    for name, (old, new) in change.fields.items():
        if change.entity == "config" and not show_secrets and is_secret(name):
            old, new = (HIDDEN if each is not None else None for each in (old, new))
        fields.append(ChangedField(name, _named(old, topic_name), _named(new, topic_name)))
    return answer_object(
        RecordedChange(
            source=source,
            offset=change.offset,
            timestamp=change.timestamp,
            record=change.record,
            groupId=change.group,
            entity=change.entity,
            name=change.name,
            action=change.action,
            fields=tuple(fields),
        )
    )


def _named(value: Any, topic_name: Callable[[str], str]) -> Any:
    if isinstance(value, tuple) and value and isinstance(value[0], Assigned):
        value = tuple(each._replace(topic=topic_name(each.topic)) for each in value)
    return plain(value)


def plain(value: Any) -> Any:
    """Convert NamedTuples to objects and tuples to lists."""
    if hasattr(value, "_asdict"):
        return {name: plain(item) for name, item in value._asdict().items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value
