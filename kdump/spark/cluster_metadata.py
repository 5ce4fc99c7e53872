"""What the metadata log of a cluster says of its partitions, read in one task a cluster and written as columns, which
derived tables join with the disks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from kdump.cluster.metadata_copies import MetadataCopies
from kdump.format.known_releases import config_default
from kdump.format.numbers import parse_long
from kdump.render.escape import path_text
from kdump.spark.arrow import TYPES, plain
from kdump.spark.bundles import mount_for_task
from kdump.spark.scan_setup import TaskReadLimits
from kdump.spark.store import OWN, Store
from kdump.state.effective_config import effective
from kdump.state.metadata_image import MetadataImage

CLUSTERS = f"{OWN}/clusters"
ASSIGNMENT = pa.schema(
    [
        *((name, pa.string()) for name in ("cluster", "source", "topic", "topicId")),
        *((name, pa.int32()) for name in ("partition", "leader", "leaderEpoch")),
        *((name, TYPES["array<int>"]) for name in ("replicas", "isr", "eligibleLeaderReplicas")),
        ("retentionMs", pa.int64()),
    ]
)
"""A partition in the metadata of a cluster; `source` is null if cluster.id is known. `retentionMs`: retention.ms if the
topic has time-based retention."""
ROWS = 4096
"""Rows that are held in memory until they are written."""


class ClusterTask(NamedTuple):
    """The input of a task. `stem`: name of the file to write; `cluster`: cluster.id, None if unknown; `source`: then
    the log directory that stands for it; `path`: the log directory with the newest copy of its metadata, None if none
    has topics in it."""

    store: Store
    stem: str
    cluster: str | None
    source: str | None
    path: str | None
    reading: TaskReadLimits


def read_cluster(task: ClusterTask) -> None:
    """Read the metadata of a cluster, and write what it says of partitions. Raises StoreError."""
    task.reading.apply()
    metadata = None
    if task.path is not None:
        mount_for_task([task.path])
        metadata = MetadataCopies().replayed(task.path)
    source = None if task.source is None else path_text(task.source)
    write_columns(
        task.store,
        f"{CLUSTERS}/{task.stem}.parquet",
        ASSIGNMENT,
        ({"cluster": task.cluster, "source": source, **row} for row in _assignments(metadata)),
    )


def _assignments(metadata: MetadataImage | None) -> Iterator[dict[str, Any]]:
    for topic in metadata.topics.values() if metadata is not None else ():
        assert metadata is not None
        retention = _retention(metadata, topic.name)
        for number, each in sorted(topic.partitions.items()):
            yield {
                "topic": topic.name,
                "topicId": topic.id,
                "partition": number,
                "leader": each.leader,
                "leaderEpoch": each.leaderEpoch,
                "replicas": list(each.replicas),
                "isr": list(each.isr),
                "eligibleLeaderReplicas": list(each.eligibleLeaderReplicas),
                "retentionMs": retention,
            }


def write_columns(store: Store, name: str, schema: pa.Schema, rows: Iterator[dict[str, Any]]) -> None:
    """Write rows, by the names of their columns, to a Parquet file. Raises StoreError."""
    held: list[dict[str, Any]] = []
    with store.writing(name) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:

        def write() -> None:
            arrays = [plain([row.get(field.name) for row in held], field.type) for field in schema]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            held.clear()

        for row in rows:
            held.append(row)
            if len(held) >= ROWS:
                write()
        write()


def _retention(metadata: MetadataImage, topic: str) -> int | None:
    """Return retention.ms of a topic; None if it has no time-based retention."""
    policy = effective(metadata, topic, "cleanup.policy", None)
    retention_ms = parse_long(effective(metadata, topic, "retention.ms", None))
    milliseconds = int(config_default("retention.ms") or -1) if retention_ms is None else retention_ms
    return milliseconds if (policy is None or "delete" in policy) and milliseconds >= 0 else None
