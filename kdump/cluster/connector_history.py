"""Topics that a connector's config names, and of which it needs every record: Debezium's schema history.

Source: io.debezium.storage.kafka.history.KafkaSchemaHistory, and the documentation of its connectors: the topic has one
partition, and infinite retention; `database.history.kafka.topic` before Debezium 2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kdump.cluster.log_offsets import LogOffsetsByPartition
from kdump.format.known_releases import config_default
from kdump.format.numbers import parse_int
from kdump.state.effective_config import effective

HISTORY_KEYS = ("schema.history.internal.kafka.topic", "database.history.kafka.topic")


class SchemaHistory(NamedTuple):
    """The topic that `key` of a connector's config names. `lost`: log start offset, below which records are gone; 0:
    none is. `deletes`: how a config of the topic removes records; empty if it removes none, or is not known."""

    key: str
    topic: str
    lost: int
    deletes: str

    @property
    def problems(self) -> Iterator[str]:
        """Yield what is wrong with it."""
        if self.lost:
            yield (
                f"schema history incomplete: offsets 0..{self.lost - 1} of {self.topic} ({self.key}) are gone, and "
                "the connector needs all of them"
            )
        if self.deletes:
            yield f"schema history at risk: {self.topic} ({self.key}) has {self.deletes}, and must keep every record"


def schema_history(config: Mapping[str, Any], ends: LogOffsetsByPartition) -> SchemaHistory | None:
    """Return the schema history of a connector; None if it has none, or neither the topic's log nor the metadata of it
    are on the disks."""
    key = next((key for key in HISTORY_KEYS if isinstance(config.get(key), str)), None)
    if key is None:
        return None
    topic, metadata = config[key], ends.metadata
    end = ends.end(topic, 0)
    if end is None and (metadata is None or topic not in metadata.topics):
        return None
    deletes = ""
    if metadata is not None and topic in metadata.topics:
        values = {}
        for name in ("cleanup.policy", "retention.ms", "retention.bytes"):
            values[name] = effective(metadata, topic, name, None) or str(config_default(name))
        limits = [name for name in ("retention.ms", "retention.bytes") if parse_int(values[name]) != -1]
        causes = [] if values["cleanup.policy"] == "delete" else ["cleanup.policy"]
        causes += limits if "delete" in values["cleanup.policy"] else []
        deletes = ", ".join(f"{name}={values[name]}" for name in causes)
    return SchemaHistory(key, topic, 0 if end is None else end.logStartOffset, deletes)
