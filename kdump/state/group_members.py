"""Handlers for group records: the members of classic groups, and changes to consumer, share and streams groups.

Source: org.apache.kafka.coordinator.group.GroupMetadataManager (replay), ConsumerGroupMember, StreamsGroupMember,
modern.MemberState and streams.MemberState; org.apache.kafka.clients.consumer.internals.ConsumerProtocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kdump.format.consumer_protocol import PROTOCOL_TYPE, try_decode_nested
from kdump.state.groups import STREAMS, Assigned, Group, Member

STATES = {0: "STABLE", 1: "UNREVOKED_PARTITIONS", 2: "UNRELEASED_PARTITIONS"}
STREAMS_STATES = {1: "STABLE", 2: "UNREVOKED_TASKS", 3: "UNRELEASED_TASKS"}
LEFT = -1
"""Epoch of a member that has left."""

Values = dict[str, Any]


def classic(value: Values, problem: Callable[[str], None]) -> Iterator[Member]:
    """Yield the members in the GroupMetadata record of a classic group."""
    is_consumer = value["protocolType"] == PROTOCOL_TYPE
    for member_values in value["members"]:
        subscribed: tuple[str, ...] = ()
        assigned: tuple[Assigned, ...] = ()
        if is_consumer:
            subscription = _protocol("subscription", member_values, problem)
            assignment = _protocol("assignment", member_values, problem)
            subscribed = tuple(subscription.get("topics") or ())
            assigned = tuple(
                Assigned(topic["topic"], tuple(topic["partitions"]))
                for topic in assignment.get("assignedPartitions") or ()
            )
        yield Member(
            member_values["memberId"],
            member_values.get("groupInstanceId"),
            clientId=member_values["clientId"],
            clientHost=member_values["clientHost"],
            subscribedTopicNames=subscribed,
            rebalanceTimeoutMs=member_values.get("rebalanceTimeout"),
            sessionTimeoutMs=member_values["sessionTimeout"],
            assigned=assigned,
        )


def _protocol(field: str, member: Values, problem: Callable[[str], None]) -> Values:
    """Return the values of a consumer protocol message, as far as it decodes. The client wrote it, and the coordinator
    loads the group even if it is invalid (ClassicGroup.computeSubscribedTopics)."""
    decoded, error = try_decode_nested(field, member[field])
    if decoded is None:
        return {}
    if error is not None:
        problem(str(error))
    return decoded.value


def _member(group: Group, key: Values) -> Member:
    return group.members.get(key["memberId"]) or Member(key["memberId"])


def nothing(group: Group, key: Values, value: Values | None) -> None:
    """Ignore the record: releases before 4.1 stored the topics' partitions and racks here, which are not shown."""


def group_epoch(group: Group, key: Values, value: Values | None) -> None:
    assert value is not None
    group.epoch = value["epoch"]
    if group.type == STREAMS:
        validated = value["validatedTopologyEpoch"]
        group.validatedTopologyEpoch = None if validated < 0 else validated


def target_epoch(group: Group, key: Values, value: Values | None) -> None:
    group.assignmentEpoch = value["assignmentEpoch"] if value else -1
    time = value.get("assignmentTimestamp") if value else None
    group.assignmentTimestamp = time or None


def member_metadata(group: Group, key: Values, value: Values | None) -> None:
    if value is None:
        group.members.pop(key["memberId"], None)
        return
    classic_part = value.get("classicMemberMetadata")
    group.members[key["memberId"]] = _member(group, key)._replace(
        instanceId=value.get("instanceId"),
        rackId=value.get("rackId"),
        clientId=value["clientId"],
        clientHost=value["clientHost"],
        subscribedTopicNames=tuple(value.get("subscribedTopicNames", ())),
        subscribedTopicRegex=value.get("subscribedTopicRegex") or None,
        serverAssignor=value.get("serverAssignor"),
        rebalanceTimeoutMs=value.get("rebalanceTimeoutMs"),
        sessionTimeoutMs=classic_part["sessionTimeoutMs"] if classic_part else None,
        processId=value.get("processId"),
        topologyEpoch=value.get("topologyEpoch"),
    )


def target(group: Group, key: Values, value: Values | None) -> None:
    if value is None and key["memberId"] not in group.members:
        return
    target = () if value is None else _assigned(value, "topicPartitions", "activeTasks")
    group.members[key["memberId"]] = _member(group, key)._replace(target=target)


def current(group: Group, key: Values, value: Values | None) -> None:
    if value is None:
        if key["memberId"] in group.members:
            left = _member(group, key)._replace(memberEpoch=LEFT, previousMemberEpoch=LEFT, state=None)
            group.members[key["memberId"]] = left._replace(assigned=(), revoking=(), standby=(), warmup=())
        return
    states = STREAMS_STATES if group.type == STREAMS else STATES
    group.members[key["memberId"]] = _member(group, key)._replace(
        memberEpoch=value["memberEpoch"],
        previousMemberEpoch=value["previousMemberEpoch"],
        state=states.get(value["state"], f"UNKNOWN({value['state']})"),
        assigned=_assigned(value, "assignedPartitions", "activeTasks"),
        revoking=_assigned(value, "partitionsPendingRevocation", "activeTasksPendingRevocation"),
        standby=_assigned(value, "standbyTasks"),
        warmup=_assigned(value, "warmupTasks"),
    )


def _assigned(value: Values, *names: str) -> tuple[Assigned, ...]:
    """Return the list in the first of the fields `names` that the message has; empty if it has none."""
    assigned = next((value[name] for name in names if name in value), ())
    return tuple(
        Assigned(topic["topicId"] if "topicId" in topic else topic["subtopologyId"], tuple(topic["partitions"]))
        for topic in assigned
    )


def regex(group: Group, key: Values, value: Values | None) -> None:
    group.regexes.pop(key["regularExpression"], None)
    if value is not None:
        group.regexes[key["regularExpression"]] = tuple(value["topics"])


def share_topics(group: Group, key: Values, value: Values | None) -> None:
    group.shareTopics = {}
    for state in ("initializing", "initialized", "deleting"):
        for topic in (value or {}).get(f"{state}Topics", ()):
            group.shareTopics[topic["topicName"]] = state


def topology(group: Group, key: Values, value: Values | None) -> None:
    group.topologyEpoch = value["epoch"] if value else None
    group.subtopologies = tuple(subtopology["subtopologyId"] for subtopology in value["subtopologies"]) if value else ()
