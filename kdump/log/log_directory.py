"""Recognizes what a directory on a broker's disk is: a log directory or a partition directory.

Source: org.apache.kafka.storage.internals.log.LogFileUtils, LocalLog and LogManager.loadLogs for the names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from kdump.io import file_system
from kdump.io.directory_listing import DirectoryEntry, is_url, items, names, parent
from kdump.io.link_boundary import add_root
from kdump.io.source import Identity
from kdump.log import file_kinds, lock_holder
from kdump.log.file_kinds import AT_ROOT, CLEAN_MARK, ENDINGS, OWN_NAMES, by_name
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.live_files import identity, is_young
from kdump.log.partition_directory import PartitionDirectory, listing_of, partition
from kdump.log.paths import PARTITION, Target, is_live, natural, target

META = "meta.properties"
"""File with the IDs of the node, its cluster and the log directory (MetaPropertiesEnsemble)."""
BOOTSTRAP = "bootstrap.checkpoint"
"""File with the first metadata of a cluster, which kafka-storage format writes to a log directory."""
ROOT_FILES = (META, *file_kinds.OFFSET_CHECKPOINTS, CLEAN_MARK, BOOTSTRAP)
"""Names of the files that may be there, other than that of its lock."""
COPY_OF_PARTITIONS = "a copy of partitions, without a broker's own files (meta.properties, checkpoints)"
"""What a log directory is whose `is_copy_of_partitions` is true."""
NUMBERED = re.compile(r"-?[0-9]+\.(?:log|index|timeindex|txnindex|snapshot|swap|cleaned)$", re.ASCII)
"""File names that a broker parses in a partition directory, whatever the number."""


@dataclass
class LogDirectory:
    """A broker's log directory: the files at its root by name, directories that are named like partitions
    (`candidates`), and other directories (`unknown`)."""

    path: str
    candidates: list[PartitionDirectory] = field(default_factory=list)
    files: dict[str, Target] = field(default_factory=dict)
    others: list[Target] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    @property
    def is_of_broker(self) -> bool:
        """Whether a file shows that a broker uses this directory: it then takes every candidate for a partition."""
        return any(target.kind in AT_ROOT for target in self.files.values())

    @property
    def is_copy_of_partitions(self) -> bool:
        """Whether no file of a broker's own is here, so that nothing shows how the broker was shut down, or that this
        is the disk that it uses."""
        return not any(name != BOOTSTRAP for name in self.files)

    @cached_property
    def partitions(self) -> list[PartitionDirectory]:
        if self.is_of_broker:
            return self.candidates
        return [partition for partition in self.candidates if partition.listing_errors or _may_be_partition(partition)]

    @property
    def nested(self) -> list[str]:
        """Directories below which there may be other log directories: partitions that contain directories and, if no
        file shows that a broker uses this directory, the unknown ones. Lists all partitions."""
        nesting = [partition.path for partition in self.candidates if partition.directories]
        return nesting if self.is_of_broker else nesting + self.unknown

    @property
    def is_clean(self) -> bool:
        """Whether the broker shut down cleanly, so that it will not recover logs at startup. A directory with the name
        of the clean-shutdown file counts as well."""
        mark = os.path.join(self.path, CLEAN_MARK)
        return CLEAN_MARK in self.files if is_url(self.path) else file_system.exists(mark)

    @cached_property
    def process(self) -> int | None:
        """ID of the process whose broker runs on it, as of the first time that this is asked: all answers about it then
        agree. None: see `lock_holder`."""
        return lock_holder.lock_holder(self.path)

    @property
    def is_running(self) -> bool | None:
        """Whether a broker runs on it, by `process`; None if it is unknown."""
        return True if self.process is not None else False if self.is_clean else None

    @property
    def seems_only_metadata(self) -> bool:
        """Whether its files are those of a controller's directory, or of a metadata.log.dir that is not in log.dirs: a
        broker writes checkpoints to each of its log directories. Other directories, such as lost+found, say nothing
        about that: a node lists only log.dirs. What server.properties states precedes it (`Disks.has_logs`)."""
        here = {target.kind for target in self.files.values()}
        if (
            not any(partition.topic == METADATA_TOPIC for partition in self.partitions)
            and file_kinds.KRAFT_SNAPSHOT not in here
        ):
            return False
        others = any(partition.topic != METADATA_TOPIC and any(partition.files()) for partition in self.partitions)
        return not (others or here & {file_kinds.OFFSET_CHECKPOINT, file_kinds.CLEAN_SHUTDOWN})


Place = LogDirectory | PartitionDirectory | Target


def directory_above(path: str) -> LogDirectory | PartitionDirectory | None:
    """Return what the directory is that contains a file or directory. Lists it again only if it has changed, so that
    thousands of paths in one directory do not list it thousands of times."""
    above = parent(path)
    seen = identity(above)
    return directory_at(above) if seen is None or is_young(seen) else _directory_as_of(above, seen)


@lru_cache(4)
def _directory_as_of(directory: str, seen: Identity) -> LogDirectory | PartitionDirectory | None:
    return directory_at(directory)


def log_directory_above(path: str) -> LogDirectory | None:
    """Return the log directory that contains a partition directory; None if it is in none."""
    above = directory_above(path)
    return above if isinstance(above, LogDirectory) else None


def directory_at(directory: str) -> LogDirectory | PartitionDirectory | None:
    """Return the log directory or partition in `directory`; None if it is neither (there may be some below it)."""
    seen = identity(directory)
    try:
        return recognize(directory, items(directory), seen)
    except OSError:
        return None


def is_log_directory(path: str) -> bool:
    """Return True if the path itself is a log directory."""
    return file_system.isdir(path) and isinstance(directory_at(path), LogDirectory)


def recognize(
    directory: str, entries: list[DirectoryEntry], seen: Identity | None
) -> LogDirectory | PartitionDirectory | None:
    """Return what a directory with these entries is; None if it is neither. `seen`: its identity from before it was
    listed.

    A directory's name alone makes no partition: log directories and those above have such names, too (data-0, disk-1).
    """
    here = {by_name(entry.name)[0] for entry in entries}
    if here & AT_ROOT or any(_is_partition(entry) for entry in entries):
        return _log_directory(directory, sorted(entries, key=lambda entry: natural(entry.name)))
    own = PARTITION.match(os.path.basename(os.path.abspath(directory)))
    files = [entry.name for entry in entries if not entry.is_directory]
    if here & {file_kinds.SEGMENT, *file_kinds.INDEXES} or (own and _has_files_of_a_partition(files)):
        _bound(directory)
        return replace(partition(directory), listed=listing_of(entries, seen))
    return None


def _is_partition(entry: DirectoryEntry) -> bool:
    """Return True if a child is named topic-partition and is a partition: a log directory may have such a name too."""
    if not (PARTITION.match(entry.name) and entry.is_directory):
        return False
    try:
        return _has_files_of_a_partition(names(entry.path))
    except OSError:  # reported by the walk, which goes on
        return False


def _has_files_of_a_partition(names_in: Iterable[str]) -> bool:
    """Return True if one of the file names is one of Kafka's for files of a partition, or is one with another number
    (0.log), and none is that of a log directory's file."""
    here = {by_name(name)[0] or bool(NUMBERED.match(name)) for name in names_in if name != BOOTSTRAP} - {False}
    return bool(here - {file_kinds.CLEAN_SHUTDOWN}) and not here & AT_ROOT


