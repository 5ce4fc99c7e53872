"""The topics that Kafka itself writes, and the decoders that are theirs, by the names of kafka-dump-log's options."""

from __future__ import annotations

from typing import NamedTuple


class KafkaTopic(NamedTuple):
    """`folder` names the schemas of its records. `is_coordinators`: a coordinator writes it, and its records are framed
    as coordinator_record.py reads them; otherwise as metadata_record.py does."""

    topic: str
    folder: str
    is_coordinators: bool


METADATA = "cluster-metadata"
KAFKA = {
    "offsets": KafkaTopic("__consumer_offsets", "group-coordinator", True),
    "transaction-log": KafkaTopic("__transaction_state", "transaction-coordinator", True),
    "share-group-state": KafkaTopic("__share_group_state", "share-coordinator", True),
    METADATA: KafkaTopic("__cluster_metadata", "metadata", False),
    "remote-log-metadata": KafkaTopic("__remote_log_metadata", "storage", False),
}
"""By the names of the decoders."""
TOPICS = {said.topic: name for name, said in KAFKA.items()}
