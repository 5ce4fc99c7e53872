"""The topics that Kafka itself writes and their decoders, which are named after kafka-dump-log's options."""

from __future__ import annotations

from typing import NamedTuple

from kdump.format.streams_record import KEYS
from kdump.log.internal_topics import (
    COORDINATOR_TOPICS,
    METADATA_TOPIC,
    OFFSETS_TOPIC,
    REMOTE_METADATA_TOPIC,
    SCHEMAS,
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
NAMES = {
    "offsets": OFFSETS_TOPIC,
    "transaction-log": TRANSACTION_TOPIC,
    "share-group-state": SHARE_TOPIC,
    METADATA: METADATA_TOPIC,
    "remote-log-metadata": REMOTE_METADATA_TOPIC,
}
KAFKA = {name: KafkaTopic(topic, SCHEMAS[topic], topic in COORDINATOR_TOPICS) for name, topic in NAMES.items()}
"""By decoder name."""
TOPICS = {each.topic: name for name, each in KAFKA.items()}

CONFIGS, OFFSETS, STATUS = "connect-configs", "connect-offsets", "connect-status"
MIRROR = {"mm2-offset-syncs": "OffsetSync", "mm2-checkpoints": "Checkpoint", "mm2-heartbeats": "Heartbeat"}
"""Kafka's classes of MirrorMaker's records, by decoder name."""
STREAMS = ("streams", *KEYS, "streams-change")
ECOSYSTEM = (CONFIGS, OFFSETS, STATUS, *MIRROR, *STREAMS)
"""Decoders of the topics of Connect, MirrorMaker and Streams."""
