"""Finds the files with state under paths: copies of the metadata log, and the logs of topics with state, by the cluster
that each belongs to."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from kdump.cluster.disks import Disks
from kdump.cluster.metadata_copies import Age
from kdump.cluster.metadata_files import BOOTSTRAP, SNAPSHOT, MetadataFiles, metadata_files
from kdump.cluster.metadata_log import replay_metadata
from kdump.cluster.read_groups import CoordinatorLog, newest
from kdump.io import file_system
from kdump.io.command_line_paths import missing
from kdump.io.directory_listing import is_no_file, parent, real_path
from kdump.io.errors import SourceError, listing_error
from kdump.io.run import Run
from kdump.log.file_kinds import KRAFT_SNAPSHOT, SEGMENT
from kdump.log.find_directories import find_directories
from kdump.log.internal_topics import METADATA_LOG, METADATA_TOPIC, OFFSETS_TOPIC, SHARE_TOPIC
from kdump.log.log_directory import LogDirectory, Place, log_directory_above
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import Target
from kdump.state.metadata_image import MetadataImage


def metadata_in(path: str, run: Run) -> Iterator[tuple[MetadataFiles, LogDirectory | None]]:
    """Yield each copy of the cluster's metadata in `path`, with the log directory that contains it. A copy is a log
    directory, a __cluster_metadata directory, a snapshot, bootstrap.checkpoint, or a segment. Raises SourceError if
    there is none."""
    is_any = False
    for place in _places(path, run):
        for copy in _metadata_of(place, path, run):
            is_any = True
            yield copy
    if not is_any:
        raise SourceError.at(path, f"no cluster metadata ({METADATA_LOG} or a .checkpoint) here")


def metadata_at(path: str, run: Run) -> MetadataImage | None:
    """Return the metadata at a path, of several copies the newest; None if it cannot be read."""
    try:
        copies = [replay_metadata(files, run=Run(run.limits)) for files, _ in metadata_in(path, run)]
    except SourceError as error:
        run.unreadable(error)
        return None
    return max(copies, key=Age.of)


def _places(path: str, run: Run) -> Iterator[Place]:
    if path == "-" or "://" in path:
        raise SourceError.at(path, "not supported here; give a file or directory on a local disk")
    yield from find_directories(path, run)


def _metadata_of(place: Place, path: str, run: Run) -> Iterator[tuple[MetadataFiles, LogDirectory | None]]:
    if isinstance(place, Target):
        if _is_file(place, run):
            files = _of_file(place)
            if files is not None:
                yield files, None
        return
    if isinstance(place, PartitionDirectory):
        # A copy may have any name if its directory is the given path.
        has_metadata = place.topic == METADATA_TOPIC or (place.topic is None and place.path == path)
        if has_metadata and not place.state:
            yield from _of_folder(place, log_directory_above(place.path), run)
        return
    own = [log for log in place.partitions if log.topic == METADATA_TOPIC and not log.state]
    for log in own:
        yield from _of_folder(log, place, run)
    bootstrap = place.files.get(BOOTSTRAP)
    if not own and bootstrap is not None:
        yield MetadataFiles(bootstrap.path, bootstrap=bootstrap.path), place


def _of_folder(
    folder: PartitionDirectory, log_directory: LogDirectory | None, run: Run
) -> Iterator[tuple[MetadataFiles, LogDirectory | None]]:
    try:
        files = metadata_files(folder.path)
    except OSError as error:
        run.unreadable(SourceError(listing_error(error, folder.path)))
        return
    if files.snapshots or files.segments:
        yield files, log_directory


def _of_file(target: Target) -> MetadataFiles | None:
    name = os.path.basename(target.path)
    match = SNAPSHOT.match(name)
    if match:
        return MetadataFiles(target.path, snapshots=((int(match[1]), target.path),))
    if target.kind is KRAFT_SNAPSHOT:
        return MetadataFiles(target.path, bootstrap=target.path)
    if target.kind is SEGMENT and target.topic in (METADATA_TOPIC, None):
        return MetadataFiles(target.path, segments=(target.path,))
    return None


def _is_file(target: Target, run: Run) -> bool:
    if is_no_file(target.path):
        run.unreadable(SourceError.at(target.path, "not a file"))
        return False
    if not file_system.exists(target.path):
        run.unreadable(missing(target.path))
        return False
    return True


OLDER = "not read; another copy of it ends at the same offset or a higher one"


class TopicLogs(NamedTuple):
    """The logs of some topics, by cluster: the newest copy of each partition, and copies that a broker was to delete.
    `older`: copies that are not the newest, which OLDER says of them. `disks`: the log directories that contain them.
    `is_complete`: whether all of the paths could be searched."""

    newest: dict[str, list[CoordinatorLog]]
    deleted: dict[str, list[CoordinatorLog]]
    older: list[CoordinatorLog]
    disks: Disks
    is_complete: bool = True

    @property
    def clusters(self) -> list[str]:
        return sorted({*self.newest, *self.deleted})


def find_topic_logs(paths: Iterable[str], topics: Container[str], run: Run, *, lone: str) -> TopicLogs:
    """Return the logs of `topics` under paths, found as find_logs does."""
    logs, disks, is_complete = find_logs(paths, topics, run, lone=lone)
    return _by_cluster(logs, disks, topics)._replace(is_complete=is_complete)


def topic_logs(disks: Disks, topics: Container[str]) -> TopicLogs:
    """Return the logs of `topics` in log directories."""
    return _by_cluster([log for directory in disks.directories for log in logs_in(directory, topics)], disks, topics)


def _by_cluster(logs: Iterable[CoordinatorLog], disks: Disks, topics: Container[str]) -> TopicLogs:
    copies: dict[str, list[CoordinatorLog]] = {}
    for log in logs:
        above = parent(log.path)  # not of what it links to: a partition may be on another file system
        copies.setdefault(disks.cluster_at(above) or disks.cluster_at(parent(above)) or "", []).append(log)
    chosen = {cluster: newest(mine) for cluster, mine in copies.items()}
    read = {log.path for mine in chosen.values() for log in mine}
    deleted = {
        cluster: [log for directory in directories for log in deleted_logs(directory, topics)]
        for cluster, directories in disks.clusters.items()
    }
    older = [log for mine in copies.values() for log in mine if log.path not in read]
    return TopicLogs(chosen, deleted, older, disks)


def find_logs(
    paths: Iterable[str], topics: Container[str], run: Run, *, lone: str
) -> tuple[list[CoordinatorLog], Disks, bool]:
    """Return the logs of `topics` under paths, the log directories that contain them, which may also have other
    partitions that are asked for, and whether all could be searched. A path is a log directory, a directory of one of
    these partitions, or a segment, which is of the topic `lone` unless its directory says otherwise. A path without
    Kafka files is passed to `run.unreadable`, and left out."""
    logs: list[CoordinatorLog] = []
    directories: dict[str, LogDirectory] = {}
    errors: list[SourceError] = []

    def unreadable(error: SourceError) -> None:
        errors.append(error)
        run.unreadable(error)

    search = replace(run, unreadable=unreadable)
    for path in paths:
        try:
            for place in _places(path, search):
                here, directory = _logs_at(place, topics, lone, search)
                logs += here
                if directory is not None:
                    directories.setdefault(real_path(directory.path), directory)
        except SourceError as error:
            unreadable(error)
    return logs, Disks(directories.values(), run=run), not errors


def _logs_at(
    place: Place, topics: Container[str], lone: str, run: Run
) -> tuple[list[CoordinatorLog], LogDirectory | None]:
    """Return the logs of `topics` in a place, and the log directory that it is or is in."""
    if isinstance(place, LogDirectory):
        return list(logs_in(place, topics)), place
    if isinstance(place, PartitionDirectory):
        return list(_of_partition(place, topics)), log_directory_above(place.path)
    topic = place.topic or lone
    if not _is_file(place, run) or place.kind is not SEGMENT or topic not in topics:
        return [], None
    above = log_directory_above(parent(place.path)) if place.topic else None
    return [CoordinatorLog(topic, place.partition or 0, place.path, (place.path,))], above


def logs_in(directory: LogDirectory, topics: Container[str] = (OFFSETS_TOPIC, SHARE_TOPIC)) -> Iterator[CoordinatorLog]:
    """Yield the logs of `topics` in a log directory, which may be at a URL."""
    for partition in directory.partitions:
        yield from _of_partition(partition, topics)


def deleted_logs(directory: LogDirectory, topics: Container[str]) -> Iterator[CoordinatorLog]:
    """Yield the logs of `topics` that the broker has renamed to delete them, or has found stray."""
    for partition in directory.partitions:
        yield from _of_partition(partition, topics, states=("delete", "stray"))


def _of_partition(
    partition: PartitionDirectory, topics: Container[str], states: tuple[str, ...] = ("",)
) -> Iterator[CoordinatorLog]:
    if partition.state not in states or partition.topic is None or partition.topic not in topics:
        return
    paths = tuple(segment.log.path for segment in partition.segments if segment.log is not None)
    yield CoordinatorLog(partition.topic, partition.partition or 0, partition.path, paths)
