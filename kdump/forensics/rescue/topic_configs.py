"""Configs of topics that --from-data writes: those with which Kafka creates its internal topics, and what the logs of
the others show.

Source: GroupCoordinatorService.groupMetadataTopicConfigs, TransactionStateManager.transactionStateTopicConfigs,
ShareCoordinatorService.shareGroupStateTopicConfigs, TopicBasedRemoteLogMetadataManager.newRemoteLogMetadataTopic
(4.3.1).
"""

from __future__ import annotations

from collections.abc import Iterable

from kdump.cluster.remote_log import RemoteLog
from kdump.forensics.rescue.data_copies import FoundTopic
from kdump.format.size_text import size_text
from kdump.kafka.small_files import offsets
from kdump.log.internal_topics import OFFSETS_TOPIC, REMOTE_METADATA_TOPIC, SHARE_TOPIC, TRANSACTION_TOPIC
from kdump.log.log_directory import LogDirectory

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
HOLD = {RETENTION: "-1", RETENTION_BYTES: "-1"}
HELD = (
    "retention.ms and retention.bytes are -1, so that no broker deletes records by its default before the topic's own "
    "are set again"
)


class TopicConfigs:
    """`cleaned`: topic and partition of each line in a cleaner-offset-checkpoint, which lists what was compacted."""

    def __init__(self, places: Iterable[LogDirectory], remote: Iterable[RemoteLog]) -> None:
        self._tiered = {topic_id for each in remote for topic_id, _ in each.ends}
        self._cleaned: set[str] = set()
        for place in places:
            found, _ = offsets(place.files.get("cleaner-offset-checkpoint"))
            self._cleaned |= {topic for topic, _ in found}

    def of(self, topic: FoundTopic, replicas: int, given: dict[str, str] | None) -> tuple[dict[str, str], list[str]]:
        """Return the configs of a topic, and what they are taken from."""
        shown = []
        if given is not None:
            return dict(given), ["configs of --configs"]
        if topic.name in INTERNAL:
            configs = dict(INTERNAL[topic.name])
            if MIN_ISR in configs:
                configs[MIN_ISR] = str(min(LEAST_ISR, replicas))
            return configs, ["the configs with which Kafka creates this topic"]
        configs, facts = dict(HOLD), [each.facts for each in topic.every()]
        shown.append(HELD)
        if topic.name in self._cleaned or any(each.has_gaps for each in facts):
            configs[POLICY] = "compact"
            why = "cleaner-offset-checkpoint lists it" if topic.name in self._cleaned else "offsets have no record"
            shown.append(f"compacted: {why}")
        if any(each.append_time for each in facts):
            configs["message.timestamp.type"] = "LogAppendTime"
            shown.append("LogAppendTime: so are its last batches")
        if topic.topic_id in self._tiered:
            configs["remote.storage.enable"] = "true"
            shown.append("remote storage: __remote_log_metadata has segments of it")
        closed = max((each.closed for each in facts), default=0)
        if closed:
            shown.append(f"closed segments have up to {size_text(closed)} (segment.bytes)")
        return configs, shown
