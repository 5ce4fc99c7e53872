"""A partition directory: which of its files belong together. It keeps only their names; the files are grouped when they
are asked for, because a broker has 200,000 of them.

Source: org.apache.kafka.storage.internals.log.LogFileUtils and LocalLog for the names."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from sys import intern
from typing import TypeVar

from kdump.format.numbers import LONG_MAX
from kdump.io.directory_listing import DirectoryEntry, items
from kdump.io.errors import listing_error
from kdump.io.remote_paths import remote_partition
from kdump.io.source import Identity
from kdump.log import file_kinds
from kdump.log.file_kinds import DIGITS, ENDINGS, FileKind, by_name
from kdump.log.live_files import identity
from kdump.log.paths import PARTITION, Target, is_live
from kdump.log.served_files import is_served, swaps_in

ValueT = TypeVar("ValueT")

IN_SEGMENTS = frozenset((file_kinds.SEGMENT, *file_kinds.INDEXES))
LIVE = frozenset((".log", ".index", ".timeindex", ".txnindex"))
"""Endings of the files of a segment."""
HIGHEST = f"{LONG_MAX:020}"
"""The highest base offset in a file's name that a broker can parse."""
NO_SEGMENT = "no segment (<20 digits>.log) in this directory"
"""Reason why a given partition directory cannot be read."""


Endings = dict[FileKind, str]
"""Endings of the files with one name, by their kinds; segments with the same ones share the dictionary."""


class SegmentFiles:
    """A .log (None: it is gone) and its indexes next to it, by kind. Of a directory's files, only the name and the
    endings are kept, because a directory may have 200,000 of them."""

    __slots__ = ("_endings", "_indexes", "_log", "_place", "name", "offset")

    def __init__(
        self, name: str, offset: int, log: Target | None = None, indexes: dict[FileKind, Target] | None = None
    ) -> None:
        self.name, self.offset = name, offset
        self._log, self._indexes = log, indexes or {}
        self._place: Target | None = None
        self._endings: Endings = {}

    @classmethod
    def of_names(cls, name: str, offset: int, place: Target, endings: Endings) -> SegmentFiles:
        """Return the files of one name in a directory; `place` has its path, with a slash at its end, and what its
        files have in common."""
        files = cls(name, offset)
        files._place, files._endings = place, endings
        return files

    @property
    def log(self) -> Target | None:
        if self._place is None:
            return self._log
        ending = self._endings.get(file_kinds.SEGMENT)
        return None if ending is None else self._target(ending, file_kinds.SEGMENT)

    @property
    def indexes(self) -> dict[FileKind, Target]:
        if self._place is None:
            return self._indexes
        return {kind: self._target(self._endings[kind], kind) for kind in self.index_kinds}

    @property
    def index_kinds(self) -> list[FileKind]:
        """The kinds of its indexes."""
        if self._place is None:
            return list(self._indexes)
        return [kind for kind in self._endings if kind is not file_kinds.SEGMENT]

    def with_log(self, log: Target) -> SegmentFiles:
        """Return the same with another .log."""
        return SegmentFiles(self.name, self.offset, log, self.indexes)

    def _target(self, ending: str, kind: FileKind) -> Target:
        place = self._place
        assert place is not None
        return Target(place.path + self.name + ending, self.offset, place.topic, place.partition, kind, place.source)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SegmentFiles):
            return NotImplemented
        own, its = ((segment.name, segment.offset, segment.log, segment.indexes) for segment in (self, other))
        return own == its

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"SegmentFiles({self.name!r}, {self.offset}, {self.log!r}, {self.indexes!r})"


@dataclass
class PartitionFiles:
    """The files of a partition directory by what they are."""

    segments: list[SegmentFiles] = field(default_factory=list)
    orphans: list[Target] = field(default_factory=list)
    """Indexes without a segment."""
    snapshots: list[Target] = field(default_factory=list)
    kraft_snapshots: list[Target] = field(default_factory=list)
    texts: list[Target] = field(default_factory=list)
    installed: list[Target] = field(default_factory=list)
    """.swap files that a startup installs, those of `segments` and `orphans`."""
    unfinished: list[Target] = field(default_factory=list)
    """.cleaned files, and .swap files that a startup deletes."""
    replaced: list[Target] = field(default_factory=list)
    """Files that a startup deletes because .swap files take their place."""
    others: list[Target] = field(default_factory=list)
    """.deleted files, files whose names Kafka does not know, and second files of one base offset (.log.gz)."""

    def beside(self) -> Iterator[Target]:
        """Yield all files but the segments and their indexes."""
        yield from chain(self.orphans, self.snapshots, self.kraft_snapshots, self.texts)
        yield from chain(self.unfinished, self.replaced, self.others)


