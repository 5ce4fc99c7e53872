"""The topics that Kafka itself writes and their decoders, which are named after kafka-dump-log's options."""

from __future__ import annotations

from typing import NamedTuple

from kdump.log.internal_topics import (
    METADATA_TOPIC,
    OFFSETS_TOPIC,
    REMOTE_METADATA_TOPIC,
    SHARE_TOPIC,
    TRANSACTION_TOPIC,
)


class KafkaTopic(NamedTuple):
    """One of Kafka's own topics. `folder`: contains the schemas of its records; `is_coordinators`: it is written by a
    coordinator, with the framing of coordinator_record.py; the others have that of metadata_record.py."""

    topic: str
    folder: str
    is_coordinators: bool


METADATA = "cluster-metadata"
KAFKA = {
    "offsets": KafkaTopic(OFFSETS_TOPIC, "group-coordinator", True),
    "transaction-log": KafkaTopic(TRANSACTION_TOPIC, "transaction-coordinator", True),
    "share-group-state": KafkaTopic(SHARE_TOPIC, "share-coordinator", True),
    METADATA: KafkaTopic(METADATA_TOPIC, "metadata", False),
    "remote-log-metadata": KafkaTopic(REMOTE_METADATA_TOPIC, "storage", False),
}
"""By decoder name."""
TOPICS = {each.topic: name for name, each in KAFKA.items()}
