"""Recognizes what a path on a broker's disk is: a log directory, a partition directory, or one file; and which files
belong together.

Source: org.apache.kafka.storage.internals.log.LogFileUtils, LocalLog and LogManager.loadLogs for the names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kdump.log import file_kinds
from kdump.log.command_line_paths import no_kafka_files
from kdump.log.errors import Refused, listing_error
from kdump.log.file_kinds import ENDINGS, FileKind, by_name
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.listing import DirectoryEntry, is_directory, is_inside, is_url, items, names, parent
from kdump.log.live_files import identity
from kdump.log.paths import PARTITION, Refusals, Target, directories, is_live, natural, target
from kdump.log.source import Identity

REMOTE_CACHE = "remote-log-index-cache"
"""Directory inside a log directory in which a broker caches indexes from remote storage (RemoteIndexCache)."""
LOCK = ".lock"
"""File that a running broker locks in each of its log directories (LogManager.LockFileName)."""
CLEAN_MARK = ".kafka_cleanshutdown"
"""File that a broker writes at a clean shutdown, and deletes at startup (CleanShutdownFileHandler)."""
BESIDE = (file_kinds.INDEX, file_kinds.TIME_INDEX, file_kinds.TXN_INDEX)
BOOTSTRAP = "bootstrap.checkpoint"
"""File with the first metadata of a cluster, which kafka-storage format writes to a log directory."""
AT_ROOT = {file_kinds.META_PROPERTIES, file_kinds.OFFSET_CHECKPOINT}
"""Kinds of files that a broker creates in each of its log directories."""
NUMBERED = re.compile(r"-?[0-9]+\.(?:log|index|timeindex|txnindex|snapshot|swap|cleaned)$", re.ASCII)
"""File names that a broker parses in a partition directory, whatever the number."""
NO_SEGMENT = "no segment (<20 digits>.log) in this directory"
"""Reason why a given partition directory cannot be read."""


@dataclass
class SegmentFiles:
    """A .log (None: it is gone) and the files with the same name next to it, by kind."""

    name: str
    offset: int
    log: Target | None = None
    beside: dict[FileKind, Target] = field(default_factory=dict)


@dataclass
class PartitionDirectory:
    """The files of a partition directory. `state` is "" for a live one, else delete, future or stray; topic and
    partition are None if the directory has another name, as in remote storage."""

    path: str
    source: str
    topic: str | None
    partition: int | None
    state: str
    segments: list[SegmentFiles] = field(default_factory=list)
    orphans: list[Target] = field(default_factory=list)
    """Indexes without a segment."""
    snapshots: list[Target] = field(default_factory=list)
    kraft_snapshots: list[Target] = field(default_factory=list)
    texts: list[Target] = field(default_factory=list)
    unfinished: list[Target] = field(default_factory=list)
    """.swap and .cleaned files."""
    others: list[Target] = field(default_factory=list)
    """.deleted files, files whose names Kafka does not know, and second files of one base offset (.log.gz)."""
    refused: list[str] = field(default_factory=list)
    """Why the directory could not be listed."""
    directories: list[str] = field(default_factory=list)
    """Directories in it, which a broker ignores."""
    seen: Identity | None = field(default=None, compare=False)
    """Identity of the directory from before it was listed; None if it is not on a local disk."""

    @property
    def name(self) -> str:
        return os.path.basename(os.path.abspath(self.path))

    def text(self, name: str) -> Target | None:
        """Return the small file with exactly this name."""
        return next((at for at in self.texts if os.path.basename(at.path) == name), None)

    def files(self) -> Iterator[Target]:
        """Yield all files."""
        for segment in self.segments:
            if segment.log is not None:
                yield segment.log
            yield from segment.beside.values()
        for group in (self.orphans, self.snapshots, self.kraft_snapshots, self.texts, self.unfinished, self.others):
            yield from group


@dataclass
class LogDirectory:
    """A broker's log directory: partitions, the files at its root by name, and other directories (`unknown`)."""

    path: str
    partitions: list[PartitionDirectory] = field(default_factory=list)
    files: dict[str, Target] = field(default_factory=dict)
    others: list[Target] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    nested: list[str] = field(default_factory=list)
    """Directories below which there may be other log directories: those named topic-partition that contain
    directories and, if no file shows that a broker uses this directory, the unknown ones."""

    @property
    def is_clean(self) -> bool:
        """Whether the broker shut down cleanly, so that it will not recover logs at startup. A directory with the name
        of the clean-shutdown file counts as well."""
        mark = os.path.join(self.path, CLEAN_MARK)
        return CLEAN_MARK in self.files if is_url(self.path) else os.path.exists(mark)

    @property
    def only_metadata(self) -> bool:
        """Whether this is a controller's directory, or a metadata.log.dir that is not in log.dirs: a broker writes
        checkpoints to each of its log directories. Other directories, such as lost+found, say nothing about that: a
        node lists only log.dirs."""
        here = {at.kind for at in self.files.values()}
        if not any(each.topic == METADATA_TOPIC for each in self.partitions) and file_kinds.KRAFT_SNAPSHOT not in here:
            return False
        others = any(each.topic != METADATA_TOPIC and any(each.files()) for each in self.partitions)
        return not (others or here & {file_kinds.OFFSET_CHECKPOINT, file_kinds.CLEAN_SHUTDOWN})


