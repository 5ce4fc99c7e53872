"""Information from the coordinators' logs and the metadata log of a cluster, read in one task: transactional IDs, lag
of groups, and retention of topics."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from kdump.forensics.scan_answer import FleetGroup
from kdump.format.numbers import parse_long
from kdump.log.internal_topics import TRANSACTION_TOPIC
from kdump.log.log_directory import LogDirectory, directory_at
from kdump.log.partition_directory import partition
from kdump.log.region import Limits
from kdump.render.escape import path_text
from kdump.render.group_report import GroupDescription, describe_groups
from kdump.spark.arrow import Rows
from kdump.spark.arrow_types import TYPES, arrow_schema
from kdump.spark.bundles import mount_for_task
from kdump.spark.store import OWN, Store
from kdump.spark.tables import GROUP_LAG
from kdump.spark.task_read_limits import TaskReadLimits
from kdump.state.find_state_logs import logs_in
from kdump.state.lag import LagContext
from kdump.state.log_offsets import LogOffsetsByPartition, log_end
from kdump.state.metadata import read_metadata
from kdump.state.metadata_image import MetadataImage
from kdump.state.read_groups import CoordinatorLog, newest, read_groups
from kdump.state.topic_config import effective
from kdump.state.transaction_coordinator import TransactionCoordinatorState, read_coordinator

RETENTION = 7 * 86_400_000
"""Default of retention.ms (log.retention.hours is 168)."""


CLUSTERS = f"{OWN}/clusters"
ASSIGNMENT = pa.schema(
    [
        *((name, pa.string()) for name in ("cluster", "source", "topic", "topicId")),
        *((name, pa.int32()) for name in ("partition", "leader", "leaderEpoch")),
        *((name, TYPES["array<int>"]) for name in ("replicas", "isr", "eligibleLeaderReplicas")),
        ("retentionMs", pa.int64()),
    ]
)
"""What the metadata of a cluster says of its partitions; `source` is null if cluster.id is known."""
ROWS = 4096
"""Rows that are held in memory until they are written."""


class ClusterTask(NamedTuple):
    """The input of a task: the log directories of a cluster, without copies. `cluster`: cluster.id, None if unknown;
    `producers`: producer IDs with an open transaction; `most`: maximum number of groups in the summary; `stem`: name
    of the files to write."""

    store: Store
    stem: str
    cluster: str | None
    paths: tuple[str, ...]
    producers: tuple[int, ...]
    most: int
    limits: Limits
    reading: TaskReadLimits


class ClusterFacts(NamedTuple):
    """What is known about a cluster. `retention`: retention.ms of topics with time-based retention; `ids`: the
    transactional ID and its state, by producer ID; `groups`: those that lag most."""

    cluster: str | None
    paths: tuple[str, ...]
    retention: dict[str, int]
    ids: dict[int, tuple[str | None, str | None]]
    groups: list[FleetGroup]


def read_cluster(task: ClusterTask) -> ClusterFacts:
    """Read the coordinators' logs and the metadata of a cluster, each once, and write what they say of partitions and
    of groups. Raises StoreError."""
    task.reading.apply()
    mount_for_task(task.paths)
    found = (directory_at(path) for path in task.paths)
    directories = [each for each in found if isinstance(each, LogDirectory)]
    metadata = _metadata(directories)
    coordinator = _coordinator(directories, metadata, task.limits) if task.producers else None
    wanted = {*task.producers}
    ids: dict[int, tuple[str | None, str | None]] = {
        each.producerId: (each.transactionalId, each.state)
        for each in (coordinator.by_id.values() if coordinator else ())
        if each.producerId in wanted
    }
    retention = _retention(metadata)
    _write(task.store, f"{CLUSTERS}/{task.stem}.parquet", ASSIGNMENT, _assignments(task, metadata, retention))
    groups: list[FleetGroup] = []
    rows = Rows(GROUP_LAG, arrow_schema(GROUP_LAG))
    writing = task.store.writing(f"{GROUP_LAG.name}/{task.stem}.parquet")
    with writing as file, pq.ParquetWriter(file, rows.schema, compression="zstd") as writer:
        for group in _groups(directories, metadata, task.limits):
            groups.append(FleetGroup(task.cluster, *(group.group[name] for name in FleetGroup._fields[1:])))
            groups = sorted(groups, key=by_lag)[: task.most]
            for offset in group.offsets:
                if rows.add({"cluster": task.cluster, **offset}):
                    writer.write_table(pa.Table.from_batches(rows.take(), rows.schema))
        writer.write_table(pa.Table.from_batches(rows.take(), rows.schema))
    return ClusterFacts(task.cluster, task.paths, retention, ids, groups)


def by_lag(group: FleetGroup) -> tuple[int, str]:
    """Sort groups by lag, the largest first."""
    return -(group.lag or 0), group.groupId


def _assignments(
    task: ClusterTask, metadata: MetadataImage | None, retention: dict[str, int]
) -> Iterator[dict[str, Any]]:
    source = None if task.cluster is not None else path_text(task.paths[0])
    for topic in metadata.topics.values() if metadata else ():
        for number, each in topic.partitions.items():
            yield {
                "cluster": task.cluster,
                "source": source,
                "topic": topic.name,
                "topicId": topic.id,
                "partition": number,
                "leader": each.leader,
                "leaderEpoch": each.leaderEpoch,
                "replicas": list(each.replicas),
                "isr": list(each.isr),
                "eligibleLeaderReplicas": list(each.eligibleLeaderReplicas),
                "retentionMs": retention.get(topic.name),
            }


def _write(store: Store, name: str, schema: pa.Schema, rows: Iterator[dict[str, Any]]) -> None:
    """Write rows to a Parquet file. Raises StoreError."""
    with store.writing(name) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        while True:
            held = list(islice(rows, ROWS))
            writer.write_table(pa.Table.from_pylist(held, schema))
            if len(held) < ROWS:
                return


def _metadata(directories: list[LogDirectory]) -> MetadataImage | None:
    """Return the metadata with the highest end offset; None if no directory has topics in its metadata."""
    newest_image: MetadataImage | None = None
    for each in directories:
        read = read_metadata(each.path)
        if read is not None and read.topics and (newest_image is None or read.end_offset > newest_image.end_offset):
            newest_image = read
    return newest_image


def _coordinator(
    directories: list[LogDirectory], metadata: MetadataImage | None, limits: Limits
) -> TransactionCoordinatorState | None:
    topic = metadata.topics.get(TRANSACTION_TOPIC) if metadata else None
    paths = [
        each.path
        for directory in directories
        for each in directory.partitions
        if each.topic == TRANSACTION_TOPIC and not each.state
    ]
    return read_coordinator(paths, len(topic.partitions) if topic else None, limits) if paths else None


def _groups(
    directories: list[LogDirectory], metadata: MetadataImage | None, limits: Limits
) -> Iterator[GroupDescription]:
    """Yield the groups with their lag: committed offsets compared with the log end offsets on all disks of the
    cluster."""
    logs = [log for directory in directories for log in logs_in(directory)]
    if not logs:
        return
    chosen = newest(logs, lambda log: _end(log, limits))
    context = LagContext(LogOffsetsByPartition(directories, limits), metadata)
    yield from describe_groups(read_groups(chosen, limits=limits), context, lambda name: True, lambda name: True)


def _end(log: CoordinatorLog, limits: Limits) -> int:
    return log_end(partition(log.path), limits, []) or 0


def _retention(metadata: MetadataImage | None) -> dict[str, int]:
    """Return retention.ms by topic, for topics with time-based retention."""
    found: dict[str, int] = {}
    for topic in metadata.topics if metadata else ():
        assert metadata is not None
        policy = effective(metadata, topic, "cleanup.policy", None)
        retention_ms = parse_long(effective(metadata, topic, "retention.ms", None))
        milliseconds = RETENTION if retention_ms is None else retention_ms
        if (policy is None or "delete" in policy) and milliseconds >= 0:
            found[topic] = milliseconds
    return found
