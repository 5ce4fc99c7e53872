"""The cluster of a log directory: its configs, and the offsets of its partitions that are in remote storage."""

from __future__ import annotations

import os
from collections.abc import Iterator

from kdump.check.options import Options
from kdump.cluster.disks import Disks, Node
from kdump.cluster.find_state_logs import metadata_at
from kdump.cluster.remote_log import RemoteLog
from kdump.io.directory_listing import is_url, parent
from kdump.io.errors import SourceError
from kdump.kafka import checkpoint_file
from kdump.log.log_directory import LogDirectory, directory_at
from kdump.log.partition_directory import PartitionDirectory
from kdump.state.metadata_image import MetadataImage

CHECKPOINTS = ("log-start-offset-checkpoint", "replication-offset-checkpoint", "cleaner-offset-checkpoint")
"""The checkpoints that retention and the log cleaner use."""


class Clusters:
    """The newest known metadata of the cluster of each log directory. `named`: path from which to read it instead: a
    log directory, __cluster_metadata-0, or a metadata snapshot; `disks`: the log directories."""

    def __init__(self, named: str | None, disks: Disks, options: Options) -> None:
        self.disks, self.options = disks, options
        self._read: dict[str, tuple[MetadataImage | None, int | None]] = {}
        self._remote: dict[str, RemoteLog] = {}
        self._checkpoints: dict[str, list[str]] = {}
        self._nodes: dict[str, Node] = {}
        self._offline: dict[str, str] = {}
        self._moves: dict[str, dict[tuple[str | None, int | None], str]] = {}
        self.given: MetadataImage | None = None
        self.missing: frozenset[str] | None = None
        """The IDs of segments that have no object in remote storage; None if it was not asked."""
        if named is not None:
            self.given = metadata_at(named, options)

    def of(self, directory: str) -> tuple[MetadataImage | None, int | None]:
        """Return the metadata for the partitions in a directory, and the ID of its broker; None for what is unknown."""
        if directory not in self._read:
            self._read[directory] = self._of(directory)
        return self._read[directory]

    def remote(self, directory: str) -> RemoteLog:
        """Return how far the partitions of tiered topics are copied to remote storage, as far as this disk shows."""
        if directory not in self._remote:
            self._remote[directory] = self._node(directory).remote_log(self.of(directory)[0], self.options.limits)
        return self._remote[directory]

    def moves_to(self, partition: PartitionDirectory) -> str:
        """Return the -future directory that a partition of a broker is moved to, which may be this one; empty if there
        is none, or nothing to move."""
        if partition.topic is None or partition.path == "-" or is_url(partition.path):
            return ""
        if partition.state not in ("", "future"):
            return ""
        above = parent(partition.path)
        if above not in self._moves:
            self._moves[above] = self._moves_of_node(above)
        return self._moves[above].get((partition.topic, partition.partition), "")

    def offline_id(self, directory: str) -> str:
        """Return the ID of a log directory that its broker has taken offline; empty for any other."""
        if directory not in self._offline:
            metadata, number = self.of(directory)
            node = self._node(directory)
            place = directory_at(directory) if len(node.directories) > 1 else None
            ids = self.disks.ids(place) if isinstance(place, LogDirectory) else node.ids
            own = ids.get("directory.id")
            is_offline = metadata is not None and metadata.is_offline(number, own)
            self._offline[directory] = own if own and is_offline else ""
        return self._offline[directory]

    def _moves_of_node(self, directory: str) -> dict[tuple[str | None, int | None], str]:
        """Return the -future directories of the node of a log directory whose partitions are live there, too."""
        every = [log for place in self._node(directory).directories for log in place.partitions]
        live = {(log.topic, log.partition) for log in every if not log.state}
        future = {(log.topic, log.partition): log.path for log in every if log.state == "future"}
        return {key: path for key, path in future.items() if key in live}

    def checkpoint_problems(self, directory: str) -> list[str]:
        """Return the first invalid line of each of the directory's checkpoints. Calls `options.unreadable` for a file
        that cannot be read, once."""
        if directory not in self._checkpoints:
            self._checkpoints[directory] = list(self._bad_lines(directory))
        return self._checkpoints[directory]

    def _bad_lines(self, directory: str) -> Iterator[str]:
        for name in CHECKPOINTS if directory and not is_url(directory) else ():
            try:
                checkpoint_file.offsets(os.path.join(directory, name))
            except SourceError as error:
                self.options.unreadable(error)
            except checkpoint_file.BadLine as error:
                yield f"{name}, byte {error.position}: {error}"

    def _of(self, directory: str) -> tuple[MetadataImage | None, int | None]:
        node = self._node(directory)
        if self.given is not None or not node.directories:
            return self.given, node.node_id
        return self.disks.newest_metadata(directory)[1], node.node_id

    def _node(self, directory: str) -> Node:
        """Return the node of a log directory; one without directories if it is none."""
        if directory not in self._nodes:
            place = directory_at(directory) if directory and not is_url(directory) else None
            self._nodes[directory] = self.disks.node_of(place) if isinstance(place, LogDirectory) else Node()
        return self._nodes[directory]
