"""Effective value of a topic config on a broker: the topic's own, or from a dynamic broker config.

Source: org.apache.kafka.server.config.ServerTopicConfigSynonyms.
"""

from __future__ import annotations

from kdump.state.metadata_image import BROKER, MetadataImage

_SAME = "compression.type compression.gzip.level compression.lz4.level compression.zstd.level min.insync.replicas"
_SAME += " unclean.leader.election.enable"
_LOG = "cleanup.policy index.interval.bytes local.retention.bytes local.retention.ms message.timestamp.after.max.ms"
_LOG += " message.timestamp.before.max.ms message.timestamp.difference.max.ms message.timestamp.type preallocate"
_LOG += " retention.bytes retention.ms segment.bytes"
_CLEANER = "delete.retention.ms max.compaction.lag.ms min.compaction.lag.ms"
SYNONYMS = {
    **{key: key for key in _SAME.split()},
    **{key: f"log.{key}" for key in _LOG.split()},
    **{key: f"log.cleaner.{key}" for key in _CLEANER.split()},
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "max.message.bytes": "message.max.bytes",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "segment.index.bytes": "log.index.size.max.bytes",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "segment.ms": "log.roll.ms",
}
"""Topic config -> the broker config that is its default, if that can be changed while the broker runs
(ServerTopicConfigSynonyms.TOPIC_CONFIG_SYNONYMS). A broker's other defaults are in its server.properties."""


def effective(metadata: MetadataImage, topic: str, key: str, node_id: int | None) -> str | None:
    """Return the value of topic config `key` on broker `node_id` (None: unknown broker): the topic's own, else the
    broker's dynamic config, else the cluster-wide one. None if none of these is set or the topic is unknown: then the
    value is that in server.properties, or Kafka's default."""
    found = metadata.topics.get(topic)
    if found is None:
        return None
    if key in found.configs:
        return found.configs[key]
    synonym = SYNONYMS.get(key)
    if synonym is None:
        return None
    own = metadata.configs.get((BROKER, "" if node_id is None else str(node_id)), {})
    return own.get(synonym, metadata.configs.get((BROKER, ""), {}).get(synonym))
