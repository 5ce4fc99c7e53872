"""Groups, members and offsets as JSON objects; tables show the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kdump.state.groups import Assigned, Group
from kdump.state.lag import Position, SharePosition, Surroundings
from kdump.state.moment import Change
from kdump.state.secrets import HIDDEN, is_secret

Object = dict[str, Any]


def group_object(group: Group, positions: list[Position], shares: list[SharePosition]) -> Object:
    """A group with the sums over its `positions` and `shares`."""
    places: list[Position | SharePosition] = [*positions, *shares]
    lags = [each.lag for each in places if each.lag is not None]
    times = [each.commitTimestamp for each in positions if each.commitTimestamp is not None]
    return {
        "type": "group",
        "groupId": group.groupId,
        "groupType": group.type,
        "state": group.state,
        "epoch": group.epoch,
        "protocolType": group.protocolType,
        "protocol": group.protocol,
        "leader": group.leader,
        "stateTimestamp": group.stateTimestamp,
        "assignmentEpoch": group.assignmentEpoch,
        "assignmentTimestamp": group.assignmentTimestamp,
        "topologyEpoch": group.topologyEpoch,
        "validatedTopologyEpoch": group.validatedTopologyEpoch,
        "subtopologies": list(group.subtopologies),
        "regexes": {regex: list(topics) for regex, topics in group.regexes.items()},
        "shareTopics": dict(group.share_topics),
        "isSimple": group.is_simple,
        "members": len(group.members),
        "partitions": len(positions) + len(shares),
        "pending": sum(len(each.pending) for each in positions),
        "lag": sum(lags) if lags else None,
        "lagUnknown": len(positions) + len(shares) - len(lags),
        "remarks": sum(bool(each.remark) for each in positions)
        + sum(bool(each.remark) and each.startOffset >= 0 for each in shares),
        "lastCommit": max(times, default=None),
        "offsetsPartition": group.partition,
    }


def member_objects(group: Group, around: Surroundings) -> list[Object]:
    found = []
    for member in group.members.values():
        values = member._asdict()
        for name in ("assigned", "revoking", "target", "standby", "warmup"):
            values[name] = [
                {"topic": around.topic_name(each.topic), "partitions": list(each.partitions)} for each in values[name]
            ]
        values["subscribedTopicNames"] = list(member.subscribedTopicNames)
        found.append({"type": "groupMember", "groupId": group.groupId, **values})
    return found


def position_object(position: Position) -> Object:
    pending = [each._asdict() for each in position.pending]
    return {"type": "groupOffset", **position._asdict(), "pending": pending}


def share_object(position: SharePosition) -> Object:
    return {"type": "groupShare", **position._asdict()}


def change_object(
    source: str, change: Change, *, show_secrets: bool = False, topic_name: Callable[[str], str] = str
) -> Object:
    """A change, with what its log is called; secrets among configs are hidden. `topic_name` knows topics by id."""
    fields = []
    for name, (old, new) in change.fields.items():
        if change.entity == "config" and not show_secrets and is_secret(name):
            old, new = (HIDDEN if each is not None else None for each in (old, new))
        fields.append({"name": name, "old": _named(old, topic_name), "new": _named(new, topic_name)})
    return {
        "type": "change",
        "source": source,
        "offset": change.offset,
        "timestamp": change.timestamp,
        "record": change.record,
        "groupId": change.group,
        "entity": change.entity,
        "name": change.name,
        "action": change.action,
        "fields": fields,
    }


def _named(value: Any, topic_name: Callable[[str], str]) -> Any:
    if isinstance(value, tuple) and value and isinstance(value[0], Assigned):
        value = tuple(each._replace(topic=topic_name(each.topic)) for each in value)
    return plain(value)


def plain(value: Any) -> Any:
    """NamedTuples as objects, tuples as lists."""
    if hasattr(value, "_asdict"):
        return {name: plain(item) for name, item in value._asdict().items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value
