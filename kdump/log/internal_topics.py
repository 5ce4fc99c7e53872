"""Names of the topics that Kafka itself writes, and the schemas of their records."""

from __future__ import annotations

import re

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
STATE_TOPICS: dict[str, str] = {
    OFFSETS_TOPIC: "committed offsets of groups",
    TRANSACTION_TOPIC: "transactional IDs",
    r"_schemas.*": "schemas",
    r"(.*[._-])?connect([._-].*)?[._-]configs?([._-].*)?": "configs of connectors",
    r"(.*[._-])?connect([._-].*)?[._-]offsets?([._-].*)?": "offsets of source connectors",
    r"(.*[._-])?connect([._-].*)?[._-]status(es)?([._-].*)?": "statuses of connectors",
    r"mm2-(configs|offsets|status)\..*\.internal": "state of MirrorMaker's connectors",
    r"mm2-offset-syncs\..*\.internal|.*\.checkpoints\.internal": "translations of offsets between clusters",
}
"""Topics of which the last record of each key must stay, and what their records are: expressions; those after Kafka's
own are the names that Connect, MirrorMaker and the schema registry give them, or usually have. They have to be
compacted, and not deleted."""
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


def state_in(topic: str | None) -> str:
    """Return what the records of a topic are whose last record of each key must stay; empty for any other topic."""
    return next((what for name, what in STATE_TOPICS.items() if re.fullmatch(name, topic or "")), "")
