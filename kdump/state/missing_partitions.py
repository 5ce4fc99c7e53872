"""Partitions that a log directory should contain and does not.

A broker creates every partition that the cluster's metadata assigns to it and that it does not find: with an empty log,
and without an error. So a partition directory that was lost shows only in what else names it:

- the log directory's checkpoints: a broker writes them for the logs that it has, at a clean shutdown and as soon as it
  has renamed a deleted log to -delete; high watermarks every 5 s (replica.high.watermark.checkpoint.interval.ms);
- the metadata, if the disk has it, which also states whether a checkpoint names a topic that was deleted since.

The metadata alone is not evidence of a loss, because the broker may have stopped before it created the partition; it is
if the log directory's checkpoints were lost, too.

Source: LogManager.asyncDelete, checkpointRecoveryOffsetsInDir and getOrCreateLog, ReplicaManager.getOrCreatePartition
and checkpointHighWatermarks, Partition.createLogInAssignedDirectoryId (4.3.1).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from kdump.log.listing import items
from kdump.log.paths import PARTITION, natural
from kdump.state.image import Metadata, PartitionInfo

Key = tuple[str, int]

EVIDENCE = ("replication-offset", "recovery-point-offset")
"""Checkpoints that name every log of a log directory, without '-checkpoint'."""

NO_DIRECTORY = ("AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg")
"""Directory IDs of replicas that the metadata assigns to a broker, but to none of its log directories
(DirectoryId.MIGRATING, UNASSIGNED, LOST)."""


class Expected(NamedTuple):
    """What names a log directory's partitions. `path`: the log directory; `others`: the node's other ones; `node` and
    `directory`: node.id and directory.id; `noted`: the partitions in its checkpoints, None if it has neither recovery
    points nor high watermarks; `metadata`: of the cluster, None if the disk has none."""

    path: str
    others: tuple[str, ...]
    node: int | None
    directory: str | None
    noted: Collection[Key] | None
    metadata: Metadata | None

    @property
    def is_known(self) -> bool:
        """Whether the disk's metadata states which partitions the node has; damaged metadata may be out of date."""
        return self.metadata is not None and not self.metadata.problems and bool(self.metadata.topics)

    def assigned(self) -> Iterable[tuple[Key, str | None]]:
        """Yield the node's partitions according to the metadata, each with the ID of its log directory; None if the
        metadata assigns it to no log directory."""
        for topic in self.metadata.topics.values() if self.metadata is not None else ():
            for number, info in topic.partitions.items():
                if self.node in info.replicas:
                    yield (topic.name, number), _directory(info, self.node)


class MissingPartitions(NamedTuple):
    """Partitions without a directory. `lost`: those that the log directory had; `never`: those that the metadata
    assigns to it and that no checkpoint names, so that the broker probably did not create them before it stopped."""

    lost: list[Key]
    never: list[Key]


def missing_partitions(expected: Expected) -> MissingPartitions:
    """Return the partitions that the log directory should contain and does not, in the order of their names. Looks at
    the directories as they are now; one that cannot be listed contains anything."""
    noted = set(expected.noted or ())
    if expected.is_known:
        assigned = dict(expected.assigned())
        here = {key for key, directory in assigned.items() if directory and directory == expected.directory}
        anywhere = {key for key, directory in assigned.items() if not directory}
        wanted = here | (anywhere & noted)
    else:
        here, wanted = set(), noted
    if not wanted:
        return MissingPartitions([], [])
    try:
        found = _states(expected.path)
        live = {key for path in expected.others for key, states in _states(path).items() if "" in states}
    except OSError:
        return MissingPartitions([], [])
    # A -future directory takes the place of a live one that is gone (LogManager.recoverAbandonedFutureLogs). Without
    # metadata, any directory explains why a checkpoint names the partition.
    instead = {"", "future"} if expected.is_known else {"", "future", "delete", "stray"}
    gone = {key for key in wanted if key not in live and not found.get(key, set()) & instead}
    lost = gone if expected.noted is None else gone & noted
    return MissingPartitions(_ordered(lost), _ordered(gone - lost))


def name_of(key: Key) -> str:
    """Return the name of the partition's directory."""
    return f"{key[0]}-{key[1]}"


def _ordered(keys: Iterable[Key]) -> list[Key]:
    return sorted(keys, key=lambda key: (natural(key[0]), key[1]))


def _directory(info: PartitionInfo, node: int) -> str | None:
    number = info.replicas.index(node)
    directory = info.directories[number] if number < len(info.directories) else None
    return None if directory in NO_DIRECTORY else directory


def _states(path: str) -> dict[Key, set[str]]:
    """Return the partitions that a log directory contains, each with the states of its directories: "" is a live one.
    Raises OSError."""
    found: dict[Key, set[str]] = {}
    for item in items(path):
        match = PARTITION.match(item.name)
        if match and item.is_directory:
            key = match["topic"], int(match["partition"])
            found.setdefault(key, set()).add(match["state"] or "")
    return found
