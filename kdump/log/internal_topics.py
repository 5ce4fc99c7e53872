"""The topics that Kafka itself writes, by their names."""

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_TOPIC = "__transaction_state"
SHARE_TOPIC = "__share_group_state"
METADATA_TOPIC = "__cluster_metadata"
REMOTE_METADATA_TOPIC = "__remote_log_metadata"

COMPACTED_TOPICS = (OFFSETS_TOPIC, TRANSACTION_TOPIC)
"""Those that are compacted whatever their configs say."""
INTERNAL_TOPICS = (*COMPACTED_TOPICS, SHARE_TOPIC, REMOTE_METADATA_TOPIC, METADATA_TOPIC)
