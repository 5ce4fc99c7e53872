"""Reads the logs of group and share coordinators, __consumer_offsets and __share_group_state, in tasks: each partition
once, in the replica that reaches furthest. What it says of groups is written as columns; kdump.spark.derived_tables
joins them with the logs that the groups read. A log that has not changed since an earlier scan is not read again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from kdump.answer import answer_object
from kdump.check.unchanged import file_stamp
from kdump.cluster.lag import LagContext, positions, share_positions
from kdump.cluster.log_offsets import LogOffsetsByPartition
from kdump.cluster.read_groups import CoordinatorLog, newest, read_groups
from kdump.io.mounted_paths import content_of
from kdump.io.run import Limits, Run
from kdump.log.internal_topics import OFFSETS_TOPIC, SHARE_TOPIC
from kdump.log.partition_directory import PartitionDirectory, partition
from kdump.render.escape import path_text
from kdump.spark.delta_tables import LAYOUT, write_rows
from kdump.spark.scan_sources import DIRECTORY, ScanSource, log_at
from kdump.spark.store import OWN, Store, key_of
from kdump.state.groups import GroupCoordinatorState
from kdump.tables.declarations import SparkTable, own_columns
from kdump.tables.mounted_paths import mount_for_task
from kdump.version import __version__

READ = (OFFSETS_TOPIC, SHARE_TOPIC)
GROUP, OFFSET, SHARE = "group", "offset", "share"
"""Kinds of rows: a group, an offset that it has committed, and the progress of a share group in a partition."""
COORDINATORS = SparkTable(
    f"{OWN}/coordinators",
    "what a coordinator's log states about a group",
    (
        *own_columns("string", "cluster", "source", "kind", "groupId", "groupType", "state", "topic"),
        *own_columns("int", "partition"),
        *own_columns("bigint", "offset", "leaderEpoch", "commitTimestamp", "expireTimestamp"),
        *own_columns("string", "metadata", "topicId"),
        *own_columns("bigint", "done", "recordOffset", "coordinator"),
    ),
)
"""`source` is null if cluster.id is known. `topic` of a share is null: only its ID is known. `done`: records above a
share's offset that are done. `coordinator`: number of the partition of the coordinator's log."""


class LogReplicas(NamedTuple):
    """The replicas of a partition of a coordinator's log. `cluster`, `source`: as in COORDINATORS; `size`: bytes of the
    largest."""

    cluster: str | None
    source: str | None
    name: str
    paths: tuple[str, ...]
    size: int


def coordinator_logs(sources: Iterable[ScanSource]) -> list[LogReplicas]:
    """Return the coordinators' logs in the log directories, without copies of a disk."""
    replicas: dict[tuple[str | None, str | None, str], list[tuple[str, int]]] = {}
    for source in sources:
        if source.kind == DIRECTORY and source.identity.copyOf is None:
            for name, _, size in source.logs:
                if name.rpartition("-")[0] in READ:
                    replicas.setdefault((*source.owner, name), []).append((log_at(source, name), size))
    return [
        LogReplicas(*key, tuple(path for path, _ in own), max(size for _, size in own))
        for key, own in sorted(replicas.items(), key=str)
    ]


def divided(logs: Sequence[LogReplicas], most: int) -> list[tuple[LogReplicas, ...]]:
    """Divide the logs among at most `most` tasks, of about the same number of bytes."""
    tasks: list[list[LogReplicas]] = [[] for _ in range(min(most, len(logs)))]
    sizes = [0] * len(tasks)
    for log in sorted(logs, key=lambda log: -log.size):
        least = sizes.index(min(sizes))
        tasks[least].append(log)
        sizes[least] += log.size + 1
    return [tuple(logs_of_task) for logs_of_task in tasks]


def read_coordinators(store: Store, logs: Sequence[LogReplicas], limits: Limits) -> list[str]:
    """Read the logs. Returns the names of the files with what they say, one for each log. Raises StoreError."""
    mount_for_task(path for log in logs for path in log.paths)
    present = {*store.list(COORDINATORS.name)}
    names = []
    for replicas in logs:
        places = [partition(path) for path in replicas.paths]
        name = f"{replicas.name.lstrip('_')}-{_fingerprint(replicas, places, limits)}.parquet"  # not hidden
        names.append(name)
        if name not in present:
            write_rows(store, COORDINATORS, name, _rows(replicas, places, limits))
    return names


def _fingerprint(replicas: LogReplicas, places: Iterable[PartitionDirectory], limits: Limits) -> str:
    """Return a digest of what the rows depend on: the segments of all replicas, by size and modification time."""
    stamps = [
        (segment.log.path, *file_stamp(segment.log), content_of(place.path))
        for place in places
        for segment in place.segments
        if segment.log is not None
    ]
    return key_of(LAYOUT, __version__, repr(limits), repr(replicas[:3]), *map(repr, stamps))


def _rows(replicas: LogReplicas, places: Iterable[PartitionDirectory], limits: Limits) -> Iterator[dict[str, Any]]:
    logs = [_log(place) for place in places]
    (chosen,) = newest(logs)
    source = None if replicas.source is None else path_text(replicas.source)
    common = {"cluster": replicas.cluster, "source": source, "coordinator": chosen.partition}
    for row in group_rows(read_groups([chosen], run=Run(limits))):
        yield common | row


def _log(place: PartitionDirectory) -> CoordinatorLog:
    paths = tuple(segment.log.path for segment in place.segments if segment.log is not None)
    assert place.topic is not None
    return CoordinatorLog(place.topic, place.partition or 0, place.path, paths)


def group_rows(read: GroupCoordinatorState) -> Iterator[dict[str, Any]]:
    """Yield the groups, their committed offsets and the progress of share groups, without what other logs know."""
    context = LagContext(LogOffsetsByPartition([]), None)
    waiting = read.pending_by_group()
    for name, group in sorted(read.groups.items()):
        yield {"kind": GROUP, "groupId": name, "groupType": group.type, "state": group.state}
        for commit in positions(read, name, waiting, context):
            yield {"kind": OFFSET, **answer_object(commit)}
    for name in sorted(read.share):
        for share in share_positions(read, name, context):
            row = {"groupId": name, "topicId": share.topicId, "partition": share.partition, "offset": share.startOffset}
            yield {"kind": SHARE, **row, "done": share.deliveryCompleteCount, "recordOffset": share.recordOffset}
