"""The sources of a scan: log directories, single partitions and files, found in tasks, and put into groups that are
planned together. Of each, the driver only knows where it is and whose it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from kdump.check.options import Options
from kdump.cluster.metadata_copies import Age
from kdump.cluster.remote_mount import mount_remote
from kdump.io.directory_listing import is_url, length, parent, real_path
from kdump.io.errors import SourceError
from kdump.io.file_system import AddedFiles, added_files
from kdump.io.mounted_paths import unmount_paths
from kdump.io.run import Run
from kdump.log.internal_topics import METADATA_TOPIC, OFFSETS_TOPIC, SHARE_TOPIC, TRANSACTION_TOPIC
from kdump.log.log_directory import LogDirectory, Place, directory_at
from kdump.log.partition_directory import PartitionDirectory, partition
from kdump.log.paths import target
from kdump.log.remote_objects import RemoteStorage
from kdump.spark.store import StoreError
from kdump.spark.task_runner import TaskRunner
from kdump.tables.disk_identity import BY_PLACE, DiskFacts, DiskIdentity, with_copies
from kdump.tables.fleet import expanded, facts, find, id_of, read_names
from kdump.tables.mounted_paths import mount_for_task, recorded_place, same_place

DECODED = (OFFSETS_TOPIC, TRANSACTION_TOPIC, METADATA_TOPIC)
"""Topics whose records are rows of a table."""
LISTED = (*DECODED, SHARE_TOPIC)
DIRECTORY, PARTITION, FILE = "log directory", "partition", "file"


@dataclass(frozen=True)
class ScanSource:
    """A place to scan. `real`: its path without links; `facts`: what it is recognized by."""

    path: str
    real: str
    kind: str
    above: str
    """Log directory that a partition is in; the path itself otherwise."""
    identity: DiskIdentity
    facts: DiskFacts
    logs: tuple[tuple[str, int, int], ...] = ()
    """Partitions of Kafka's own topics: name, base offset of the last segment, bytes."""
    decodes: tuple[str, ...] = ()
    """Those of them whose records are decoded: each in one replica, that which reaches furthest."""
    recorded: str | None = None
    """Host and path of what a bundle was made of, if nothing else identifies it."""
    topic: str | None = None
    """Topic of a partition or file."""

    @property
    def owner(self) -> tuple[str | None, str | None]:
        """Whose metadata it is: cluster.id and None, or None and the path if there is no cluster.id."""
        cluster = self.identity.cluster
        return cluster, self.path if cluster is None else None


class FoundSources(NamedTuple):
    """The sources at and below a path, and what could not be read."""

    path: str
    sources: list[ScanSource]
    unreadable: list[tuple[str, str]]


@dataclass
class Sources:
    """The sources of a scan, each once, and the paths that could not be read, with the reason."""

    sources: list[ScanSource] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)

    def groups(self) -> dict[str, list[ScanSource]]:
        """Return the sources that are planned together: the log directories of a broker, because what one lacks another
        may have, and single partitions and files in one directory."""
        by_owner: dict[str, list[ScanSource]] = {}
        for source in self.sources:
            owner = source.identity
            if source.kind != DIRECTORY:
                key = f"in {source.above if source.kind == PARTITION else parent(source.path)}"
            elif owner.cluster is None or owner.broker is None or owner.logDirectory is None:
                key = f"at {source.path}"
            else:
                key = f"{owner.cluster}/{owner.broker}"
            by_owner.setdefault(key, []).append(source)
        return by_owner

    def clusters(self) -> dict[tuple[str | None, str | None], list[str]]:
        """Return the paths of the log directories of each cluster, without copies of a disk, by their owner."""
        paths: dict[tuple[str | None, str | None], list[str]] = {}
        for source in self.sources:
            if source.kind == DIRECTORY and source.identity.copyOf is None:
                paths.setdefault(source.owner, []).append(source.path)
        return paths

    def newest(self, ages: Mapping[str, Age]) -> frozenset[str]:
        """Return the log directory of each cluster with the newest metadata; `ages`: how new each is that has some."""
        with_log = ([path for path in sorted(paths) if path in ages] for paths in self.clusters().values())
        return frozenset(max(paths, key=ages.__getitem__) for paths in with_log if paths)


def find_sources(path: str, options: Options, brokers: Mapping[str, str]) -> FoundSources:
    """Find the sources at and below a path."""
    unmount_paths()
    fleet = find([path], options, None, brokers)
    return FoundSources(path, [_source(each.place, each.identity) for each in fleet.found], fleet.unreadable)


def find_remote(paths: Sequence[str], storage: RemoteStorage) -> tuple[dict[str, AddedFiles], list[tuple[str, str]]]:
    """Return the files that remote storage adds to the partitions at these paths, and why any are unknown. Raises
    StoreError."""
    mount_for_task(paths)
    errors: list[SourceError] = []
    try:
        mount_remote(paths, storage, Run(unreadable=errors.append))
    except SourceError as error:
        raise StoreError(str(error)) from error
    return added_files()[0], [(storage.url, str(error)) for error in errors]


