"""State of Kafka Connect, from its topics: connectors, tasks, statuses, offsets.

Source: org.apache.kafka.connect.storage: KafkaConfigBackingStore, KafkaStatusBackingStore, KafkaOffsetBackingStore.
Values have their secrets: what shows them hides these (kdump.state.connect_records)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

LIVE, DELETED, CONNECTOR_DELETED, UNKNOWN_CONNECTOR = "live", "deleted", "connectorDeleted", "unknownConnector"


class Stored(NamedTuple):
    """A value, and the place and time of its record. `at`: the number of its log."""

    value: Any
    offset: int
    timestamp: int | None
    at: int = 0


class RemovedConnector(NamedTuple):
    """A connector that was deleted: its last config, and the record that deleted it."""

    config: Stored
    removed: Stored


class StoredOffset(NamedTuple):
    """A source offset: the JSON of key and value, and, if it was deleted, the record that did."""

    value: bytes
    offset: int
    timestamp: int | None
    at: int
    removed: Stored | None = None


@dataclass
class ConnectState:
    """What the workers of a Connect cluster know. By connector, unless stated otherwise."""

    configs: dict[str, Stored] = field(default_factory=dict)
    removed: dict[str, RemovedConnector] = field(default_factory=dict)
    target_states: dict[str, Stored] = field(default_factory=dict)
    task_counts: dict[str, Stored] = field(default_factory=dict)
    """Numbers of tasks, as of the last commit."""
    tasks: dict[str, dict[int, Stored]] = field(default_factory=dict)
    """Committed configs of tasks."""
    deferred: dict[str, dict[int, Stored]] = field(default_factory=dict)
    """Configs of tasks that no commit follows: they are not in effect."""
    applied: dict[str, Stored] = field(default_factory=dict)
    """The config of the connector at its last complete commit."""
    inconsistent: set[str] = field(default_factory=set)
    """Connectors whose last commit lacks configs of tasks: workers run none of their tasks."""
    statuses: dict[str, Stored] = field(default_factory=dict)
    task_statuses: dict[str, dict[int, Stored]] = field(default_factory=dict)
    topics: dict[str, dict[str, Stored]] = field(default_factory=dict)
    offsets: dict[bytes, StoredOffset] = field(default_factory=dict)
    """By the JSON of the key."""
    problems: list[str] = field(default_factory=list)
    end_offsets: list[int] = field(default_factory=list)
    """Of each log: the offset after its last record that was read."""

    def effective_tasks(self, connector: str) -> dict[int, Stored]:
        """Return the configs with which the tasks run. Source: ClusterConfigState.tasks."""
        if connector in self.inconsistent or connector not in self.task_counts:
            return {}
        mine, count = self.tasks.get(connector, {}), self.task_counts[connector].value
        return {number: mine[number] for number in sorted(mine) if number < count}

    def state_of(self, connector: str) -> str:
        """Return whether there is such a connector."""
        if connector in self.configs:
            return LIVE
        return CONNECTOR_DELETED if connector in self.removed else UNKNOWN_CONNECTOR