Place = LogDirectory | PartitionDirectory | Target


def find_directories(path: str, refused: Refused) -> Iterator[Place]:
    """Yield what `path` is or, for any other directory, what is below it. Raises SourceError if there are no Kafka
    files, and all directories could be read; calls `refused` for a directory that cannot be read."""
    if path == "-" or not is_directory(path):
        yield target(path)
        return
    enclosing: list[tuple[str, set[str]]] = []  # places above, with the directories that may be apart
    found = False
    refusals = Refusals(refused)
    for directory in directories(path, refusals):
        # "." and "dir/" cannot be compared as path prefixes
        absolute = directory if is_url(directory) else os.path.abspath(directory)
        while enclosing and not is_inside(absolute, enclosing[-1][0]):
            enclosing.pop()
        if enclosing and not _is_apart(absolute, *enclosing[-1]):
            continue
        place = directory_at(directory)
        if place is None or (enclosing and absolute in enclosing[-1][1] and isinstance(place, PartitionDirectory)):
            continue  # the log directory has listed that partition
        found = True
        enclosing.append((absolute, _nested(absolute, place)))
        yield place
    if not found:
        alone = _of_a_log_directory(path)
        if alone is not None:
            yield alone
        elif not refusals.unlisted:
            raise no_kafka_files(path, f"{path}: no Kafka log directory, partition or segment here or below")


def _nested(absolute: str, place: LogDirectory | PartitionDirectory) -> set[str]:
    """Return the absolute paths of the directories in a place below which other log directories may be."""
    paths = place.nested if isinstance(place, LogDirectory) else place.directories
    return {f"{absolute.rstrip('/')}/{os.path.basename(each)}" for each in paths}


def _is_apart(absolute: str, place: str, nested: set[str]) -> bool:
    """Return True if a directory below the one at `place` is in or below one of its `nested` directories."""
    place = place.rstrip("/") + "/"
    return place + absolute[len(place) :].partition("/")[0] in nested


def _of_a_log_directory(path: str) -> PartitionDirectory | None:
    """Return the partition of a directory without files of Kafka's that has a partition's name and is in a broker's
    log directory: the broker creates an empty log there at startup."""
    if not PARTITION.match(os.path.basename(os.path.abspath(path))):
        return None
    above = directory_at(parent(path))
    return partition(path, above.path) if isinstance(above, LogDirectory) and above.files else None