def _source(place: Place, identity: DiskIdentity) -> ScanSource:
    recorded = recorded_place(place.path) if identity.identifiedBy == BY_PLACE else None
    if isinstance(place, LogDirectory):
        logs = tuple(_log(log) for log in place.partitions if log.topic in LISTED and not log.state)
        kind, above, topic = DIRECTORY, place.path, None
    elif isinstance(place, PartitionDirectory):
        logs = (_log(place),) if place.topic in LISTED and not place.state else ()
        kind, above, topic = PARTITION, place.source, place.topic
    else:
        logs, kind, above, topic = (), FILE, place.path, place.topic
    own = facts(place, identity)
    return ScanSource(place.path, real_path(place.path), kind, above, identity, own, logs, (), recorded, topic)


def place_of(source: ScanSource) -> Place:
    """Return the place again, as it is now."""
    if source.kind == DIRECTORY:
        place = directory_at(source.path)
        return place if isinstance(place, LogDirectory) else LogDirectory(source.path)
    if source.kind == PARTITION:
        return replace(partition(source.path, source.above), topic=source.topic)
    return target(source.path)._replace(topic=source.topic)


def named(sources: Sources, tasks: TaskRunner) -> Sources:
    """Return the sources with the names of topics of which their paths have only the ID, as far as known."""
    ids = frozenset(source.topic for source in sources.sources if source.topic is not None and id_of(source.topic))
    if not ids:
        return sources
    with_metadata = [source.path for source in sources.sources if source.kind == DIRECTORY and _has_metadata(source)]
    (names,) = tasks.run([partial(read_names, with_metadata, ids)])
    renamed = [replace(source, topic=names.get(source.topic or "", source.topic)) for source in sources.sources]
    return replace(sources, sources=renamed)


def _has_metadata(source: ScanSource) -> bool:
    return any(name.rpartition("-")[0] == METADATA_TOPIC for name, _, _ in source.logs)


def log_at(source: ScanSource, name: str) -> str:
    """Return the path of one of the partitions of a source."""
    return source.path if source.kind == PARTITION else f"{source.path.rstrip('/')}/{name}"


def merged(several: Iterable[FoundSources]) -> Sources:
    """Return all sources, each once even if several paths lead to it, with copies of a disk marked. Raises StoreError
    if two bundles without IDs were made of the same path on hosts of the same name: they may be the same disk, or
    not."""
    result = Sources()
    seen: dict[str, ScanSource] = {}
    for each in several:
        result.unreadable += each.unreadable
        for source in each.sources:
            seen.setdefault(source.real, source)
    directories = {real for real, source in seen.items() if source.kind != FILE}
    for real, source in seen.items():
        if not any(above in directories for above in _above(real)):
            result.sources.append(source)
    recorded = ((each.path, each.recorded, each.identity.broker) for each in result.sources)
    message = same_place(recorded, "--broker PATH=NAME")
    if message is not None:
        raise StoreError(message)
    identities = with_copies(each.facts for each in result.sources)
    result.sources = [replace(each, identity=identity) for each, identity in zip(result.sources, identities)]
    _choose_decoded(result.sources)
    return result


def _log(place: PartitionDirectory) -> tuple[str, int, int]:
    segments = [segment for segment in place.segments if segment.log is not None]
    size = sum(length(segment.log.path) or 0 for segment in segments if segment.log is not None)
    return place.name, max((segment.offset for segment in segments), default=-1), size


def _choose_decoded(sources: list[ScanSource]) -> None:
    """Choose the replica of each partition of Kafka's own topics whose records are decoded."""
    best: dict[tuple[str, str], tuple[tuple[int, int], int]] = {}
    for number, source in enumerate(sources):
        for name, base, size in source.logs if source.identity.copyOf is None else ():
            if name.rpartition("-")[0] not in DECODED:
                continue
            key = (source.identity.cluster or f"at {source.above}", name)
            if key not in best or best[key][0] < (base, size):
                best[key] = (base, size), number
    chosen: dict[int, list[str]] = {}
    for (_, name), (_, number) in best.items():
        chosen.setdefault(number, []).append(name)
    for number, names in chosen.items():
        sources[number] = replace(sources[number], decodes=tuple(sorted(names)))


def _above(path: str) -> Iterable[str]:
    """Yield the directories above a path."""
    above = parent(path)
    while above and above != path and not (is_url(path) and above.endswith(":/")):
        yield above
        path, above = above, parent(above)


def paths_of(given: Iterable[str]) -> list[str]:
    """Return the paths that the given ones match; one without a match stands for itself."""
    return [path for pattern in given for path in (expanded(pattern) or [pattern])]
