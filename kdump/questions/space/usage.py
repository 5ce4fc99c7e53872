"""What occupies a log directory: every file, by what it is. Only names, sizes and timestamps are read."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kdump.io import file_system
from kdump.io.errors import SourceError, is_missing, listing_error
from kdump.io.run import Run
from kdump.log import file_kinds
from kdump.log.file_kinds import OWN_NAMES, by_name
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.log_directory import LogDirectory
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import PARTITION, Target, is_live
from kdump.questions.retention.configs import Settings
from kdump.questions.retention.deletion import NOW, LogFacts, due_now
from kdump.questions.retention.observed_segments import DiskSegment
from kdump.questions.retention.remote_deletion import NOTHING_REMOTE, RemoteRetention

LEFT = (".deleted", ".cleaned", ".swap")
WITH_SEGMENT = (*file_kinds.INDEXES, file_kinds.PRODUCER_SNAPSHOT)
"""Kinds of files that retention deletes with their segment."""


class Files(NamedTuple):
    """Number of files, their size and what they occupy, in bytes. `linked`: what those with further hard links occupy,
    which `allocated` does not count: to remove one name frees nothing."""

    number: int = 0
    size: int = 0
    allocated: int = 0
    linked: int = 0


SeenFiles = set[tuple[int, int]]
"""Device and inode of the files with several names (hard links) that have been counted."""
NO_FILES = Files()
NO_FACTS = LogFacts(0, 0, None, None, 0)


def total(parts: Iterable[Files]) -> Files:
    return Files(*map(sum, zip(NO_FILES, *parts)))


class Foreign(NamedTuple):
    """A file or directory that is not Kafka's."""

    path: str
    files: Files


@dataclass(slots=True)
class PartitionUsage:
    """A partition directory. `left`: its .deleted, .cleaned and .swap files. What a live one is for retention is set by
    `retained_topics`: `cleaned`: the offset in cleaner-offset-checkpoint; `moves`: it is moved to another log
    directory; `waits`: retention and the cleaner leave it alone, because its log directory is offline."""

    place: PartitionDirectory
    segments: list[DiskSegment] = field(default_factory=list)
    all: Files = NO_FILES
    left: dict[str, Files] = field(default_factory=dict)
    unknown: list[Foreign] = field(default_factory=list)
    facts: LogFacts = NO_FACTS
    cleaned: int | None = None
    moves: bool = False
    waits: bool = False
    remote: RemoteRetention = NOTHING_REMOTE
    goes: int = 0
    """Number of its first segments that go with the steps so far, by hand or by the broker."""
    removed: int = 0
    """Number of those that a step removes by hand."""

    @property
    def key(self) -> tuple[str, int]:
        assert self.place.topic is not None
        assert self.place.partition is not None
        return self.place.topic, self.place.partition

    @property
    def allocated(self) -> int:
        return self.all.allocated

    def with_suffix(self, suffix: str) -> Files:
        return self.left.get(suffix, NO_FILES)

    def due(self, settings: Settings, later: int = 0) -> int:
        """Return how many of the first segments the next check deletes, or one that runs `later` ms from now; the
        active segment is not counted."""
        cleans = settings["log.cleaner.enable"]
        if self.waits or (self.moves and cleans) or (settings.compacts and not cleans):
            return 0
        fates = due_now(self.segments, self.facts._replace(now=self.facts.now + later), settings)
        return min(sum(fate.deletion == NOW for fate in fates), len(self.segments) - 1)

    def occupied(self, first: int, stop: int) -> int:
        """Return what the segments first..stop - 1 occupy, with their indexes and producer snapshots."""
        return sum(segment.allocated for segment in self.segments[first:stop])


@dataclass
class DirectoryUsage:
    """A log directory, with the sums over its files. `root`: Kafka's own files there, and the cache of remote
    storage."""

    directory: LogDirectory
    partitions: list[PartitionUsage] = field(default_factory=list)
    others: list[Foreign] = field(default_factory=list)
    root: Files = NO_FILES

    def live(self) -> list[PartitionUsage]:
        """Return the partitions that the broker serves."""
        return [usage for usage in self.in_state("") if usage.place.topic != METADATA_TOPIC]

    def in_state(self, state: str) -> list[PartitionUsage]:
        return [usage for usage in self.partitions if usage.place.state == state]

    def total(self) -> Files:
        """Return the sums over everything in the log directory; `linked` counts a file with several names once."""
        return total((self.root, *(part.all for part in self.partitions), *(other.files for other in self.others)))


