"""Effective value of a topic config on a broker: the topic's own, or from a dynamic broker config.

Source: org.apache.kafka.server.config.ServerTopicConfigSynonyms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from kdump.format.known_releases import synonyms
from kdump.format.numbers import parse_int
from kdump.state.metadata_image import BROKER, TOPIC, MetadataImage, PartitionRegistration
from kdump.state.secrets import is_secret

MOVE_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
COPY_RATE = "remote.log.manager.copy.max.bytes.per.second"
"""Dynamic broker configs that limit moves between log directories, and copies to remote storage (RLMQuotaManager)."""


@cache
def dynamic_synonyms() -> Mapping[str, str]:
    """Return, by topic config, the broker config that is its default, if that can be changed while the broker runs
    (ServerTopicConfigSynonyms.TOPIC_CONFIG_SYNONYMS). A broker's other defaults are in its server.properties."""
    return {name: names[0] for name, names in synonyms().items()}


PUBLIC_RESOURCES = (TOPIC, 8, 16, 32)
"""Types of resources whose configs Kafka defines, none as a PASSWORD: topics, loggers of brokers, client metrics and
groups (org.apache.kafka.common.config.ConfigResource.Type)."""


def is_tiered(metadata: MetadataImage | None, topic: str) -> bool:
    """Return True if, by the metadata, segments of the topic are copied to remote storage; False without metadata."""
    return metadata is not None and effective(metadata, topic, "remote.storage.enable", None) == "true"


def size_config(metadata: MetadataImage | None, topic: str, key: str, node_id: int | None, default: int) -> int:
    """Return a topic config as a number of bytes; `default` if it is unknown or not valid."""
    value = parse_int(effective(metadata, topic, key, node_id)) if metadata is not None else None
    return default if value is None or value < 0 else value


def effective(metadata: MetadataImage, topic: str, key: str, node_id: int | None) -> str | None:
    """Return the value of topic config `key` on broker `node_id` (None: unknown broker): the topic's own, else the
    broker's dynamic config, else the cluster-wide one. None if none of these is set or the topic is unknown: then the
    value is that in server.properties, or Kafka's default."""
    described = metadata.topics.get(topic)
    if described is None:
        return None
    if key in described.configs:
        return described.configs[key]
    synonym = dynamic_synonyms().get(key)
    if synonym is None:
        return None
    return broker_config(metadata, synonym, node_id)


def broker_config(metadata: MetadataImage | None, name: str, node_id: int | None) -> str | None:
    """Return a dynamic config of a broker (None: unknown): its own, else the cluster-wide one; None without one."""
    if metadata is None:
        return None
    own = metadata.configs.get((BROKER, "" if node_id is None else str(node_id)), {})
    return own.get(name, metadata.configs.get((BROKER, ""), {}).get(name))


def replication_limits(metadata: MetadataImage, topic: str, partition: int, info: PartitionRegistration) -> list[str]:
    """Return the rates that limit the replicas that are not in sync, each with its broker (ReplicationQuotaManager)."""
    lagging = [replica for replica in info.replicas if replica not in info.isr]
    limits = []
    for role, brokers in (("leader", [info.leader] if lagging else []), ("follower", lagging)):
        listed = effective(metadata, topic, f"{role}.replication.throttled.replicas", None) or ""
        for broker in brokers:
            rate = broker_config(metadata, f"{role}.replication.throttled.rate", broker)
            is_listed = listed.strip() == "*" or f"{partition}:{broker}" in re.split(r"\s*,\s*", listed.strip())
            if is_listed and rate is not None:
                limits.append(f"{role}.replication.throttled.rate={rate} of broker {broker}")
    return limits


def is_public(values: dict[str, object]) -> bool:
    """Return True if the value of a config may be shown, because its name does not sound like a secret and it is not
    a broker's, or it is the default of a topic's, a number or a truth value. What plugins of brokers are configured
    with is not known. (Topics, groups and client metrics have no configs of type PASSWORD.)"""
    name, value = str(values["name"]), str(values["value"])
    if is_secret(name):
        return False
    plain = value.lstrip("-").isdecimal() or value in ("true", "false")
    if values["resourceType"] == BROKER:
        return name in dynamic_synonyms().values() or plain
    return values["resourceType"] in PUBLIC_RESOURCES
