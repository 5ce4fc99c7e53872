"""Information from the coordinators' logs and the metadata log on the disks of a fleet: open transactions, lag of
groups, and retention of topics."""

from __future__ import annotations

from kdump.forensics.scan_answer import FleetGroup, FleetTransaction
from kdump.format.numbers import parse_long
from kdump.log.directory_listing import is_url
from kdump.log.errors import SourceError
from kdump.log.internal_topics import TRANSACTION_TOPIC
from kdump.log.log_directory import LogDirectory
from kdump.log.partition_directory import partition
from kdump.log.region import Limits
from kdump.render.group_report import describe_groups
from kdump.spark.fleet import Fleet, FoundDirectory
from kdump.spark.scan_result import ScanResult
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


def _clusters(fleet: Fleet) -> dict[str, list[LogDirectory]]:
    """Return the log directories of each cluster, without copies; one without a cluster ID is under its own path."""
    found: dict[str, list[LogDirectory]] = {}
    for each in fleet.found:
        if isinstance(each.place, LogDirectory) and each.identity.copyOf is None:
            found.setdefault(each.identity.cluster or each.place.path, []).append(each.place)
    return found


def _name(directory: FoundDirectory) -> str:
    return directory.identity.cluster or directory.place.path


def _metadata(directories: list[LogDirectory]) -> MetadataImage | None:
    """Return the metadata with the highest end offset; None if no directory has topics in its metadata."""
    read = [read_metadata(each.path) for each in directories]
    known = [each for each in read if each is not None and each.topics]
    return max(known, key=lambda each: each.end_offset, default=None)


def open_transactions(done: ScanResult) -> list[FleetTransaction]:
    """Return the transactions that are open at the end of the logs, with their state in __transaction_state."""
    left = [(entry, each) for entry in done.entries if entry.get("copyOf") is None for each in entry["open"]]
    if not left:
        return []
    coordinators: dict[str, TransactionCoordinatorState | None] = {}
    for cluster, directories in _clusters(done.fleet).items():
        coordinators[cluster] = _coordinator(directories, done.check.limits)
    found = []
    for entry, each in left:
        known = coordinators.get(entry["cluster"] or entry["source"])
        matching = [one for one in known.by_id.values() if one.producerId == each["producerId"]] if known else []
        found.append(
            FleetTransaction(
                cluster=entry["cluster"],
                topic=entry["topic"],
                partition=entry["partition"],
                source=entry["unit"],
                **each,
                transactionalId=matching[0].transactionalId if matching else None,
                state=matching[0].state if matching else None,
            )
        )
    return sorted(found, key=lambda each: (each.timestamp, each.topic or "", each.partition or 0))


def _coordinator(directories: list[LogDirectory], limits: Limits) -> TransactionCoordinatorState | None:
    metadata = _metadata(directories)
    topic = metadata.topics.get(TRANSACTION_TOPIC) if metadata else None
    paths = [
        each.path
        for directory in directories
        for each in directory.partitions
        if each.topic == TRANSACTION_TOPIC and not each.state
    ]
    return read_coordinator(paths, len(topic.partitions) if topic else None, limits) if paths else None


def lagging_groups(fleet: Fleet, limits: Limits) -> list[FleetGroup]:
    """Return the groups with their lag, largest first: committed offsets compared with the log end offsets on all disks
    of the cluster."""
    found = []
    for cluster, directories in _clusters(fleet).items():
        local = [each for each in directories if not is_url(each.path)]
        logs: list[CoordinatorLog] = []
        for directory in local:
            try:
                logs.extend(coordinator_logs(directory.path, lambda error: None)[0])
            except SourceError:
                continue
        if not logs:
            continue
        chosen = newest(logs, lambda log: _end(log, limits))
        context = LagContext(LogOffsetsByPartition(local, limits), _metadata(local))
        owner = next((each.identity.cluster for each in fleet.found if _name(each) == cluster), None)
        for each in describe_groups(read_groups(chosen, limits=limits), context, lambda name: True, lambda name: True):
            found.append(FleetGroup(owner, *(each.group[name] for name in FleetGroup._fields[1:])))
    return sorted(found, key=lambda group: (-(group.lag or 0), group.groupId))


def _end(log: CoordinatorLog, limits: Limits) -> int:
    return log_end(partition(log.path), limits, []) or 0


def retention_of(fleet: Fleet) -> dict[tuple[str | None, str | None], int]:
    """Return retention.ms by cluster and topic, for topics with time-based retention."""
    found: dict[tuple[str | None, str | None], int] = {}
    for cluster, directories in _clusters(fleet).items():
        metadata = _metadata(directories)
        owner = next((each.identity.cluster for each in fleet.found if _name(each) == cluster), None)
        for topic in metadata.topics if metadata else ():
            assert metadata is not None
            policy = effective(metadata, topic, "cleanup.policy", None)
            retention_ms = parse_long(effective(metadata, topic, "retention.ms", None))
            milliseconds = RETENTION if retention_ms is None else retention_ms
            if (policy is None or "delete" in policy) and milliseconds >= 0:
                found[owner, topic] = milliseconds
    return found
