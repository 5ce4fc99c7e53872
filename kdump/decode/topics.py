"""The topics that Kafka itself writes, and the decoders that are theirs, by the names of kafka-dump-log's options."""

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
    """`folder` names the schemas of its records. `is_coordinators`: a coordinator writes it, and its records are framed
    as coordinator_record.py reads them; otherwise as metadata_record.py does."""

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
"""By the names of the decoders."""
TOPICS = {said.topic: name for name, said in KAFKA.items()}
