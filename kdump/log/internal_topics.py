"""Names of the topics that Kafka itself writes, and the schemas of their records."""

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_TOPIC = "__transaction_state"
SHARE_TOPIC = "__share_group_state"
METADATA_TOPIC = "__cluster_metadata"
METADATA_LOG = f"{METADATA_TOPIC}-0"
"""Directory of the metadata log."""
REMOTE_METADATA_TOPIC = "__remote_log_metadata"

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
