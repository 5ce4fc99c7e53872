"""Which log directories belong to one node, and what is known of their cluster: worked out once, by what the files
state. Log directories that no file distinguishes are taken in the order of their real paths, so that the order of a
command's paths, and how they are written, change nothing.

Two directories are of one node if they have the same cluster.id and node.id, and are not copies of each other. A copy
has the same directory.id, which Kafka writes since 3.7, and a live partition of the same name, which a node has once,
or, of a part of the directory, checkpoints that name what is in the other part.

Source: MetaPropertiesEnsemble; RegisterBrokerRecord.logDirs (KIP-858)."""

from __future__ import annotations

__lazy_modules__ = {"kdump.cluster.node_ids"}

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, islice
from math import inf
from typing import TYPE_CHECKING

from kdump.cluster.metadata_copies import MetadataCopies
from kdump.cluster.node_ids import node_ids
from kdump.format.numbers import parse_int
from kdump.io import file_system
from kdump.io.directory_listing import is_url, real_path
from kdump.io.errors import SourceError
from kdump.io.run import PLAIN_RUN, QUIET_RUN, Limits, Run
from kdump.kafka.server_properties import ServerProperties
from kdump.kafka.small_files import topic_id
from kdump.log.find_directories import find_directories
from kdump.log.internal_topics import METADATA_LOG, METADATA_TOPIC, REMOTE_METADATA_TOPIC, TRANSACTION_TOPIC
from kdump.log.live_files import FileWatch, Open, open_window
from kdump.log.log_directory import LogDirectory, Place, directory_at
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import UnlistedCollector

if TYPE_CHECKING:  # most commands need neither
    from kdump.cluster.remote_log import RemoteLog
    from kdump.cluster.transaction_coordinator import TransactionCoordinatorState
    from kdump.state.metadata_image import MetadataImage

LOOK_AGAIN = 1.0
"""Seconds after which the copies of a cluster's metadata are looked at again: a broker may have written since."""


@dataclass
class Node:
    """A node's log directories. `ids`: what one of them states; `copy_of`: if they are copies of those of another Node
    with the same IDs, the path of the other one of each."""

    directories: list[LogDirectory] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)
    copy_of: dict[str, str] = field(default_factory=dict)

    @property
    def is_copy(self) -> bool:
        return bool(self.copy_of)

    @property
    def node_id(self) -> int | None:
        return parse_int(self.ids.get("node.id"))

    def logs_of(self, topic: str) -> list[str]:
        """Return the paths of the live partitions of a topic."""
        every = (partition for directory in self.directories for partition in directory.partitions)
        return [partition.path for partition in every if partition.topic == topic and not partition.state]

    def coordinator(self, metadata: MetadataImage | None, limits: Limits) -> TransactionCoordinatorState | None:
        """Return the transactions in the node's coordinator logs; None if it has none."""
        from kdump.cluster.transaction_coordinator import read_coordinator

        count = None if metadata is None else metadata.partition_count(TRANSACTION_TOPIC)
        return read_coordinator(self.logs_of(TRANSACTION_TOPIC), count, limits)

    def remote_log(self, metadata: MetadataImage | None, limits: Limits) -> RemoteLog:
        """Return how far the partitions of tiered topics are copied to remote storage, as far as this node shows."""
        from kdump.cluster.remote_log import read_remote_log

        count = None if metadata is None else metadata.partition_count(REMOTE_METADATA_TOPIC)
        return read_remote_log(self.logs_of(REMOTE_METADATA_TOPIC), count, limits)

    @property
    def cluster_id(self) -> str | None:
        return self.ids.get("cluster.id")