def directory_at(directory: str) -> LogDirectory | PartitionDirectory | None:
    """Return the log directory or partition in `directory`; None if it is neither (there may be some below it).

    A directory's name alone makes no partition: log directories and those above have such names, too (data-0, disk-1).
    """
    try:
        entries = items(directory)
    except OSError:
        return None
    here = {by_name(entry.name)[0] for entry in entries}
    if here & AT_ROOT or any(_is_partition(entry) for entry in entries):
        return _log_directory(directory, sorted(entries, key=lambda entry: natural(entry.name)))
    own = PARTITION.match(os.path.basename(os.path.abspath(directory)))
    files = [entry.name for entry in entries if not entry.is_directory]
    if here & {file_kinds.SEGMENT, *BESIDE} or (own and _has_files_of_a_partition(files)):
        return partition(directory)
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
    found = LogDirectory(directory)
    for entry in entries:
        if entry.name == LOCK:
            continue
        if not entry.is_directory:
            at = target(entry.path, source=directory)._replace(topic=None, partition=None)  # whatever its own name
            if at.kind is None or not is_live(entry.name) or entry.name != ENDINGS.sub("", entry.name):
                found.others.append(at)
            else:
                found.files[entry.name] = at
        elif PARTITION.match(entry.name):
            found.partitions.append(partition(entry.path, directory))
        elif entry.name not in (REMOTE_CACHE, CLEAN_MARK):
            found.unknown.append(entry.path)
    found.nested = [each.path for each in found.partitions if each.directories]
    if not any(at.kind in AT_ROOT for at in found.files.values()):  # not what a broker takes for its log directory
        found.partitions = [each for each in found.partitions if each.refused or _may_be_partition(each)]
        found.nested += found.unknown
    return found


def _may_be_partition(place: PartitionDirectory) -> bool:
    """Return True unless a directory named topic-partition, outside of a broker's log directory, contains other
    things."""
    files = [os.path.basename(at.path) for at in place.files()]
    return _has_files_of_a_partition(files) or not (files or place.directories)


def partition(directory: str, source: str = "") -> PartitionDirectory:
    """List a partition directory, grouping the files that belong together."""
    match = PARTITION.match(os.path.basename(os.path.abspath(directory)))
    found = PartitionDirectory(
        directory,
        source or directory,
        match["topic"] if match else None,
        int(match["partition"]) if match else None,
        (match["state"] or "") if match else "",
    )
    found.seen = identity(directory)
    try:
        entries = items(directory)
    except OSError as error:
        found.refused.append(listing_error(error, directory))
        return found
    segments: dict[str, SegmentFiles] = {}
    for entry in entries:
        if entry.is_directory:
            found.directories.append(entry.path)
        else:
            _sort_in(found, segments, entry.name, target(entry.path, source=found.source))
    for segment in segments.values():
        if segment.log is not None:
            found.segments.append(segment)
        else:
            found.orphans.extend(segment.beside.values())
    found.segments.sort(key=lambda segment: (segment.offset, segment.name))
    found.snapshots.sort(key=lambda at: at.name_offset or 0)
    return found


def current(place: PartitionDirectory) -> PartitionDirectory:
    """Return the partition as it is now: listed again if files were added, removed or renamed since it was listed."""
    if place.seen is None or identity(place.path) == place.seen:
        return place
    return partition(place.path, place.source)


def _sort_in(found: PartitionDirectory, segments: dict[str, SegmentFiles], name: str, at: Target) -> None:
    if not is_live(name):
        (found.others if name.endswith(".deleted") else found.unfinished).append(at)
    elif at.kind is file_kinds.SEGMENT or at.kind in BESIDE:
        assert at.kind is not None
        stem = ENDINGS.sub("", name).partition(".")[0]
        segment = segments.setdefault(stem, SegmentFiles(stem, at.name_offset or 0))
        if at.kind is file_kinds.SEGMENT:
            other: Target | None = at
            if segment.log is None or name == f"{stem}.log":
                other, segment.log = segment.log, at
            if other is not None:  # two files of one base offset, such as a .log and its compressed copy
                found.others.append(other)
        else:
            segment.beside[at.kind] = at
    elif at.kind is file_kinds.PRODUCER_SNAPSHOT:
        found.snapshots.append(at)
    elif at.kind is file_kinds.KRAFT_SNAPSHOT:
        found.kraft_snapshots.append(at)
    elif at.kind is None or name != ENDINGS.sub("", name):
        found.others.append(at)
    else:
        found.texts.append(at)