@dataclass(frozen=True, slots=True)
class DirectoryListing:
    """What is in a directory, as compact as possible: a broker has 200,000 files. `files` and `directories`: see
    `_packed`."""

    files: bytes = b""
    directories: bytes = b""
    error: str = ""
    """Why the directory could not be listed."""
    seen: Identity | None = None
    """Identity of the directory from before it was listed; None if it is not on a local disk."""


@dataclass(slots=True)
class PartitionDirectory:
    """A partition directory, which is listed when something in it is first asked for. `state` is "" for a live one,
    else delete, future or stray; topic and partition are None if the directory has another name, and the topic may be
    an ID in remote storage (kdump.io.remote_paths). `given`: the files, if they are not those in the directory."""

    path: str
    source: str
    topic: str | None
    partition: int | None
    state: str
    given: PartitionFiles | None = None
    listed: DirectoryListing | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        return os.path.basename(os.path.abspath(self.path))

    @property
    def listing(self) -> DirectoryListing:
        if self.listed is None:
            self.listed = DirectoryListing() if self.given is not None else _list(self.path)
        return self.listed

    @property
    def listing_errors(self) -> list[str]:
        """Why the directory could not be listed."""
        return [self.listing.error] if self.listing.error else []

    @property
    def directories(self) -> list[str]:
        """Paths of the directories in it, which a broker ignores."""
        return [os.path.join(self.path, name) for name in _names(self.listing.directories)]

    @property
    def file_names(self) -> list[str]:
        """The names of its files, sorted."""
        return (
            [os.path.basename(target.path) for target in self.files()]
            if self.given
            else list(_names(self.listing.files))
        )

    @property
    def grouped(self) -> PartitionFiles:
        """Its files. They are shared: do not change them."""
        if self.given is not None:
            return self.given
        return _grouped(self.path, self.source, self.topic, self.partition, self.listing.files)

    @property
    def segments(self) -> list[SegmentFiles]:
        return self.grouped.segments

    @property
    def orphans(self) -> list[Target]:
        return self.grouped.orphans

    @property
    def snapshots(self) -> list[Target]:
        return self.grouped.snapshots

    @property
    def kraft_snapshots(self) -> list[Target]:
        return self.grouped.kraft_snapshots

    @property
    def texts(self) -> list[Target]:
        return self.grouped.texts

    @property
    def installed(self) -> list[Target]:
        return self.grouped.installed

    @property
    def unfinished(self) -> list[Target]:
        return self.grouped.unfinished

    @property
    def replaced(self) -> list[Target]:
        return self.grouped.replaced

    @property
    def others(self) -> list[Target]:
        return self.grouped.others

    def text(self, name: str) -> Target | None:
        """Return the small file with exactly this name."""
        if self.given is not None:
            return next((target for target in self.texts if os.path.basename(target.path) == name), None)
        if name not in _names(self.listing.files):
            return None
        kind, offset = by_name(name)
        return Target(os.path.join(self.path, name), offset, self.topic, self.partition, kind, self.source)

    def files(self) -> Iterator[Target]:
        """Yield all files."""
        here = self.grouped
        for segment in here.segments:
            if segment.log is not None:
                yield segment.log
            yield from segment.indexes.values()
        yield from here.beside()

    def with_segments(self, segments: list[SegmentFiles], path: str = "") -> PartitionDirectory:
        """Return the same partition with these segments; `path`: another path to show for it."""
        return replace(self, path=path or self.path, given=replace(self.grouped, segments=segments))


def partition(directory: str, source: str = "") -> PartitionDirectory:
    """Return the partition directory at a path."""
    path = directory if "://" in directory else os.path.abspath(directory)
    match = PARTITION.match(os.path.basename(path.rstrip("/")))
    if match is None:
        topic, number = (remote_partition(path) or (None, None))[:2]
        return PartitionDirectory(directory, source or directory, topic, number, "")
    own = intern(match["topic"]), int(match["partition"]), match["state"] or ""
    return PartitionDirectory(directory, source or directory, *own)


def applied_checkpoints(state: str, checkpointed: Mapping[str, ValueT]) -> Mapping[str, ValueT]:
    """Return those of a partition's checkpointed offsets that apply to its directory in a `state`: all for a live one,
    for a future one only the log start offset, none for others (LogManager.loadLog). They are by the file's name
    without '-checkpoint'."""
    if state == "future":
        return {name: checkpoint for name, checkpoint in checkpointed.items() if name == "log-start-offset"}
    return {} if state else checkpointed


def log_start_offset(checkpointed: int | None, first: int | None, tiered: bool) -> int | None:
    """Return the log start offset of a log (LogLoader.load): the one in log-start-offset-checkpoint, or the base offset
    of its first segment if that is higher and remote storage does not have the records between; None if neither is
    known."""
    if checkpointed is None or first is None or tiered:
        return first if checkpointed is None else checkpointed
    return max(checkpointed, first)


def one_file(target: Target, segment: SegmentFiles, state: str = "") -> PartitionDirectory:
    """Return a partition that consists of the files of one segment, given by its path."""
    return PartitionDirectory(
        target.path, target.source, target.topic, target.partition, state, PartitionFiles([segment])
    )