class Disks:
    """What is on the disks of a run, which is searched when it is first needed. `copies`: the metadata in the log
    directories; `unlisted`: directories that cannot be listed or do not exist, each of which may be another one;
    `server`: the server.properties that were given, or that of the only node, None if they are not known; `servers`:
    those that were found for each node."""

    def __init__(
        self,
        found: Iterable[Place],
        open_: Open = open_window,
        run: Run = QUIET_RUN,
        unlisted: Sequence[str] = (),
        server: ServerProperties | None = None,
        servers: Sequence[ServerProperties] = (),
    ) -> None:
        self._searched = found
        self._unlisted = list(unlisted)
        self._open, self.server, self.servers = open_, server, tuple(servers)
        self.copies = MetadataCopies(run.limits)
        self._looks: dict[str, tuple[float, FileWatch, MetadataImage | None]] = {}
        """When all copies of a cluster were looked at, and what is in the newest."""

    @classmethod
    def at(
        cls,
        paths: Iterable[str],
        run: Run = QUIET_RUN,
        *,
        open_: Open = open_window,
        nested: bool = True,
        server: ServerProperties | None = None,
        servers: Sequence[ServerProperties] = (),
    ) -> Disks:
        """Return what is at or below the paths. Calls `run.unreadable` for each path without Kafka files, and for what
        cannot be listed. `nested`: also look below log directories, which lists all their partitions."""
        disks = cls((), open_, run, (), server, servers)
        disks._searched = disks._search(list(paths), run, nested)
        return disks

    def _search(self, paths: list[str], run: Run, nested: bool) -> Iterator[Place]:
        collector = UnlistedCollector(run)
        listed = []
        for path in paths:
            here = None if nested or path == "-" or is_url(path) else directory_at(path)
            try:
                for place in find_directories(path, collector.run) if here is None else (here,):
                    listed.append(place.path)
                    yield place
            except SourceError as error:
                run.unreadable(error)
        self._unlisted = unlisted(paths, listed, collector)

    @cached_property
    def found(self) -> list[Place]:
        """Log directories, partitions and files, in the order in which they were found."""
        return list(self._searched)

    def configure(self, servers: Sequence[ServerProperties]) -> None:
        """Take what each server.properties that was found next to the directories states of them."""
        self.servers = tuple(servers)
        if len(servers) == len(self.nodes) == 1:
            self.server = servers[0]

    def server_of(self, *paths: str) -> ServerProperties | None:
        """Return the server.properties of the node with these log directories; None if they are not known."""
        return next((server for server in self.servers if any(map(server.names, paths))), self.server)

    def has_logs(self, directory: LogDirectory) -> bool:
        """Return True if its node loads logs from a log directory: by the server.properties that names it; if none
        does, as far as its files show."""
        server = self.server_of(directory.path)
        if server is not None and server.names(directory.path):
            return server.has_logs(directory.path)
        return not directory.seems_only_metadata

    @cached_property
    def directories(self) -> list[LogDirectory]:
        return list({place.path: place for place in self.found if isinstance(place, LogDirectory)}.values())

    @property
    def unlisted(self) -> list[str]:
        _ = self.found  # the search ends with them
        return self._unlisted

    @cached_property
    def _ids(self) -> dict[str, dict[str, str]]:
        return {directory.path: node_ids(directory, self._open) for directory in self.directories}

    def ids(self, directory: LogDirectory) -> dict[str, str]:
        """Return what the log directory's meta.properties states."""
        stated = self._ids.get(directory.path)
        return node_ids(directory, self._open) if stated is None else stated

    @cached_property
    def nodes(self) -> list[Node]:
        """The nodes in the order of their IDs, and the directories of each in the order of their real paths."""
        nodes: list[Node] = []
        for directory in sorted(self.directories, key=_order):
            original = None
            for node in nodes:
                apart = next((other for other in node.directories if not self._belong_together(directory, other)), None)
                if apart is None:
                    break
                if original is None and self._of_one_node(directory, apart):
                    original = apart.path
            else:
                _, node_id = self._node_key(directory)
                node = Node([], self.ids(directory) | ({} if node_id is None else {"node.id": node_id}))
                nodes.append(node)
            node.directories.append(directory)
            if original is not None:
                node.copy_of[directory.path] = original
        nodes = self._with_nameless(nodes)
        return sorted(nodes, key=lambda node: (node.node_id is None, node.node_id, _order(node.directories[0])))

    @cached_property
    def clusters(self) -> dict[str, list[LogDirectory]]:
        """The log directories by cluster, in the order of their node IDs. A cluster is identified by its ID or, if no
        directory states it, by the path of its first directory. Those that do not state theirs are of the cluster whose
        topics they have; if nothing shows it, of the only one."""
        clusters: dict[str, list[LogDirectory]] = {}
        nameless: list[LogDirectory] = []
        numbers = {each.path: parse_int(self.ids(each).get("node.id")) for each in self.directories}
        for directory in sorted(
            self.directories, key=lambda each: (numbers[each.path] is None, numbers[each.path] or 0, _order(each))
        ):
            cluster = self.ids(directory).get("cluster.id")
            (clusters.setdefault(cluster, []) if cluster else nameless).append(directory)
        named = {cluster: tuple(directories) for cluster, directories in clusters.items()}
        unknown: dict[str, list[LogDirectory]] = {}
        for directory in nameless:
            cluster = self._cluster_with_topics(directory, named)
            if cluster is not None:
                clusters[cluster].append(directory)
                continue
            other = self._cluster_with_topics(directory, unknown)
            unknown.setdefault(real_path(directory.path) if other is None else other, []).append(directory)
        return clusters | unknown

    def _cluster_with_topics(
        self, directory: LogDirectory, clusters: Mapping[str, Sequence[LogDirectory]]
    ) -> str | None:
        """Return the cluster whose topics a log directory has; if nothing shows it, the only one."""
        shared = {cluster: self._has_same_topics(directory, others) for cluster, others in clusters.items()}
        those = [cluster for cluster, is_same in shared.items() if is_same]
        if not those and len(shared) == 1:
            those = [cluster for cluster, is_same in shared.items() if is_same is None]
        return those[0] if len(those) == 1 else None

    def _has_same_topics(self, directory: LogDirectory, others: Sequence[LogDirectory]) -> bool | None:
        """Return True if a topic has the same ID in a log directory and in the others, False if all that are in both
        have different ones, None if no ID shows it."""
        own, theirs = _live_topics([directory]), _live_topics(others)
        ids: list[tuple[str | None, str | None]] = []
        for topic in own.keys() & theirs:
            ids.append((topic_id(own[topic]), topic_id(theirs[topic])))
            if ids[-1][0] == ids[-1][1] is not None:
                return True
        _, newest = self.copies.newest([each.path for each in others])
        if newest is not None and newest.by_id:
            _, replayed = self.copies.newest([directory.path])
            if replayed is not None and replayed.by_id:
                return bool(replayed.by_id.keys() & newest.by_id)
            for topic in own.keys() & newest.topics:
                ids.append((topic_id(own[topic]), newest.topics[topic].id))
        same = [one == other for one, other in ids if None not in (one, other)]
        return any(same) if same else None

    @cached_property
    def copy_of(self) -> dict[str, str]:
        """The log directories that are copies of others, each with the path of the other."""
        return {path: original for node in self.nodes for path, original in node.copy_of.items()}

    def counts_twice(self, partition: str) -> bool:
        """Return True if the partition at a path is in a copy of a log directory, and in the other one, too."""
        directory, name = os.path.split(partition)
        return name in self._originals.get(directory, ())

    @cached_property
    def _originals(self) -> dict[str, frozenset[str]]:
        """Names of the partitions in the directory of which another one is a copy, by the path of the copy."""
        directories = {directory.path: directory for directory in self.directories}
        return {
            copied: frozenset(partition.name for partition in directories[original].candidates)
            for copied, original in self.copy_of.items()
        }

    def one_cluster(self) -> str | None:
        """Return the cluster ID of the log directories; None if none states it. Raises SourceError for those of
        several clusters."""
        by_cluster: dict[str, str] = {}
        for directory in self.directories:
            cluster = self.ids(directory).get("cluster.id")
            if cluster:
                by_cluster.setdefault(cluster, directory.path)
        if len(by_cluster) > 1:
            names = ", ".join(f"{path} of {cluster}" for cluster, path in by_cluster.items())
            raise SourceError(f"these log directories are of different clusters: {names}; pass those of one")
        return next(iter(by_cluster), None)

    def refuse_other_clusters(self) -> None:
        """Raise SourceError if log directories are, or seem to be, of several clusters."""
        self.one_cluster()
        if len(self.clusters) > 1:
            (first, *_), (other, *_) = islice(self.clusters.values(), 2)
            raise SourceError.at(
                other.path,
                f"no meta.properties states its cluster, and its topics are not those of {first.path}; "
                "pass log directories of one cluster",
            )

    def remote_log(self, metadata: MetadataImage | None, directory: LogDirectory) -> RemoteLog:
        """Return what __remote_log_metadata on the disks of a log directory's node has."""
        return self.node_of(directory).remote_log(metadata, Limits())

    def whole_remote_log(self, metadata: MetadataImage | None, limits: Limits) -> RemoteLog:
        """Return what __remote_log_metadata on all these disks, of one cluster, has: of each of its partitions, the
        longest copy."""
        from kdump.cluster.remote_log import longest_copies, read_remote_log

        count = None if metadata is None else metadata.partition_count(REMOTE_METADATA_TOPIC)
        every = [path for node in self.nodes for path in node.logs_of(REMOTE_METADATA_TOPIC)]
        return read_remote_log(longest_copies(every), count, limits)

    def node_of(self, directory: LogDirectory) -> Node:
        """Return the node of a log directory."""
        node = self._nodes_by_path.get(real_path(directory.path))
        return Node([directory], self.ids(directory)) if node is None else node

    def node_id(self, directory: LogDirectory) -> int | None:
        """Return the node ID of a log directory; None if it is unknown."""
        return self.node_of(directory).node_id

    def others(self, directory: LogDirectory) -> list[LogDirectory]:
        """Return the node's other log directories."""
        return [other for other in self.node_of(directory).directories if other.path != directory.path]

    def below(self, path: str) -> list[LogDirectory]:
        """Return the log directory at a path of the command or, if there is none, those below it."""
        here = [each for each in self.directories if each.path == path]
        return here or [each for each in self.directories if each.path.startswith(f"{path.rstrip('/')}/")]

    def cluster_at(self, path: str) -> str | None:
        """Return what identifies the cluster of a log directory; None if it is not one of these."""
        return self._clusters_by_path.get(real_path(path))

    @cached_property
    def _clusters_by_path(self) -> dict[str, str]:
        return {real_path(each.path): cluster for cluster, directories in self.clusters.items() for each in directories}

    def of_cluster(self, *paths: str) -> list[str]:
        """Return the paths of all log directories of the clusters of these log directories, these among them."""
        clusters = {path: self.cluster_at(path) for path in paths}
        others = [path for path, cluster in clusters.items() if cluster is None]
        every = (self.clusters[cluster] for cluster in dict.fromkeys(clusters.values()) if cluster is not None)
        return [*others, *(directory.path for directories in every for directory in directories)]

    def newest_metadata(self, *paths: str, run: Run = PLAIN_RUN) -> tuple[str, MetadataImage | None]:
        """Return the newest known state of the cluster of these log directories, by default of all, and the path of the
        log directory that has it; "" and None if there is none."""
        paths = paths or tuple(directory.path for directory in self.directories)
        return self.copies.newest(self.of_cluster(*paths), run)

    def is_of_older_topic(self, checkpoint: str, directory: str, topic: str | None) -> bool:
        """Return True if a topic was created, by the metadata, after a checkpoint was last written: what that states of
        its name is of one that was deleted before. `directory`: of its partition. A copy of the files never makes the
        checkpoint older."""
        try:
            written = file_system.stat(checkpoint).st_mtime
            is_newer = file_system.stat(os.path.join(directory, "partition.metadata")).st_mtime > written
        except OSError:
            return False
        source, metadata = self.newest_metadata(os.path.dirname(checkpoint)) if is_newer else ("", None)
        described = metadata.topics.get(topic or "") if metadata is not None else None
        created = self.copies.topic_times(source, described.id)[0] if described is not None else None
        return created is not None and created > written * 1000

    def topic_history(self, topic_id: str, path: str) -> tuple[bool, bool | None]:
        """Return whether the newest metadata log of the cluster of a log directory created the topic with this ID, and
        whether it deleted it; None if that is unknown: records are missing, or ZooKeeper had topics before it."""
        source, metadata = self.newest_metadata(path)
        if metadata is None or topic_id in metadata.by_id:
            return metadata is not None, None if metadata is None else False
        created, deleted, is_complete = self.copies.topic_times(source, topic_id)
        is_complete &= metadata.zk_migration.get("", "NONE") == "NONE"
        return created is not None, deleted is not None or (False if created is not None or is_complete else None)

    def watched_metadata(self, path: str) -> tuple[FileWatch, MetadataImage | None]:
        """Return the newest known state of the cluster of a log directory, and a watch of the logs that it was taken
        from. For all its log directories it is that of one look at all copies, which is repeated after LOOK_AGAIN."""
        cluster = self.cluster_at(path) or path
        looked, watch, image = self._looks.get(cluster, (-inf, FileWatch(), None))
        if time.monotonic() - looked > LOOK_AGAIN:
            looked, watch, paths = time.monotonic(), FileWatch(), self.of_cluster(path)
            for each in paths:
                watch.look_at_log(os.path.join(each, METADATA_LOG))
            image = self.copies.newest(paths)[1]
            self._looks[cluster] = looked, watch, image
        return watch, image

    @cached_property
    def _nodes_by_path(self) -> dict[str, Node]:
        return {real_path(directory.path): node for node in self.nodes for directory in node.directories}

    @cached_property
    def _owners(self) -> dict[str, str]:
        """The node that has registered a directory.id, if nodes differ: a meta.properties may have a wrong node.id."""
        owners: dict[str, str] = {}
        clusters: dict[str, list[str]] = {}
        nodes: dict[str, set[str | None]] = {}
        for path, ids in self._ids.items():
            if "cluster.id" in ids:
                clusters.setdefault(ids["cluster.id"], []).append(path)
                nodes.setdefault(ids["cluster.id"], set()).add(ids.get("node.id"))
        for cluster, paths in clusters.items():
            _, newest = self.copies.newest(paths) if len(nodes[cluster]) > 1 else ("", None)
            for number, directories in newest.broker_directories.items() if newest is not None else ():
                owners.update(dict.fromkeys(directories, str(number)))
        return owners

    def _of_one_node(self, one: LogDirectory, other: LogDirectory) -> bool:
        mine, theirs = self._node_key(one), self._node_key(other)
        return None not in mine and mine == theirs

    def _node_key(self, directory: LogDirectory) -> tuple[str | None, str | None]:
        ids = self.ids(directory)
        return ids.get("cluster.id"), self._owners.get(ids.get("directory.id", ""), ids.get("node.id"))

    def _belong_together(self, one: LogDirectory, other: LogDirectory) -> bool:
        """Return True if two log directories are of one node, and not copies of each other."""
        if not self._of_one_node(one, other):
            return False
        ids = [stated.get("directory.id") for stated in (self.ids(one), self.ids(other))]
        if None in ids:
            return not _overlap(one, other)
        return ids[0] != ids[1] or not (_overlap(one, other) or _parts(one, other))

    def _with_nameless(self, nodes: list[Node]) -> list[Node]:
        """Return the nodes. If only one is named, and no partition is in two directories, the others of its cluster are
        its log directories whose meta.properties is missing or damaged."""
        named = [node for node in nodes if node.ids.get("node.id") is not None]
        lost = [node for node in nodes if node not in named and (not named or _is_of_node(node.directories[0]))]
        if len(named) > 1 or len(named) + len(lost) < 2:
            return nodes
        cluster = self.cluster_at((named or lost)[0].directories[0].path)
        lost = [node for node in lost if self.cluster_at(node.directories[0].path) == cluster]
        joined = [directory for node in (*named, *lost) for directory in node.directories]
        if any(_overlap(*pair) for pair in combinations(joined, 2)):
            return nodes
        one = Node(sorted(joined, key=_order), named[0].ids if named else {})
        return [one, *(node for node in nodes if node not in named and node not in lost)]


