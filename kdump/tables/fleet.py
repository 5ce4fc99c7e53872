"""Finds log directories, partitions and files below paths, with their cluster, broker and log directory.

Segments in remote storage whose paths have only the topic ID get the name of the topic from the metadata of a cluster
on one of the disks. Without it, the column topic has the ID."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kdump.check.options import Options
from kdump.cluster.metadata_copies import MetadataCopies
from kdump.cluster.node_ids import node_ids
from kdump.io import file_system
from kdump.io.directory_listing import globbed, is_directory, is_inside, is_url, length, parent, real_path
from kdump.io.errors import SourceError, is_gone
from kdump.io.mounted_paths import mount_paths
from kdump.io.remote_paths import TOPIC_ID
from kdump.io.run import Run
from kdump.log.find_directories import find_directories
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.log_directory import META, LogDirectory, Place, directory_at
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import Target, natural, target
from kdump.tables.disk_identity import BY_NODE, BY_OPTION, BY_PATH, BY_PLACE, DiskFacts, DiskIdentity, with_copies
from kdump.tables.mounted_paths import mount_for_task, place_on_host, recorded_place, with_mounts

MAGIC = re.compile(r"[*?\[]")
LOCAL = "file://"


@dataclass(frozen=True)
class FoundDirectory:
    """A place, and its owner."""

    place: Place
    identity: DiskIdentity


@dataclass
class Fleet:
    """The places below the paths, each once. `unreadable`: paths and directories that contain nothing or cannot be
    read, with the reason. `missing`: the reasons for the given paths of which there is nothing."""

    found: list[FoundDirectory] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def recorded(self) -> Iterator[tuple[str, str | None, str | None]]:
        """Yield path, what a bundle was made of if nothing else identifies it, and broker of each place."""
        for each in self.found:
            is_by_place = each.identity.identifiedBy == BY_PLACE
            yield each.place.path, recorded_place(each.place.path) if is_by_place else None, each.identity.broker


def find(
    paths: Iterable[str], options: Options, broker: str | None = None, brokers: Mapping[str, str] | None = None
) -> Fleet:
    """Find the places below `paths`, which may contain wildcards; a place that two of them lead to is listed once.
    Problems on the disks are never raised: see `unreadable`."""
    fleet = Fleet()
    seen: dict[str, Place] = {}
    for given in paths:
        matches = expanded(given)
        if not matches:
            fleet.missing.append(f"{given}: no path matches")
            fleet.unreadable.append((given, fleet.missing[-1]))
        elif not any(map(_exists, matches)):
            unreached = ", or the store cannot be reached" if is_url(given) else ""
            fleet.missing.append(f"{given}: no such file or directory{unreached}")
        for path in matches:
            try:
                mount_paths([path])
            except SourceError as error:
                fleet.unreadable.append((path, str(error)))
                continue

            def add_unreadable(error: SourceError, path: str = path) -> None:
                if not is_gone(error):  # a broker is at work: it is no longer part of the disk
                    fleet.unreadable.append((path, str(error)))

            try:
                for place in find_directories(path, Run(unreadable=add_unreadable)):
                    seen.setdefault(real_path(place.path), place)
            except SourceError as error:
                add_unreadable(error)
    ids = {each for place in seen.values() if not isinstance(place, LogDirectory) and (each := id_of(place.topic))}
    names = topic_names((each for each in seen.values() if isinstance(each, LogDirectory)), ids) if ids else {}
    seen = {real: with_name(place, names) for real, place in seen.items()}
    directories = [real for real, place in seen.items() if not isinstance(place, Target)]
    for real, place in seen.items():
        if not any(real != other and is_inside(real, other) for other in directories):
            fleet.found.append(FoundDirectory(place, _identity(place, options, broker, brokers or {})))
    identities = with_copies(facts(each.place, each.identity) for each in fleet.found)
    fleet.found = [FoundDirectory(each.place, identity) for each, identity in zip(fleet.found, identities)]
    return fleet


def _exists(path: str) -> bool:
    return is_directory(path) or length(path) is not None if is_url(path) else file_system.lexists(path)


def expanded(path: str) -> list[str]:
    """Return the paths that match a pattern; a path without wildcards stands for itself."""
    path = path.removeprefix(LOCAL) if path.startswith(LOCAL + "/") else path
    if not MAGIC.search(path) or (not is_url(path) and os.path.lexists(path)):
        matches = [path]
    else:
        matches = sorted(globbed(path) if is_url(path) else glob.glob(path, recursive=True), key=natural)
    return [below for match in matches for below in with_mounts(match)]


def _identity(place: Place, options: Options, broker: str | None, brokers: Mapping[str, str]) -> DiskIdentity:
    above = [place.path]
    if not isinstance(place, LogDirectory):
        above = [parent(place.path)] if isinstance(place, PartitionDirectory) else []
    if isinstance(place, Target):
        above = [parent(place.path), parent(parent(place.path))]
    properties: dict[str, str] = {}
    for directory in above:
        if not properties:
            file = target(f"{directory.rstrip('/')}/{META}", source=directory)
            properties = node_ids(LogDirectory(directory, files={META: file}), options.open)
    named = properties.get("node.id")
    if named is None:
        fitting = [path for path in brokers if is_inside(place.path, path.rstrip("/"))]
        named = brokers[max(fitting, key=len)] if fitting else broker
    cluster, directory_id = properties.get("cluster.id"), properties.get("directory.id")
    by = None
    if None in (cluster, properties.get("node.id"), directory_id):
        by = BY_PLACE if recorded_place(place.path) is not None else BY_OPTION if named is not None else BY_PATH
        by = BY_NODE if cluster is not None and "node.id" in properties else by
    return DiskIdentity(cluster, named, directory_id, identifiedBy=by)


def facts(place: Place, identity: DiskIdentity) -> DiskFacts:
    """Return what a place is recognized by."""
    names: tuple[str, ...] = ()
    if isinstance(place, PartitionDirectory):
        names = (place.name,)
    elif isinstance(place, LogDirectory) and identity.logDirectory is None:
        names = tuple(partition.name for partition in place.partitions if not partition.state)
    on_host = place_on_host(place.path) if identity.cluster is None else None
    return DiskFacts(place.path, identity, isinstance(place, LogDirectory), names, on_host)


def read_names(paths: Sequence[str], ids: frozenset[str]) -> dict[str, str]:
    """Return the name of each of the topics `ids` that the metadata in one of these log directories has."""
    mount_for_task(paths)
    places = (directory_at(path) for path in paths)
    return topic_names((place for place in places if isinstance(place, LogDirectory)), ids)


def topic_names(directories: Iterable[LogDirectory], ids: Iterable[str]) -> dict[str, str]:
    """Return the name of each of the topics of which a log directory has the ID in its metadata."""
    names: dict[str, str] = {}
    left = {*ids}
    for directory in directories:
        if left and any(place.topic == METADATA_TOPIC and not place.state for place in directory.partitions):
            image = MetadataCopies().replayed(directory.path)
            named = {topic: image.by_id[topic].name for topic in left & image.by_id.keys()} if image is not None else {}
            names |= named
            left -= named.keys()
    return names


def id_of(topic: str | None) -> str | None:
    """Return the topic if it may be an ID in place of a name."""
    return topic if topic is not None and TOPIC_ID.fullmatch(topic) else None


def with_name(place: Place, names: Mapping[str, str]) -> Place:
    """Return a partition or file with the name of its topic, if only its ID was known."""
    if isinstance(place, LogDirectory) or place.topic is None or place.topic not in names:
        return place
    if isinstance(place, PartitionDirectory):
        return replace(place, topic=names[place.topic])
    return place._replace(topic=names[place.topic])
