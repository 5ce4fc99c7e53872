"""What occupies a log directory: every file, by what it is. Only names and sizes are read."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kdump.log import file_kinds, file_system
from kdump.log.errors import SourceError, is_missing, listing_error
from kdump.log.file_kinds import by_name
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.log_directory import LOCK, REMOTE_CACHE, LogDirectory
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import is_live
from kdump.log.run import Run

WITH_SEGMENT = (*file_kinds.INDEXES, file_kinds.PRODUCER_SNAPSHOT)
"""Kinds of files that retention deletes with their segment."""


@dataclass(slots=True)
class PartitionUsage:
    """A partition directory. The arrays are by segment, in offset order: base offset, size of the .log, and what the
    .log, its indexes and its producer snapshot occupy."""

    place: PartitionDirectory
    bases: array[int] = field(default_factory=lambda: array("q"))
    sizes: array[int] = field(default_factory=lambda: array("q"))
    allocs: array[int] = field(default_factory=lambda: array("q"))
    times: array[int] = field(default_factory=lambda: array("q"))
    """Modification time of each .log in epoch ms."""
    unindexed: frozenset[int] = frozenset()
    """Base offsets of the segments without an .index."""
    size: int = 0
    allocated: int = 0
    files: int = 0
    deleted_files: int = 0
    deleted_size: int = 0
    deleted: int = 0
    """Allocated by .deleted files."""
    cleaned_files: int = 0
    cleaned_size: int = 0
    cleaned: int = 0
    """Allocated by .cleaned files."""
    has_swap: bool = False
    """Whether there is a .swap file."""
    linked: int = 0
    """Allocated by files with further hard links. Nothing else counts them: to remove one name frees nothing."""
    unknown: list[tuple[str, int, int]] = field(default_factory=list)
    """Files that are not Kafka's: path, size, allocated bytes."""

    @property
    def key(self) -> tuple[str, int]:
        assert self.place.topic is not None
        assert self.place.partition is not None
        return self.place.topic, self.place.partition


@dataclass
class DirectoryUsage:
    """A log directory, with the sums over its files."""

    directory: LogDirectory
    partitions: list[PartitionUsage] = field(default_factory=list)
    others: list[tuple[str, int, int, int]] = field(default_factory=list)
    """What is not Kafka's: path, size, allocated bytes, number of files."""
    root: int = 0
    """Allocated by Kafka's own files at the root, and by the cache of remote storage."""
    linked: int = 0
    """Allocated by files with further hard links that are not in a partition directory."""

    def live(self) -> Iterator[PartitionUsage]:
        """Yield the partitions that the broker serves."""
        return (each for each in self.partitions if not each.place.state and each.place.topic != METADATA_TOPIC)

    def in_state(self, state: str) -> Iterator[PartitionUsage]:
        return (each for each in self.partitions if each.place.state == state)

    @property
    def allocated(self) -> int:
        """Allocated by everything in the log directory."""
        here = self.root + sum(each.allocated for each in self.partitions) + sum(each[2] for each in self.others)
        return here + self.all_linked

    @property
    def all_linked(self) -> int:
        """Allocated by all files with further hard links; a file with two names here counts twice."""
        return self.linked + sum(each.linked for each in self.partitions)


def read_usage(directory: LogDirectory, run: Run) -> DirectoryUsage:
    """Return what occupies the log directory. Calls `run.begin` for each partition directory."""
    found = root_usage(directory, run)
    for place in directory.partitions:
        found.partitions.append(partition_usage(place, run))
        run.begin(place)
    return found


def root_usage(directory: LogDirectory, run: Run) -> DirectoryUsage:
    """Return what occupies the log directory apart from its partitions."""
    found = DirectoryUsage(directory)
    candidates = {each.path for each in directory.partitions}
    for name, path, is_directory, size, allocated, linked, _ in _stats(directory.path, run):
        if path in candidates:
            continue
        found.linked += linked
        if not is_directory:
            if name in directory.files or name == LOCK:
                found.root += allocated
            elif name.endswith(("-checkpoint.tmp", ".checkpoint.deleted")):
                found.root += allocated  # the next write of the checkpoint replaces it
            else:
                found.others.append((path, size, allocated, 1))
        elif name == REMOTE_CACHE:
            below = _below(path, run)
            found.root += allocated + below.allocated
            found.linked += below.linked
        else:
            below = _below(path, run)
            found.linked += below.linked
            found.others.append((path, below.size, below.allocated + allocated, below.files))
    return found


