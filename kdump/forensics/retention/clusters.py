"""The cluster of a log directory: its configs, and the offsets of its partitions that are in remote storage."""

from __future__ import annotations

import os
from collections.abc import Iterator

from kdump.check.options import Options
from kdump.cluster.disks import Disks, Node
from kdump.cluster.find_state_logs import metadata_at
from kdump.cluster.remote_log import RemoteLog
from kdump.kafka import checkpoint_file
from kdump.log.directory_listing import is_url
from kdump.log.errors import OnUnreadable, SourceError
from kdump.log.log_directory import LogDirectory, directory_at
from kdump.log.partition_directory import PartitionDirectory
from kdump.state.metadata_image import MetadataImage

CHECKPOINTS = ("log-start-offset-checkpoint", "replication-offset-checkpoint", "cleaner-offset-checkpoint")
"""The checkpoints that retention and the log cleaner use."""


class Clusters:
    """The newest known metadata of the cluster of each log directory. `named`: path from which to read it instead: a
    log directory, __cluster_metadata-0, or a metadata snapshot; `disks`: the log directories."""

    def __init__(self, named: str | None, disks: Disks, options: Options, on_unreadable: OnUnreadable) -> None:
        self.disks = disks
        self.options = options
        self._read: dict[str, tuple[MetadataImage | None, int | None]] = {}
        self._remote: dict[str, RemoteLog] = {}
        self._checkpoints: dict[str, list[str]] = {}
        self.given: MetadataImage | None = None
        if named is not None:
            self.given = metadata_at(named, options.limits, on_unreadable)

    def of(self, directory: str) -> tuple[MetadataImage | None, int | None]:
        """Return the metadata for the partitions in a directory, and the ID of its broker; None for what is unknown."""
        if directory not in self._read:
            self._read[directory] = self._of(directory)
        return self._read[directory]

    def remote(self, directory: str) -> RemoteLog:
        """Return how far the partitions of tiered topics are copied to remote storage, as far as this disk shows."""
        if directory not in self._remote:
            place = directory_at(directory) if directory and not is_url(directory) else None
            node = self.disks.node_of(place) if isinstance(place, LogDirectory) else Node()
            self._remote[directory] = node.remote_log(self.of(directory)[0], self.options.limits)
        return self._remote[directory]

    def moves_to(self, partition: PartitionDirectory) -> str:
        """Return the -future directory that a partition of a broker is moved to, which may be this one; empty if there
        is none, or nothing to move."""
        is_named = partition.topic is not None and partition.path != "-" and not is_url(partition.path)
        place = directory_at(os.path.dirname(os.path.abspath(partition.path))) if is_named else None
        if not isinstance(place, LogDirectory) or partition.state not in ("", "future"):
            return ""
        key = (partition.topic, partition.partition)
        every = (each for directory in self.disks.node_of(place).directories for each in directory.partitions)
        here = {each.state: each.path for each in every if (each.topic, each.partition) == key}
        return here.get("future", "") if "" in here else ""

    def checkpoint_problems(self, directory: str, on_unreadable: OnUnreadable) -> list[str]:
        """Return the first invalid line of each of the directory's checkpoints. Calls `on_unreadable` for a file that
        cannot be read, once."""
        if directory not in self._checkpoints:
            self._checkpoints[directory] = list(self._bad_lines(directory, on_unreadable))
        return self._checkpoints[directory]

    def _bad_lines(self, directory: str, on_unreadable: OnUnreadable) -> Iterator[str]:
        for name in CHECKPOINTS if directory and not is_url(directory) else ():
            try:
                checkpoint_file.offsets(os.path.join(directory, name))
            except SourceError as error:
                on_unreadable(error)
            except checkpoint_file.BadLine as error:
                yield f"{name}, byte {error.position}: {error}"

    def _of(self, directory: str) -> tuple[MetadataImage | None, int | None]:
        log_directory = directory_at(directory) if directory and not is_url(directory) else None
        if not isinstance(log_directory, LogDirectory):
            return self.given, None
        number = self.disks.node_of(log_directory).node_id
        if self.given is not None:
            return self.given, number
        return self.disks.newest_metadata(directory)[1], number
