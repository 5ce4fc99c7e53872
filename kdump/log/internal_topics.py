"""Names of the topics that Kafka itself writes."""

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_TOPIC = "__transaction_state"
SHARE_TOPIC = "__share_group_state"
METADATA_TOPIC = "__cluster_metadata"
REMOTE_METADATA_TOPIC = "__remote_log_metadata"

COMPACTED_TOPICS = (OFFSETS_TOPIC, TRANSACTION_TOPIC)
"""Topics that are compacted whatever their configs are."""
INTERNAL_TOPICS = (*COMPACTED_TOPICS, SHARE_TOPIC, REMOTE_METADATA_TOPIC, METADATA_TOPIC)