def partition_usage(place: PartitionDirectory, run: Run) -> PartitionUsage:
    """Return what occupies a partition directory."""
    found = PartitionUsage(place)
    logs: dict[int, tuple[int, int, int]] = {}
    of_indexes: dict[int, int] = {}
    indexed: set[int] = set()
    for name, path, is_directory, size, allocated, linked, modified in _stats(place.path, run):
        found.allocated += allocated
        found.linked += linked
        if is_directory:
            below = _below(path, run)
            found.allocated += below.allocated
            found.linked += below.linked
            found.unknown.append((path, below.size, below.allocated + allocated))
            continue
        found.files += 1
        found.size += size
        if not is_live(name):
            if name.endswith(".deleted"):
                found.deleted_files += 1
                found.deleted_size += size
                found.deleted += allocated
            elif name.endswith(".cleaned"):
                found.cleaned_files += 1
                found.cleaned_size += size
                found.cleaned += allocated
            elif name.endswith(".swap"):
                found.has_swap = True
            else:
                found.unknown.append((path, size, allocated))
            continue
        kind, offset = by_name(name)
        if kind is None:
            found.unknown.append((path, size, allocated))
        elif offset is not None and kind is file_kinds.SEGMENT and name.endswith(".log"):
            logs[offset] = (size, allocated, modified)
        elif offset is not None and kind in WITH_SEGMENT:
            of_indexes[offset] = of_indexes.get(offset, 0) + allocated
            if kind is file_kinds.INDEX:
                indexed.add(offset)
    found.unindexed = frozenset(logs.keys() - indexed)
    for offset in sorted(logs):
        size, allocated, modified = logs[offset]
        found.bases.append(offset)
        found.sizes.append(size)
        found.allocs.append(allocated + of_indexes.get(offset, 0))
        found.times.append(modified)
    return found


class _Entry(NamedTuple):
    """A file or directory. What it occupies is `linked` if it is a file with further hard links, and else `allocated`.
    `modified` in epoch ms."""

    name: str
    path: str
    is_directory: bool
    size: int
    allocated: int
    linked: int
    modified: int


class _Sums(NamedTuple):
    """The sums over the files below a directory."""

    size: int
    allocated: int
    linked: int
    files: int


def _stats(directory: str, run: Run) -> Iterator[_Entry]:
    """Yield what is in a directory. What goes away meanwhile is left out."""
    try:
        with file_system.scandir(directory) as entries:
            for entry in entries:
                try:
                    status = entry.stat()
                    is_directory = entry.is_dir()
                except OSError:
                    continue
                allocated, linked = _blocks(status, is_directory)
                modified = status.st_mtime_ns // 1_000_000
                yield _Entry(entry.name, entry.path, is_directory, status.st_size, allocated, linked, modified)
    except OSError as error:
        if not is_missing(error):
            run.unreadable(SourceError(listing_error(error, directory)))


def _blocks(status: os.stat_result, is_directory: bool) -> tuple[int, int]:
    """Return what a file occupies, if it has no further hard links, and if it has."""
    blocks = getattr(status, "st_blocks", 0) * 512
    return (0, blocks) if not is_directory and status.st_nlink > 1 else (blocks, 0)


def _below(directory: str, run: Run) -> _Sums:
    """Return the sums over the files below a directory; symbolic links are not followed."""
    size = allocated = linked = files = 0
    for path, names, here in file_system.walk(
        directory, lambda error: run.unreadable(SourceError(listing_error(error, directory)))
    ):
        for name in (*names, *here):
            try:
                status = file_system.stat(os.path.join(path, name), follow=False)
            except OSError:
                continue
            own, shared = _blocks(status, name not in here)
            allocated += own
            linked += shared
            if name in here:
                size += status.st_size
                files += 1
    return _Sums(size, allocated, linked, files)
