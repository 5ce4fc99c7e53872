"""What occupies a log directory: every file, by what it is. Only names and sizes are read."""

from __future__ import annotations

import os
from array import array
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kdump.io import file_system
from kdump.io.errors import SourceError, is_missing, listing_error
from kdump.io.run import Run
from kdump.log import file_kinds
from kdump.log.file_kinds import by_name
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.log_directory import LOCK, REMOTE_CACHE, LogDirectory
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import is_live

WITH_SEGMENT = (*file_kinds.INDEXES, file_kinds.PRODUCER_SNAPSHOT)
"""Kinds of files that retention deletes with their segment."""


@dataclass(slots=True)
class Files:
    """Number of files, their size and what they occupy, in bytes. `linked`: what those with further hard links occupy,
    which `allocated` does not count: to remove one name frees nothing."""

    count: int = 0
    size: int = 0
    allocated: int = 0
    linked: int = 0

    def add(self, other: Files) -> None:
        self.count += other.count
        self.size += other.size
        self.allocated += other.allocated
        self.linked += other.linked


class Foreign(NamedTuple):
    """A file or directory that is not Kafka's."""

    path: str
    files: Files


@dataclass(slots=True)
class PartitionUsage:
    """A partition directory. The arrays are by segment, in offset order: base offset, size of the .log, what the .log,
    its indexes and its producer snapshot occupy, and modification time of the .log in epoch ms."""

    place: PartitionDirectory
    bases: array[int] = field(default_factory=lambda: array("q"))
    sizes: array[int] = field(default_factory=lambda: array("q"))
    allocs: array[int] = field(default_factory=lambda: array("q"))
    times: array[int] = field(default_factory=lambda: array("q"))
    unindexed: frozenset[int] = frozenset()
    """Base offsets of the segments without an .index."""
    all: Files = field(default_factory=Files)
    by_suffix: dict[str, Files] = field(default_factory=dict)
    """The .deleted, .cleaned and .swap files."""
    unknown: list[Foreign] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, int]:
        assert self.place.topic is not None
        assert self.place.partition is not None
        return self.place.topic, self.place.partition

    @property
    def allocated(self) -> int:
        return self.all.allocated

    def with_suffix(self, suffix: str) -> Files:
        return self.by_suffix.get(suffix) or Files()


@dataclass
class DirectoryUsage:
    """A log directory, with the sums over its files. `root`: Kafka's own files there, and the cache of remote
    storage."""

    directory: LogDirectory
    partitions: list[PartitionUsage] = field(default_factory=list)
    others: list[Foreign] = field(default_factory=list)
    root: Files = field(default_factory=Files)

    def live(self) -> Iterator[PartitionUsage]:
        """Yield the partitions that the broker serves."""
        return (each for each in self.partitions if not each.place.state and each.place.topic != METADATA_TOPIC)

    def in_state(self, state: str) -> Iterator[PartitionUsage]:
        return (each for each in self.partitions if each.place.state == state)

    def total(self) -> Files:
        """Return the sums over everything in the log directory; a file with two names here counts twice as linked."""
        total = Files()
        for files in (self.root, *(each.all for each in self.partitions), *(each.files for each in self.others)):
            total.add(files)
        return total


def read_usage(directory: LogDirectory, run: Run) -> DirectoryUsage:
    """Return what occupies the log directory. Calls `run.begin` for each partition directory."""
    usage = root_usage(directory, run)
    for place in directory.partitions:
        usage.partitions.append(partition_usage(place, run))
        run.begin(place)
    return usage


def root_usage(directory: LogDirectory, run: Run) -> DirectoryUsage:
    """Return what occupies the log directory apart from its partitions."""
    usage = DirectoryUsage(directory)
    for entry, files, _ in _entries(directory.path, run, without={each.path for each in directory.partitions}):
        # The next write of a checkpoint replaces what is left of it.
        is_own = entry.name in directory.files or entry.name in (LOCK, REMOTE_CACHE)
        if is_own or entry.name.endswith(("-checkpoint.tmp", ".checkpoint.deleted")):
            usage.root.add(files)
        else:
            usage.others.append(Foreign(entry.path, files))
    return usage


def partition_usage(place: PartitionDirectory, run: Run) -> PartitionUsage:
    """Return what occupies a partition directory."""
    usage = PartitionUsage(place)
    logs: dict[int, tuple[int, int, int]] = {}
    of_indexes: dict[int, int] = {}
    indexed: set[int] = set()
    for entry, files, modified in _entries(place.path, run):
        usage.all.add(files)
        suffix, live = os.path.splitext(entry.name)[1], is_live(entry.name)
        if not live and suffix in (".deleted", ".cleaned", ".swap"):
            usage.by_suffix.setdefault(suffix, Files()).add(files)
            continue
        kind, offset = by_name(entry.name) if live and modified is not None else (None, None)
        if kind is None or modified is None:
            usage.unknown.append(Foreign(entry.path, files))
        elif offset is not None and kind is file_kinds.SEGMENT and suffix == ".log":
            logs[offset] = (files.size, files.allocated, modified)
        elif offset is not None and kind in WITH_SEGMENT:
            of_indexes[offset] = of_indexes.get(offset, 0) + files.allocated
            if kind is file_kinds.INDEX:
                indexed.add(offset)
    usage.unindexed = frozenset(logs.keys() - indexed)
    for offset in sorted(logs):
        size, allocated, time = logs[offset]
        usage.bases.append(offset)
        usage.sizes.append(size)
        usage.allocs.append(allocated + of_indexes.get(offset, 0))
        usage.times.append(time)
    return usage


def _entries(
    directory: str, run: Run, without: Collection[str] = ()
) -> Iterator[tuple[os.DirEntry[str], Files, int | None]]:
    """Yield what is in a directory, except for these paths, with the sums over the files at and below it, and the
    modification time of a file in epoch ms, None for a directory. What goes away meanwhile is left out; symbolic links
    are not followed."""
    try:
        with file_system.scandir(directory) as entries:
            for entry in entries:
                if entry.path in without:
                    continue
                try:
                    status, is_directory = entry.stat(), entry.is_dir()
                except OSError:
                    continue
                files = _of_status(status, is_directory=is_directory)
                if is_directory:
                    _add_below(files, entry.path, run)
                yield entry, files, None if is_directory else status.st_mtime_ns // 1_000_000
    except OSError as error:
        if not is_missing(error):
            run.unreadable(SourceError(listing_error(error, directory)))


def _add_below(files: Files, directory: str, run: Run) -> None:
    for path, names, here in file_system.walk(
        directory, lambda error: run.unreadable(SourceError(listing_error(error, directory)))
    ):
        for name in (*names, *here):
            try:
                status = file_system.stat(os.path.join(path, name), follow=False)
            except OSError:
                continue
            files.add(_of_status(status, is_directory=name not in here))


def _of_status(status: os.stat_result, *, is_directory: bool) -> Files:
    blocks = getattr(status, "st_blocks", 0) * 512
    if is_directory:
        return Files(allocated=blocks)
    return Files(1, status.st_size, *((0, blocks) if status.st_nlink > 1 else (blocks, 0)))
