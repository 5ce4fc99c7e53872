"""Information from the coordinators' logs and the metadata log of a cluster, read in one task: transactional IDs, lag
of groups, and retention of topics."""

from __future__ import annotations

from typing import NamedTuple

from kdump.forensics.scan_answer import FleetGroup
from kdump.format.numbers import parse_long
from kdump.log.directory_listing import is_url
from kdump.log.errors import SourceError
from kdump.log.internal_topics import TRANSACTION_TOPIC
from kdump.log.log_directory import LogDirectory, directory_at
from kdump.log.partition_directory import partition
from kdump.log.region import Limits
from kdump.render.group_report import describe_groups
from kdump.spark.bundles import mount_for_task
from kdump.spark.task_read_limits import TaskReadLimits
from kdump.state.find_state_logs import coordinator_logs
from kdump.state.lag import LagContext
from kdump.state.log_offsets import LogOffsetsByPartition, log_end
from kdump.state.metadata import read_metadata
from kdump.state.metadata_image import MetadataImage
from kdump.state.read_groups import CoordinatorLog, newest, read_groups
from kdump.state.topic_config import effective
from kdump.state.transaction_coordinator import TransactionCoordinatorState, read_coordinator

RETENTION = 7 * 86_400_000
"""Default of retention.ms (log.retention.hours is 168)."""


class ClusterTask(NamedTuple):
    """The input of a task: the log directories of a cluster, without copies. `cluster`: cluster.id, None if unknown;
    `producers`: producer IDs with an open transaction; `most`: maximum number of groups."""

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
    """Read the coordinators' logs and the metadata of a cluster, each once."""
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
    groups = _groups(task.cluster, directories, metadata, task.limits)[: task.most]
    return ClusterFacts(task.cluster, task.paths, _retention(metadata), ids, groups)


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
    cluster: str | None, directories: list[LogDirectory], metadata: MetadataImage | None, limits: Limits
) -> list[FleetGroup]:
    """Return the groups with their lag, largest first: committed offsets compared with the log end offsets on all disks
    of the cluster."""
    local = [each for each in directories if not is_url(each.path)]
    logs: list[CoordinatorLog] = []
    for directory in local:
        try:
            logs.extend(coordinator_logs(directory.path, lambda error: None)[0])
        except SourceError:
            continue
    if not logs:
        return []
    chosen = newest(logs, lambda log: _end(log, limits))
    context = LagContext(LogOffsetsByPartition(local, limits), metadata)
    described = describe_groups(read_groups(chosen, limits=limits), context, lambda name: True, lambda name: True)
    found = [FleetGroup(cluster, *(each.group[name] for name in FleetGroup._fields[1:])) for each in described]
    return sorted(found, key=lambda group: (-(group.lag or 0), group.groupId))


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