def _log_directory(directory: str, entries: list[DirectoryEntry]) -> LogDirectory:
    log_directory = LogDirectory(directory)
    for entry in entries:
        if entry.name in OWN_NAMES:
            continue
        if not entry.is_directory:
            file = target(entry.path, source=directory)._replace(topic=None, partition=None)  # whatever its own name
            # A broker reads no segments here: they belong to a partition.
            is_other = file.kind is None or file.kind is file_kinds.SEGMENT or not is_live(entry.name)
            if is_other or entry.name != ENDINGS.sub("", entry.name):
                log_directory.others.append(file)
            else:
                log_directory.files[entry.name] = file
        elif PARTITION.match(entry.name):
            log_directory.candidates.append(partition(entry.path, directory))
        elif entry.name != CLEAN_MARK:
            log_directory.unknown.append(entry.path)
    # What is not a broker's may be a collection of links to partitions.
    is_of_broker = log_directory.is_of_broker
    _bound(*([directory] if is_of_broker else (candidate.path for candidate in log_directory.candidates)))
    return log_directory


def _bound(*directories: str) -> None:
    """Have no link in these directories followed that leads out of them."""
    for directory in directories:
        if not is_url(directory) and file_system.tree_at(directory) is None:
            add_root(directory)


def _may_be_partition(place: PartitionDirectory) -> bool:
    """Return True unless a directory named topic-partition, outside of a broker's log directory, contains other
    things."""
    files = place.file_names
    return _has_files_of_a_partition(files) or not (files or place.directories)