def read_usage(directory: LogDirectory, run: Run, seen: SeenFiles | None = None) -> DirectoryUsage:
    """Return what occupies the log directory; nothing for a file in `seen`. Calls `run.begin` for each partition
    directory."""
    seen = set() if seen is None else seen
    usage = root_usage(directory, run, seen)
    for place in directory.partitions:
        usage.partitions.append(partition_usage(place, run, seen))
        run.begin(place)
    return usage


def root_usage(directory: LogDirectory, run: Run, seen: SeenFiles | None = None) -> DirectoryUsage:
    """Return what occupies the log directory apart from its partitions."""
    usage = DirectoryUsage(directory)
    without = {place.path for place in directory.partitions}
    for entry, files, modified in _entries(directory.path, run, set() if seen is None else seen, without):
        # The next write of a checkpoint replaces what is left of it.
        is_own = entry.name in directory.files or entry.name in OWN_NAMES
        if is_own or entry.name.endswith(("-checkpoint.tmp", ".checkpoint.deleted")):
            usage.root = total((usage.root, files))
        elif modified is not None or not PARTITION.match(entry.name):  # or it was created since, or renamed to -delete
            usage.others.append(Foreign(entry.path, files))
    return usage


def partition_usage(place: PartitionDirectory, run: Run, seen: SeenFiles | None = None) -> PartitionUsage:
    """Return what occupies a partition directory."""
    usage = PartitionUsage(place)
    segments: dict[int, DiskSegment] = {}
    beside: list[tuple[int, bool, int]] = []
    parts = []
    for entry, files, modified in _entries(place.path, run, set() if seen is None else seen):
        parts.append(files)
        suffix, live = os.path.splitext(entry.name)[1], is_live(entry.name)
        if not live and suffix in LEFT:
            usage.left[suffix] = total((usage.with_suffix(suffix), files))
            continue
        kind, offset = by_name(entry.name) if live and modified is not None else (None, None)
        if kind is None or modified is None:
            usage.unknown.append(Foreign(entry.path, files))
        elif offset is not None and kind is file_kinds.SEGMENT and suffix == ".log":
            target = Target(entry.path, offset, place.topic, place.partition, kind, place.source)
            segments[offset] = DiskSegment(target, files.size, modified, files.allocated)
        elif offset is not None and kind in WITH_SEGMENT:
            beside.append((offset, kind is file_kinds.INDEX, files.allocated))
    for offset, is_index, allocated in beside:
        if offset in segments:
            segments[offset].allocated += allocated
            segments[offset].is_indexed |= is_index
    usage.segments, usage.all = [segments[offset] for offset in sorted(segments)], total(parts)
    return usage


def _entries(
    directory: str, run: Run, seen: SeenFiles, without: Collection[str] = ()
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
                except PermissionError:  # so are all files here
                    raise
                except OSError as error:
                    _unread(error, entry.path, run)
                    continue
                files = _of_status(status, seen, is_directory=is_directory)
                if is_directory:
                    files = total((files, *_below(entry.path, run, seen)))
                yield entry, files, None if is_directory else status.st_mtime_ns // 1_000_000
    except OSError as error:
        _unread(error, directory, run)


def _unread(error: OSError, path: str, run: Run) -> None:
    if not is_missing(error):
        run.unreadable(SourceError(listing_error(error, path)))


def _below(directory: str, run: Run, seen: SeenFiles) -> Iterator[Files]:
    for path, names, here in file_system.walk(
        directory, lambda error: run.unreadable(SourceError(listing_error(error, directory)))
    ):
        for name in (*names, *here):
            try:
                status = file_system.stat(os.path.join(path, name), follow=False)
            except PermissionError as error:  # so are all files here
                _unread(error, path, run)
                break
            except OSError as error:
                _unread(error, os.path.join(path, name), run)
                continue
            yield _of_status(status, seen, is_directory=name not in here)


def _of_status(status: os.stat_result, seen: SeenFiles, *, is_directory: bool) -> Files:
    blocks = getattr(status, "st_blocks", 0) * 512
    if is_directory:
        return Files(allocated=blocks)
    if status.st_nlink > 1:
        file = status.st_dev, status.st_ino
        blocks = 0 if file in seen else blocks
        seen.add(file)
    return Files(1, status.st_size, *((0, blocks) if status.st_nlink > 1 else (blocks, 0)))
