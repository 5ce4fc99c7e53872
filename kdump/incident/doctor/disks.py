"""What all questions share: the log directories, listed once each, the brokers that they belong to, and the cluster's
metadata, read once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from kdump.check.engine.units import CheckUnit, units_of
from kdump.check.options import Options
from kdump.cluster import disks as cluster
from kdump.cluster.directory_summary import had_clean_shutdown
from kdump.cluster.disks import Node
from kdump.cluster.release_evidence import disk_release
from kdump.incident.doctor.answer import ExaminedDisk
from kdump.incident.doctor.examination import Examination
from kdump.io import file_system
from kdump.io.command_line_paths import missing
from kdump.io.directory_listing import is_directory, real_path
from kdump.io.errors import SourceError, is_gone
from kdump.io.fault_tolerant import careful_source
from kdump.kafka.server_properties import ServerProperties
from kdump.log.find_directories import find_directories
from kdump.log.live_files import SeenDirectory
from kdump.log.log_directory import LogDirectory, Place, directory_at
from kdump.log.partition_directory import PartitionDirectory, listing_of_names
from kdump.log.paths import UnlistedCollector
from kdump.questions.find_partitions import PartitionInput, is_away, partitions_of
from kdump.questions.restart_plan.node.directories import NOT_LOG_DIRECTORY, is_other_file
from kdump.questions.retention.clusters import Clusters
from kdump.questions.retention.partition import OnePartition, RetentionAnswer, RetentionQuery
from kdump.state.metadata_image import MetadataImage


@dataclass
class Broker(Node):
    """A broker. `paths`: its log directories as they were given, and what may be one of them and is not there."""

    paths: list[str] = field(default_factory=list)


class Disks(cluster.Disks):
    """The disks to examine. Raises SourceError if there is nothing of Kafka's. `unread`: what could not be listed."""

    def __init__(self, paths: Iterable[str], options: Options) -> None:
        self.options = replace(options, open_source=careful_source, unreadable=self._note_unread)
        self.paths = list(dict.fromkeys(paths))
        self.unread: list[str] = []
        self._collector = UnlistedCollector(self.options)
        self._empty: list[str] = []
        """Paths without files of Kafka's: one of them may be a log directory that failed, or a new one."""
        self._links: dict[str, list[str]] = {}
        """By the path of a log directory, others that lead to the same one: a broker takes each for one of its own."""
        places = [*self._without_links(place for path in self.paths for place in self._places(path))]
        if not places:
            raise self._nothing()
        maybe = cluster.unlisted(self.paths, (place.path for place in places), self._collector)
        super().__init__(places, self.options.open, options, maybe, options.server, options.servers)
        self.brokers = [Broker(node.directories, node.ids, node.copy_of, self._paths_of(node)) for node in self.nodes]
        if len(self.brokers) != 1:
            self.unread += [f"{path}: no files of Kafka's, or missing" for path in self._empty]

    def configure(self, servers: Sequence[ServerProperties]) -> None:
        super().configure(servers)
        self.options = replace(self.options, server=self.server, servers=self.servers)

    def _nothing(self) -> SourceError:
        first = self.paths[0]
        if not self.unread and not file_system.lexists(first):
            return missing(first)
        if file_system.isfile(first):
            return SourceError.at(first, NOT_LOG_DIRECTORY)
        return SourceError(self.unread[0] if self.unread else f"{first}: nothing of Kafka's here or below")

    @property
    def units(self) -> list[CheckUnit]:
        """The units of a check of everything."""
        return self._units_and_places[0]

    @property
    def places(self) -> list[PartitionInput]:
        """The partitions, for questions about their batches; without the metadata log."""
        return self._units_and_places[1]

    @cached_property
    def _units_and_places(self) -> tuple[list[CheckUnit], list[PartitionInput]]:
        """Both in one pass, because the files of a partition are grouped again each time. Lists each partition that has
        not been listed."""
        units: list[CheckUnit] = []

        def each() -> Iterator[CheckUnit]:
            for unit in units_of(self, self.options):
                units.append(unit)
                yield unit

        return units, partitions_of(each(), self.paths, self.options, everything=True)

    def disks(self) -> Iterator[ExaminedDisk]:
        """Yield what the root of each log directory shows."""
        for broker in self.brokers:
            own = [directory.path for directory in broker.directories]
            newer = disk_release(own, self.newest_metadata(*own)[1]).newer
            for directory in broker.directories:
                ids = self.ids(directory)
                yield ExaminedDisk(
                    directory.path,
                    ids.get("cluster.id"),
                    ids.get("node.id"),
                    had_clean_shutdown(directory),
                    len(directory.candidates),
                    directory.process,
                    newer,
                    broker.copy_of.get(directory.path),
                )

    def is_running(self, path: str) -> bool | None:
        """Return whether a broker runs on what is at a path; None if it is unknown, or differs and none does."""
        states = {directory.is_running for directory in self.below(path)}
        return True in states or (states.pop() if len(states) == 1 else None)

    def cluster_label(self, path: str) -> str:
        """Return how an answer about the cluster of a path begins: empty if there is only one cluster."""
        return path if len(self.clusters) > 1 else ""

    def brokers_of(self, directories: Sequence[LogDirectory]) -> list[Broker]:
        """Return the brokers of a cluster, given all its log directories."""
        paths = {directory.path for directory in directories}
        return [broker for broker in self.brokers if all(directory.path in paths for directory in broker.directories)]

    def metadata(self, directories: Sequence[LogDirectory]) -> tuple[str, MetadataImage | None]:
        """Return the newest metadata with topics of the cluster of these log directories, and the path of the one that
        has it; "" and None if there is none."""
        source, newest = self.newest_metadata(*(directory.path for directory in directories))
        return (source, newest) if newest is not None and newest.topics else ("", None)

    @cached_property
    def by_directory(self) -> Clusters:
        """The metadata and the remote log for the partitions in a directory, which need not be one of these disks."""
        return Clusters(None, self, self.options)

    def retention(
        self, places: Iterable[PartitionInput], on: Examination
    ) -> Iterator[tuple[PartitionInput, Iterator[RetentionAnswer]]]:
        """Yield each partition as it is now, with what retention does with it. Raises OutOfTime."""
        query = RetentionQuery((), deep=False)
        for place in places:
            place, _ = replace(place, options=on.reporting(place.options)).now()
            on.limit.raise_if_over()
            yield place, iter(()) if is_away(place) else OnePartition(place, query, self.by_directory, None).answers()

    def note_listing(self, path: str, seen: SeenDirectory) -> None:
        """Use what a startup's prediction has listed of a partition, so that it is not listed again."""
        place = self._not_listed.pop(path, None)
        if place is not None and place.listed is None and seen.error is None:
            place.listed = listing_of_names(
                [name for name in seen.identities if name and name not in seen.directories],
                [*seen.directories],
                seen.identities.get(""),
            )

    @cached_property
    def _not_listed(self) -> dict[str, PartitionDirectory]:
        return {partition.path: partition for directory in self.directories for partition in directory.candidates}

    # --- the brokers ---

    def _places(self, path: str) -> list[Place]:
        if is_other_file(path):
            raise SourceError.at(path, NOT_LOG_DIRECTORY)
        if not is_directory(path):
            self._empty.append(path)
            return []
        place = directory_at(path)
        if isinstance(place, LogDirectory):
            return [place]  # what is in its partitions is listed when it is needed
        try:
            return list(find_directories(path, self._collector.run))
        except SourceError:
            self._empty.append(path)
            return []

    def _without_links(self, places: Iterable[Place]) -> Iterator[Place]:
        """Yield the places without those that are a log directory before them by another path."""
        paths: dict[str, str] = {}
        for place in places:
            first = paths.setdefault(real_path(place.path), place.path)
            if first == place.path or not isinstance(place, LogDirectory):
                yield place
            else:
                self._links.setdefault(first, []).append(place.path)

    def _paths_of(self, node: Node) -> list[str]:
        """Return the paths as they were given, where each stands for one log directory of the node."""
        paths = []
        for path in self.paths:
            here = self.below(path)
            own = [directory for directory in here if directory in node.directories]
            paths += [path] if len(own) == len(here) == 1 else [directory.path for directory in own]
            paths += [link for directory in own for link in self._links.get(directory.path, ())]
            if path in self._empty and len(self.nodes) == 1:
                paths.append(path)
        return paths

    def _note_unread(self, error: SourceError) -> None:
        unread = str(error)
        if not is_gone(error) and unread not in self.unread:
            self.unread.append(unread)
