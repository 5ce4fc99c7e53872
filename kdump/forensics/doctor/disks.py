"""What all questions share: the log directories, listed once each, the brokers that they belong to, and the cluster's
metadata, read once."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

from kdump.check.engine.units import CheckUnit, units_of
from kdump.check.options import Options
from kdump.forensics.doctor.answers import ExaminedDisk
from kdump.forensics.find_partitions import PartitionInput, partitions_of
from kdump.forensics.restart.lock_holder import lock_holder
from kdump.forensics.space.brokers import BrokerDirectories
from kdump.format.numbers import parse_int
from kdump.log import file_system
from kdump.log.directory_listing import is_directory
from kdump.log.errors import SourceError, is_gone
from kdump.log.fault_tolerant import careful_source
from kdump.log.find_directories import find_directories
from kdump.log.live_files import SeenDirectory
from kdump.log.log_directory import LogDirectory, Place, directory_at
from kdump.log.partition_directory import PartitionDirectory, listing_of_names
from kdump.log.paths import UnlistedCollector
from kdump.state.directory_summary import had_clean_shutdown
from kdump.state.metadata_cache import MetadataCache
from kdump.state.metadata_image import MetadataImage
from kdump.state.newest_metadata import newest_metadata
from kdump.state.release_evidence import disk_release
from kdump.state.siblings import same_broker, unlisted, with_node_id
from kdump.state.small_files import properties


@dataclass
class Broker:
    """The paths of one broker: its log directories, and what may be one of them and is not there."""

    paths: list[str]
    directories: list[LogDirectory] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)

    @property
    def as_others(self) -> BrokerDirectories:
        """The broker, as one whose disks may have copies of another's partitions."""
        return BrokerDirectories(parse_int(self.ids.get("node.id")), self.ids.get("cluster.id"), self.directories)

    @property
    def quoted(self) -> str:
        """The paths, for a command line."""
        return " ".join(map(shlex.quote, self.paths))


