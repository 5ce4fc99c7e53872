"""Names of the topics that Kafka itself writes, and the schemas of their records."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_TOPIC = "__transaction_state"
SHARE_TOPIC = "__share_group_state"
METADATA_TOPIC = "__cluster_metadata"
METADATA_LOG = f"{METADATA_TOPIC}-0"
"""Directory of the metadata log."""
REMOTE_METADATA_TOPIC = "__remote_log_metadata"
SCHEMAS_TOPIC = "_schemas"
"""Topic of a schema registry, by default: kafkastore.topic of Confluent's, topic_name of Karapace."""

COMPACTED_TOPICS = (OFFSETS_TOPIC, TRANSACTION_TOPIC)
"""Topics that are compacted whatever their configs are."""
INTERNAL_TOPICS = (*COMPACTED_TOPICS, SHARE_TOPIC, REMOTE_METADATA_TOPIC, METADATA_TOPIC)

SCHEMAS = {
    OFFSETS_TOPIC: "group-coordinator",
    TRANSACTION_TOPIC: "transaction-coordinator",
    SHARE_TOPIC: "share-coordinator",
    METADATA_TOPIC: "metadata",
    REMOTE_METADATA_TOPIC: "storage",
}
"""Folder of the schemas of each topic's records (kdump.format.schema)."""
COORDINATOR_TOPICS = (OFFSETS_TOPIC, TRANSACTION_TOPIC, SHARE_TOPIC)
"""Topics with the framing of kdump.format.coordinator_record; the others have that of metadata_record."""


class SystemTopic(NamedTuple):
    """Topics that one part of Kafka, or of what runs with it, writes. `pattern` matches the whole name. `state`: what
    their records are, if the last record of each key must stay: they have to be compacted, and not deleted; else empty.
    `decoder`: that of their records (kdump.decode.ecosystem_decoders); empty: none, or one of Kafka's own topics.
    `is_sure`: other topics have no such names."""

    pattern: str
    state: str = ""
    decoder: str = ""
    is_sure: bool = True


CHANGELOG = "state stores of Kafka Streams"
SYSTEM_TOPICS = (
    SystemTopic(OFFSETS_TOPIC, "committed offsets of groups"),
    SystemTopic(TRANSACTION_TOPIC, "transactional IDs"),
    SystemTopic(r"_schemas.*", "schemas"),
    SystemTopic(r"mm2-offset-syncs(\W|_).*\1internal", "translations of offsets between clusters", "mm2-offset-syncs"),
    SystemTopic(r".*(\W|_)checkpoints\1internal", "translations of offsets between clusters", "mm2-checkpoints"),
    SystemTopic(r"(.*[._-])?heartbeats", "", "mm2-heartbeats", False),
    *(
        SystemTopic(pattern.format(name), what, decoder, is_sure)
        for name, what, decoder in (
            ("configs?", "configs of connectors", "connect-configs"),
            ("offsets?", "offsets of source connectors", "connect-offsets"),
            ("status(?:es)?", "statuses of connectors", "connect-status"),
        )
        for pattern, is_sure in (
            ("(?:mm2|connect)-{}(?:[._-].*[._-]internal)?", True),
            ("(?:.*[._-])?connect(?:[._-].*)?[._-]{}(?:[._-].*)?", False),
        )
    ),
    SystemTopic(r".*-changelog", CHANGELOG, "streams", False),
    SystemTopic(r".*-(?i:repartition|subscription-(?:registration|response)-(?:\d+-)?topic)", "", "streams", False),
)
"""In the order in which a name is compared. Those after Kafka's own have the names that Connect, MirrorMaker, Kafka
Streams and the schema registry give them, or usually have."""


@lru_cache(8192)
def system_topic(topic: str | None) -> SystemTopic | None:
    """Return which of SYSTEM_TOPICS has this name."""
    return next((system for system in SYSTEM_TOPICS if re.fullmatch(system.pattern, topic or "")), None)


def state_in(topic: str | None) -> str:
    """Return what the records of a topic are whose last record of each key must stay; empty for any other topic."""
    system = system_topic(topic)
    return "" if system is None else system.state
