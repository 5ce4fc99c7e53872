"""Configs of topics that --from-data writes: those with which Kafka creates its internal topics, and what the logs of
the others show.

Source: GroupCoordinatorService.groupMetadataTopicConfigs, TransactionStateManager.transactionStateTopicConfigs,
ShareCoordinatorService.shareGroupStateTopicConfigs, TopicBasedRemoteLogMetadataManager.newRemoteLogMetadataTopic
(4.3.1)."""

from __future__ import annotations

from kdump.format.count_text import size_text
from kdump.log.internal_topics import OFFSETS_TOPIC, REMOTE_METADATA_TOPIC, SHARE_TOPIC, TRANSACTION_TOPIC, system_topic
from kdump.questions.rescue.data_copies import FoundTopic

POLICY, RETENTION, RETENTION_BYTES = "cleanup.policy", "retention.ms", "retention.bytes"
SEGMENT, COMPRESSION = {"segment.bytes": "104857600"}, "compression.type"
MIN_ISR = "min.insync.replicas"
LEAST_ISR = 2
"""Default of transaction.state.log.min.isr and share.coordinator.state.topic.min.isr."""
INTERNAL = {
    OFFSETS_TOPIC: {POLICY: "compact", COMPRESSION: "producer", **SEGMENT},
    TRANSACTION_TOPIC: {
        "unclean.leader.election.enable": "false",
        COMPRESSION: "uncompressed",
        POLICY: "compact",
        MIN_ISR: "",
        **SEGMENT,
    },
    SHARE_TOPIC: {POLICY: "delete", RETENTION: "-1", COMPRESSION: "producer", MIN_ISR: "", **SEGMENT},
    REMOTE_METADATA_TOPIC: {POLICY: "delete", RETENTION: "-1", "remote.storage.enable": "false"},
}
BROKER_MIN_ISR = {
    TRANSACTION_TOPIC: "transaction.state.log.min.isr",
    SHARE_TOPIC: "share.coordinator.state.topic.min.isr",
}
"""Configs of brokers from which a topic's min.insync.replicas is when it is created: no file of a topic has it."""
KAFKAS_OWN = "the configs with which Kafka creates this topic"
HOLD = {RETENTION: "-1", RETENTION_BYTES: "-1"}
HELD = (
    "retention.ms and retention.bytes are -1, so that no broker deletes records by its default before the topic's own "
    "are set again"
)


def topic_configs(
    topic: FoundTopic, replicas: int, *, is_cleaned: bool, is_tiered: bool
) -> tuple[dict[str, str], list[str]]:
    """Return the configs of a topic, and what they are taken from. `replicas`: largest number of a partition;
    `is_cleaned`, `is_tiered`: whether files of the broker show that it was compacted, or has remote storage."""
    if topic.name in INTERNAL:
        configs = dict(INTERNAL[topic.name])
        if MIN_ISR in configs:
            configs[MIN_ISR] = str(min(LEAST_ISR, replicas))
        return configs, [KAFKAS_OWN]
    configs, facts = dict(HOLD), [copy.facts for copy in topic.every()]
    shown = [HELD]
    if is_cleaned or any(log.has_gaps for log in facts):
        configs[POLICY] = "compact"
        why = "cleaner-offset-checkpoint lists it" if is_cleaned else "offsets have no record"
        shown.append(f"compacted: {why}")
    elif (system := system_topic(topic.name)) is not None and system.state:
        shown.append(f"its name is that of a topic with {system.state}: if it is one, set cleanup.policy=compact")
    if any(log.append_time for log in facts):
        configs["message.timestamp.type"] = "LogAppendTime"
        shown.append("LogAppendTime: so are its last batches")
    if is_tiered:
        configs["remote.storage.enable"] = "true"
        shown.append("remote storage: __remote_log_metadata has segments of it")
    closed = max((log.closed for log in facts), default=0)
    if closed:
        shown.append(f"closed segments have up to {size_text(closed)} (segment.bytes)")
    return configs, shown