@dataclass
class Disks:
    """The disks to examine. Raises SourceError if there is nothing of Kafka's. `unread`: what could not be listed."""

    paths: Sequence[str]
    options: Options
    found: list[Place] = field(default_factory=list)
    brokers: list[Broker] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.options = replace(self.options, open_source=careful_source)
        self.metadata_of = MetadataCache()
        self.paths = list(dict.fromkeys(self.paths))
        self._collector = UnlistedCollector(self._on_unreadable)
        self._empty: list[str] = []
        """Paths without files of Kafka's: one of them may be a log directory that failed, or a new one."""
        by_path = {path: self._places(path) for path in self.paths}
        self.found = [place for places in by_path.values() for place in places]
        if not self.found:
            raise SourceError(self.unread[0] if self.unread else f"{self.paths[0]}: nothing of Kafka's here or below")
        self._group(by_path)
        if len(self.brokers) != 1:
            self.unread += [f"{path}: no files of Kafka's, or missing" for path in self._empty]

    @property
    def directories(self) -> list[LogDirectory]:
        return [place for place in self.found if isinstance(place, LogDirectory)]

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
            maybe = unlisted(self.paths, (place.path for place in self.found), self._collector)
            for unit in units_of(self.found, self.options, maybe, self.metadata_of):
                units.append(unit)
                yield unit

        places, _ = partitions_of(each(), self.paths, self.options, self._on_unreadable, everything=True)
        return units, places

    def disks(self) -> Iterator[ExaminedDisk]:
        """Yield what the root of each log directory shows."""
        for broker in self.brokers:
            own = [each.path for each in broker.directories]
            read = (self.metadata_of(path, self.options.limits) for path in own)
            newer = disk_release(own, next(filter(None, read), None)).newer
            for each in broker.directories:
                ids = self._ids[id(each)]
                yield ExaminedDisk(
                    each.path,
                    ids.get("cluster.id"),
                    ids.get("node.id"),
                    had_clean_shutdown(each),
                    len(each.candidates),
                    lock_holder(each.path),
                    newer,
                )

    def metadata(self) -> tuple[str, MetadataImage | None]:
        """Return the newest copy of the metadata with topics, and the path of its log directory; "" and None if there
        is none."""
        paths = (each.path for each in self.directories)
        source, newest = newest_metadata((path, self.metadata_of(path, self.options.limits)) for path in paths)
        return (source, newest) if newest is not None and newest.topics else ("", None)

    def note_listing(self, path: str, seen: SeenDirectory) -> None:
        """Use what a startup's prediction has listed of a partition, so that it is not listed again."""
        place = self._unlisted.pop(path, None)
        if place is not None and place.listed is None and seen.error is None:
            place.listed = listing_of_names(
                [name for name in seen.identities if name and name not in seen.directories],
                [*seen.directories],
                seen.identities.get(""),
            )

    @cached_property
    def _unlisted(self) -> dict[str, PartitionDirectory]:
        return {each.path: each for directory in self.directories for each in directory.candidates}

    # --- the brokers ---

    def _places(self, path: str) -> list[Place]:
        if not is_directory(path):
            if path == "-" or file_system.exists(path):
                raise SourceError(f"{path}: not a directory; pass a broker's log directory")
            self._empty.append(path)
            return []
        place = directory_at(path)
        if isinstance(place, LogDirectory):
            return [place]  # what is in its partitions is listed when it is needed
        try:
            return list(find_directories(path, self._collector))
        except SourceError:
            self._empty.append(path)
            return []

    def _group(self, by_path: dict[str, list[Place]]) -> None:
        self._ids = {id(each): with_node_id(properties(each.files.get("meta.properties"))) for each in self.directories}
        self._by_path = by_path
        for directory in self.directories:
            ids = self._ids[id(directory)]
            for broker in self.brokers:
                if all(self._belong_together(directory, each) for each in broker.directories):
                    broker.directories.append(directory)
                    break
            else:
                self.brokers.append(Broker([], [directory], ids))
        named = [each for each in self.brokers if each.ids.get("node.id") is not None]
        every = [directory for broker in self.brokers for directory in broker.directories]
        # If meta.properties is missing or damaged: directories with a partition in common are copies of each other.
        if len(named) <= 1 and len(self.brokers) > 1 and not any(_overlap(*pair) for pair in combinations(every, 2)):
            self.brokers = [Broker([], every, named[0].ids if named else {})]
        for broker in self.brokers:
            broker.paths = self._paths_of(broker)

    def _belong_together(self, one: LogDirectory, other: LogDirectory) -> bool:
        """Return True if two log directories are of one broker, and not copies of one."""
        ids, others = self._ids[id(one)], self._ids[id(other)]
        if same_broker(ids, others):
            return True
        if "directory.id" in ids or "directory.id" in others:  # not there before KRaft
            return False
        keys = ("cluster.id", "node.id")
        return not _overlap(one, other) and all(
            ids.get(key) is not None and ids.get(key) == others.get(key) for key in keys
        )

    def _paths_of(self, broker: Broker) -> list[str]:
        """Return the paths as they were given, where each stands for one log directory of the broker."""
        found = []
        for path, places in self._by_path.items():
            here = [each for each in places if isinstance(each, LogDirectory)]
            own = [each for each in here if any(each is directory for directory in broker.directories)]
            found += [path] if len(own) == len(here) == 1 else [each.path for each in own]
            if path in self._empty and len(self.brokers) == 1:
                found.append(path)
        return found

    def _on_unreadable(self, error: SourceError) -> None:
        text = str(error)
        if not is_gone(error) and text not in self.unread:
            self.unread.append(text)


def _overlap(one: LogDirectory, other: LogDirectory) -> bool:
    """Return True if both have a live partition of the same name."""
    names = {each.name for each in one.candidates if not each.state}
    return any(each.name in names for each in other.candidates if not each.state)
