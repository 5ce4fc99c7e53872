"""What the metadata log of a cluster says of its partitions, read in one task a cluster and written as columns, which
derived tables join with the disks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kdump.cluster.metadata_copies import MetadataCopies
from kdump.format.known_releases import config_default
from kdump.format.numbers import parse_long
from kdump.render.escape import path_text
from kdump.spark.delta_tables import write_rows
from kdump.spark.store import OWN, Store
from kdump.state.effective_config import effective
from kdump.state.metadata_image import MetadataImage
from kdump.tables.declarations import SparkTable, own_columns
from kdump.tables.mounted_paths import mount_for_task

CLUSTERS = SparkTable(
    f"{OWN}/clusters",
    "a partition in the metadata of a cluster",
    (
        *own_columns("string", "cluster", "source", "topic", "topicId"),
        *own_columns("int", "partition", "leader", "leaderEpoch"),
        *own_columns("array<int>", "replicas", "isr", "eligibleLeaderReplicas"),
        *own_columns("bigint", "retentionMs"),
    ),
)
"""`source` is null if cluster.id is known. `retentionMs`: retention.ms if the topic has time-based retention."""


def read_cluster(store: Store, name: str, cluster: str | None, source: str | None, path: str | None) -> None:
    """Read the metadata of a cluster, and write what it says of partitions to the file `name`. `cluster`: cluster.id,
    None if unknown; `source`: then the log directory that stands for it; `path`: the log directory with the newest copy
    of its metadata, None if none has topics in it. Raises StoreError."""
    metadata = None
    if path is not None:
        mount_for_task([path])
        metadata = MetadataCopies().replayed(path)
    shown = None if source is None else path_text(source)
    rows = ({"cluster": cluster, "source": shown, **row} for row in _assignments(metadata))
    write_rows(store, CLUSTERS, name, rows)


def _assignments(metadata: MetadataImage | None) -> Iterator[dict[str, Any]]:
    for topic in metadata.topics.values() if metadata is not None else ():
        assert metadata is not None
        retention = _retention(metadata, topic.name)
        for number, registration in sorted(topic.partitions.items()):
            yield {
                "topic": topic.name,
                "topicId": topic.id,
                "partition": number,
                "leader": registration.leader,
                "leaderEpoch": registration.leaderEpoch,
                "replicas": list(registration.replicas),
                "isr": list(registration.isr),
                "eligibleLeaderReplicas": list(registration.eligibleLeaderReplicas),
                "retentionMs": retention,
            }


def _retention(metadata: MetadataImage, topic: str) -> int | None:
    """Return retention.ms of a topic; None if it has no time-based retention."""
    policy = effective(metadata, topic, "cleanup.policy", None)
    retention_ms = parse_long(effective(metadata, topic, "retention.ms", None))
    milliseconds = int(config_default("retention.ms") or -1) if retention_ms is None else retention_ms
    return milliseconds if (policy is None or "delete" in policy) and milliseconds >= 0 else None
