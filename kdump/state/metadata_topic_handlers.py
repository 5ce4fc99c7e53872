"""Handlers for the records of topics and partitions.

Source: org.apache.kafka.image.TopicsDelta and TopicDelta, org.apache.kafka.metadata.PartitionRegistration (merge),
org.apache.kafka.controller.ReplicationControlManager."""

from __future__ import annotations

from collections.abc import Callable
from sys import getsizeof
from typing import Any

from kdump.core.column_numbers import MOVING_LIST, NO_LEADER_CHANGE, OWN_ISR
from kdump.format.kafka_uuid import ZERO_UUID
from kdump.format.metadata_names import RECOVERY_STATE, enum_name
from kdump.format.numbers import int32
from kdump.state.internal_records import ENTRY
from kdump.state.metadata_image import NO_CONFIGS, TOPIC, PartitionRegistration, TopicImage
from kdump.state.metadata_refusal import Rule
from kdump.state.metadata_replay_state import ReplayState

NO_RECOVERY_CHANGE = -1
_NO_LISTS: tuple[tuple[int, ...], ...] = ((), (), (), ())

DUPLICATE_TOPIC = Rule("RuntimeException: Found duplicate TopicRecord for {name} with topic ID {topicId}", since=(3, 6))
OTHER_TOPIC = Rule(
    "RuntimeException: Found duplicate TopicRecord for {name} with a different ID than before. Previous ID was {known} "
    "and new ID is {topicId}",
    since=(3, 6),
)
NO_IMAGE = (
    'NullPointerException: Cannot invoke "org.apache.kafka.image.TopicImage.partitions()" because "this.image" is null'
)
NO_TOPIC = Rule(
    "RuntimeException: Tried to create partition {topicId}:{partitionId}, but no topic with that ID was found.",
    NO_IMAGE,
)
NO_PARTITION = Rule(
    "RuntimeException: Tried to create partition {topicId}:{partitionId}, but no partition with that id was found.",
    "RuntimeException: Unable to find partition {topicId}:{partitionId}",
)
TOPIC_TO_REMOVE = Rule(
    "UnknownTopicIdException: Can't find topic with ID {topicId} to remove.",
    "RuntimeException: Unable to delete topic with id {topicId}: no such topic found.",
)
TOPIC_TO_CLEAR = Rule(
    "RuntimeException: Unable to find a topic named {topicName} in order to clear its ELRs.",
    "RuntimeException: Unable to clear elr for topic with name {topicName}: no such topic found.",
)
_RECOVERY = "IllegalArgumentException: Value {leaderRecoveryState} is not a valid leader recovery state"
UNKNOWN_RECOVERY = Rule(_RECOVERY, _RECOVERY)
_LENGTHS = "The lengths for replicas and directories do not match"
OTHER_LENGTHS = Rule(
    f"InvalidReplicaDirectoriesException: {_LENGTHS}: {{record}}(…)",
    f"InvalidReplicaDirectoriesException: {_LENGTHS}: {{record}}(…)",
    since=(3, 7),
)
OTHER_LENGTHS_AFTER = Rule(
    f"IllegalArgumentException: {_LENGTHS}.", f"IllegalArgumentException: {_LENGTHS}.", since=(3, 7)
)


def topic(replay: ReplayState, values: dict[str, Any]) -> None:
    name, topic_id = values["name"], values["topicId"]
    metadata = replay.metadata
    image = metadata.topics.get(name)
    if image is not None:
        text = f"there is a topic {name} with the ID {image.id}, which no record has removed"
        replay.refuse(DUPLICATE_TOPIC if image.id == topic_id else OTHER_TOPIC, text, known=image.id, **values)
        replay.left_out(topic_id)
        return
    image = metadata.by_id.get(topic_id)
    if image is not None:
        _forget(replay, image)
    if replay.charge(2 * ENTRY + 2 * getsizeof(name)):
        # Configs refer to a topic by name, and their records may precede the topic's.
        configs = metadata.configs.get((TOPIC, name), NO_CONFIGS)
        made = TopicImage(name, topic_id, configs)
        metadata.topics[name] = metadata.by_id[topic_id] = made
        replay.created(topic_id)
        replay.report_change("topic", name, None, {"topicId": topic_id})


def remove_topic(replay: ReplayState, values: dict[str, Any]) -> None:
    image = replay.find(values, TOPIC_TO_REMOVE)
    if image is None:
        return
    _forget(replay, image)
    replay.removed(image.id)
    gone = replay.metadata.configs.pop((TOPIC, image.name), {})
    replay.room += sum(ENTRY + getsizeof(name) + getsizeof(value) for name, value in gone.items())
    replay.report_change("topic", image.name, {"topicId": image.id, "partitions": len(image.partitions)}, None)


def _forget(replay: ReplayState, image: TopicImage) -> None:
    replay.room += 2 * ENTRY + 2 * getsizeof(image.name) + sum(map(_size, image.partitions.values()))
    replay.metadata.topics.pop(image.name, None)
    replay.metadata.by_id.pop(image.id, None)
    replay.partition_records.forget()