def unlisted(paths: Iterable[str], found: Iterable[str], collector: UnlistedCollector) -> list[str]:
    """Return the directories that cannot be listed, or do not exist, each of which may be another log directory of a
    broker. `paths`: those of the command; `found`: those of what is in them; `collector`: of the search."""
    return [
        *collector.apart_from(found),
        *(path for path in paths if path != "-" and not is_url(path) and not file_system.exists(path)),
    ]


def _is_of_node(directory: LogDirectory) -> bool:
    """Return True if files of a node's own are here, and not only copies of partitions."""
    has_metadata = any(partition.topic == METADATA_TOPIC for partition in directory.candidates)
    return has_metadata or not directory.is_copy_of_partitions


def _overlap(one: LogDirectory, other: LogDirectory) -> bool:
    """Return True if both have a live partition of the same name. The metadata log counts only if one of them has
    nothing else: it is still there after metadata.log.dir was changed."""
    names, others = ({each.name for each in place.candidates if not each.state} for place in (one, other))
    both = names & others
    return bool(both - {METADATA_LOG}) or (bool(both) and (names == both or others == both))


def _parts(one: LogDirectory, other: LogDirectory) -> bool:
    """Return True if the checkpoints of each name partitions in the other: copies of parts of one directory."""
    from kdump.cluster.missing_partitions import checkpointed_partitions, name_of  # most disks need none of it

    return all(
        {name_of(key) for key in checkpointed_partitions(names.files).keys} & {each.name for each in place.candidates}
        for names, place in ((one, other), (other, one))
    )


def _live_topics(directories: Iterable[LogDirectory]) -> dict[str, PartitionDirectory]:
    """Return a live partition of each topic in log directories."""
    every = (partition for directory in directories for partition in directory.partitions)
    return {each.topic: each for each in every if each.topic and each.topic != METADATA_TOPIC and not each.state}


def _order(directory: LogDirectory) -> tuple[str, str]:
    return real_path(directory.path), directory.path