def current(place: PartitionDirectory) -> PartitionDirectory:
    """Return the partition as it is now: listed again if files were added, removed or renamed since it was listed."""
    if place.listing.seen is None or identity(place.path) == place.listing.seen:
        return place
    return partition(place.path, place.source)


def _list(directory: str) -> DirectoryListing:
    seen = identity(directory)
    try:
        return listing_of(items(directory), seen)
    except OSError as error:
        return DirectoryListing(error=listing_error(error, directory), seen=seen)


def listing_of(entries: list[DirectoryEntry], seen: Identity | None) -> DirectoryListing:
    """Return the DirectoryListing of a directory with these entries; `seen`: its identity from before it was listed."""
    files = [entry.name for entry in entries if not entry.is_directory]
    return listing_of_names(files, [entry.name for entry in entries if entry.is_directory], seen)


def listing_of_names(files: list[str], directories: list[str], seen: Identity | None) -> DirectoryListing:
    """Return the DirectoryListing of a directory with these files and directories, both sorted."""
    return DirectoryListing(_packed(files), _packed(directories), "", seen)


def _packed(names: list[str]) -> bytes:
    """Return names in a fifth of their size: those of segments and indexes have much in common."""
    return zlib.compress("/".join(names).encode("utf-8", "surrogatepass"), 1) if names else b""


def _names(packed: bytes) -> list[str]:
    return zlib.decompress(packed).decode("utf-8", "surrogatepass").split("/") if packed else []


@lru_cache(8)
def _grouped(path: str, source: str, topic: str | None, number: int | None, names: bytes) -> PartitionFiles:
    files = PartitionFiles()
    above = os.path.join(path, "")
    place = Target(above, None, topic, number, None, source)
    segments: dict[str, tuple[str, ...]] = {}
    listed = _names(names)
    swaps = swaps_in(path, listed)
    for name in listed:
        stem, ending = name[:DIGITS], name[DIGITS:]
        if swaps.installed and swaps.replaces(name):
            kind, offset = by_name(name)
            files.replaced.append(Target(above + name, offset, topic, number, kind, source))
            continue
        if ending in LIVE and stem <= HIGHEST and stem.isdigit() and stem.isascii():  # most names; by_name takes longer
            segments[stem] = (*segments.get(stem, ()), ending)
            continue
        kind, offset = by_name(name)
        if kind in IN_SEGMENTS and is_served(name, swaps):
            stem = name.partition(".")[0]
            segments[stem] = (*segments.get(stem, ()), name[len(stem) :])
            if name in swaps.installed:
                files.installed.append(Target(above + name, offset, topic, number, kind, source))
        else:
            its_list = _list_of(name if offset is None else HIGHEST + ending)
            getattr(files, its_list).append(Target(above + name, offset, topic, number, kind, source))
    for stem, names_end in segments.items():
        offset = int(stem) if len(stem) == DIGITS else by_name(stem + names_end[0])[1] or 0
        own, others = _own_and_others(names_end)
        for ending in others:
            files.others.append(Target(above + stem + ending, offset, topic, number, file_kinds.SEGMENT, source))
        segment = SegmentFiles.of_names(stem, offset, place, own)
        if file_kinds.SEGMENT in own:
            files.segments.append(segment)
        else:
            files.orphans.extend(segment.indexes.values())
    files.segments.sort(key=lambda segment: (segment.offset, segment.name))
    files.snapshots.sort(key=lambda target: target.name_offset or 0)
    return files


@lru_cache(256)
def _own_and_others(endings: tuple[str, ...]) -> tuple[Endings, tuple[str, ...]]:
    """Return the endings of the files with one base offset, and those of files that are none of its segment: if there
    are several, such as a .log and its compressed copy, the segment is that which is named .log, else the first."""
    names_of_kind: dict[FileKind, str] = {}
    others = []
    for ending in endings:
        kind = by_name("0" * 20 + ending)[0]
        assert kind is not None
        before = names_of_kind.get(kind)
        if kind is file_kinds.SEGMENT and before is not None:
            others.append(before if ending == ".log" else ending)
            if ending != ".log":
                continue
        names_of_kind.pop(kind, None)
        names_of_kind[kind] = ending
    return names_of_kind, tuple(others)


@lru_cache(256)
def _list_of(name: str) -> str:
    """Return the list of PartitionFiles that a file with this name belongs to, which is none of a segment's."""
    if not is_live(name):
        return "unfinished" if name.endswith((".swap", ".cleaned")) else "others"
    kind = by_name(name)[0]
    if kind is file_kinds.PRODUCER_SNAPSHOT:
        return "snapshots"
    if kind is file_kinds.KRAFT_SNAPSHOT:
        return "kraft_snapshots"
    return "others" if kind is None or name != ENDINGS.sub("", name) else "texts"