def partition(replay: ReplayState, values: dict[str, Any]) -> None:
    image = replay.find(values, NO_TOPIC)
    if image is None or _is_refused(replay, values, (), (0, 1)):
        return
    replicas = tuple(values["replicas"])
    isr = tuple(values["isr"])
    _put(
        replay,
        image,
        values["partitionId"],
        image.partitions.get(values["partitionId"]),
        PartitionRegistration(
            replicas,
            replay.ids(values.get("directories")),
            values["leader"],
            values["leaderEpoch"],
            replicas if isr == replicas else isr,
            tuple(values["addingReplicas"]),
            tuple(values["removingReplicas"]),
            tuple(values.get("eligibleLeaderReplicas") or ()),
            tuple(values.get("lastKnownElr") or ()),
            enum_name(RECOVERY_STATE, values["leaderRecoveryState"]),
            values["partitionEpoch"],
        ),
    )


def partition_change(replay: ReplayState, values: dict[str, Any]) -> None:
    image = replay.find(values, NO_TOPIC)
    if image is None:
        return
    before = image.partitions.get(values["partitionId"])
    if before is None:
        if not replay.is_full:
            text = f"{image.name} has no partition {values['partitionId']}"
            replay.refuse(replay.for_controller(NO_PARTITION, image.id), text, **values)
        return
    if _is_refused(replay, values, before.directories, (NO_RECOVERY_CHANGE, 0, 1)):
        return
    _put(replay, image, values["partitionId"], before, _merge(replay, before, values))


def _is_refused(replay: ReplayState, values: dict[str, Any], before: tuple[str, ...], states: tuple[int, ...]) -> bool:
    """Return whether Kafka refuses a registration, or a change of one with the directories `before`."""
    replicas, directories = values["replicas"], values.get("directories")
    if replicas is not None and directories and len(directories) != len(replicas):
        rule = OTHER_LENGTHS
    elif values["leaderRecoveryState"] not in states:
        rule = UNKNOWN_RECOVERY
    else:
        # Directories that are all unknown yet are as many as the replicas.
        kept = before if directories is None else directories
        if replicas is None or not kept or len(kept) == len(replicas) or set(kept) == {ZERO_UUID}:
            return False
        rule = OTHER_LENGTHS_AFTER
    text = "its replicas and directories differ in number, or its leader recovery state is unknown"
    replay.refuse(rule, text, record=replay.record, **values)
    return True


def _merge(replay: ReplayState, before: PartitionRegistration, values: dict[str, Any]) -> PartitionRegistration:
    """Return the partition with the changes in `values`; fields that are null or absent there keep their values."""
    leader, leader_epoch, recovery = before.leader, before.leaderEpoch, before.leaderRecoveryState
    directories = before.directories if (named := values.get("directories")) is None else replay.ids(named)
    if values["leader"] != NO_LEADER_CHANGE:
        leader, leader_epoch = values["leader"], int32(leader_epoch + 1)
    if values["leaderRecoveryState"] != NO_RECOVERY_CHANGE:
        recovery = enum_name(RECOVERY_STATE, values["leaderRecoveryState"])

    def brokers(name: str) -> tuple[int, ...]:
        changed = values.get(name)
        return getattr(before, name) if changed is None else tuple(changed)

    return PartitionRegistration(
        brokers("replicas"),
        directories,
        leader,
        leader_epoch,
        brokers("isr"),
        brokers("addingReplicas"),
        brokers("removingReplicas"),
        brokers("eligibleLeaderReplicas"),
        brokers("lastKnownElr"),
        recovery,
        int32(before.partitionEpoch + 1),
    )


def _put(
    replay: ReplayState,
    image: TopicImage,
    number: int,
    before: PartitionRegistration | None,
    after: PartitionRegistration,
) -> None:
    # In a snapshot the configs follow the partitions and matter more: reserve memory for them.
    if replay.charge(_size(after) - (_size(before) if before else 0), reserve=replay.all_room // 3):
        image.partitions[number] = after
        if after.eligibleLeaderReplicas or after.lastKnownElr:
            replay.with_elr.setdefault(image.name, set()).add(number)
        if replay.on_change is not None:
            replay.report_change("partition", f"{image.name}-{number}", before, after)


def clear_elr(replay: ReplayState, values: dict[str, Any]) -> None:
    """Clear the eligible leader replicas of one topic; of all topics if the record has no name."""
    name, topics = values["topicName"], replay.metadata.topics
    if name and name not in topics:
        replay.refuse(TOPIC_TO_CLEAR, f"there is no topic {name}", **values)
    for topic_name in [name] if name else list(replay.with_elr):
        image = topics.get(topic_name)
        for number in sorted(replay.with_elr.pop(topic_name, ())):
            before = image.partitions.get(number) if image else None
            if image is not None and before is not None and (before.eligibleLeaderReplicas or before.lastKnownElr):
                after = before._replace(
                    eligibleLeaderReplicas=(), lastKnownElr=(), partitionEpoch=int32(before.partitionEpoch + 1)
                )
                _put(replay, image, number, before, after)


def _size(info: PartitionRegistration) -> int:
    shared = 0 if info.isr == info.replicas else OWN_ISR
    lists = info[5:9]
    moving = sum([MOVING_LIST + 8 * len(brokers) for brokers in lists if brokers]) if lists != _NO_LISTS else 0
    return ENTRY + 8 * (len(info.replicas) + len(info.directories)) + shared + moving


HANDLERS: dict[str, Callable[[ReplayState, dict[str, Any]], None]] = {
    "TopicRecord": topic,
    "RemoveTopicRecord": remove_topic,
    "PartitionRecord": partition,
    "PartitionChangeRecord": partition_change,
    "ClearElrRecord": clear_elr,
}
