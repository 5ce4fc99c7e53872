"""Finds the files that a path denotes, and parses the names on a broker's disk."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from kdump.answer import PathText
from kdump.io import file_system
from kdump.io.directory_listing import is_inside, is_no_file, is_url, items
from kdump.io.errors import SourceError, Unlisted, is_gone, listing_error
from kdump.io.link_boundary import add_root
from kdump.io.remote_paths import looks_like_topic_id, nameless_topic, remote_partition
from kdump.io.run import Run
from kdump.log.file_kinds import AT_ROOT, KRAFT_SNAPSHOT, FileKind, by_name
from kdump.log.internal_topics import METADATA_TOPIC

# topic-partition, with the suffix that a broker appends to a directory that is being deleted or moved, or is a stray.
PARTITION = re.compile(
    r"^(?P<topic>[\w.-]+)-(?P<partition>[0-9]{1,10})(?:\.[0-9a-f]{32}-(?P<state>delete|future|stray))?$"
)

REPLACED = re.compile(r"\.(?:deleted|swap|cleaned)(?:\.|$)")
"""In the names of files that a broker deletes, or whose log cleaner writes them."""
HALF_COPIED = re.compile(r"\.(?:log|index|timeindex|txnindex|snapshot)\.(?:part|tmp)(?:\.|$)")
"""In the names of files that a copy has not completed."""


class Target(NamedTuple):
    """A file to read. `kind` and `name_offset`, the base offset, come from its name, None if it does not contain them;
    topic and partition come from the name of its directory; the topic may be an ID (kdump.io.remote_paths)."""

    path: str
    name_offset: int | None
    topic: str | None
    partition: int | None
    kind: FileKind | None = None
    source: str = ""
    """The log directory it was found in, or the path that was given."""

    @property
    def topic_name(self) -> str | None:
        """The topic, also of a metadata snapshot above all topics; None if its name is not known."""
        if self.topic is None:
            return METADATA_TOPIC if self.kind is KRAFT_SNAPSHOT else None
        is_id = looks_like_topic_id(self.topic) and nameless_topic(os.path.dirname(self.path))
        return None if is_id else self.topic


class FilePosition(NamedTuple):
    """Bytes position..position+size-1 of a file."""

    file: PathText
    position: int
    size: int


def target(path: str, kind: FileKind | None = None, source: str = "") -> Target:
    """Return the Target for a path, from its name; `kind` overrides that of the name."""
    named, offset = by_name(path)
    above = os.path.dirname(path if "://" in path else os.path.abspath(path))
    directory = PARTITION.match(os.path.basename(above))
    remote = remote_partition(above) if directory is None else None
    topic, number = (directory["topic"], int(directory["partition"])) if directory else (remote or (None, None))[:2]
    topic, number = (topic, number) if path != "-" else (None, None)
    return Target(path, offset, topic, number, kind or named, source or path)


def seen_file(path: str) -> Target:
    """Return the Target for a file that was seen in its directory: if it is missing when it is opened, it went away."""
    return target(path, source=os.path.dirname(path) or ".")


def reject_pipe(target: Target) -> None:
    """Raise SourceError if the file was found in a directory and is not a regular file: opening a pipe there would
    block forever."""
    if target.source != target.path and "://" not in target.path and is_no_file(target.path):
        raise SourceError.at(target.path, "not a file")


def is_live(path: str) -> bool:
    """Return True if a broker reads the file: it is not being deleted, and not half written, by the log cleaner or a
    copy. A segment is what ends in .log (LogFileUtils.isLogFile); kdump also takes one that was compressed."""
    return not is_replaced(path) and HALF_COPIED.search(path.rpartition("/")[2]) is None


def is_replaced(path: str) -> bool:
    """Return True if a broker was deleting the file, or its log cleaner was writing it."""
    return REPLACED.search(path.rpartition("/")[2]) is not None


class UnlistedCollector:
    """Notes the directories that cannot be listed in what is done with its `run`, which passes every error on."""

    def __init__(self, run: Run) -> None:
        self.run = replace(run, unreadable=self._note)
        self.unlisted: list[str] = []
        self._unreadable = run.unreadable

    def _note(self, error: SourceError) -> None:
        if isinstance(error, Unlisted) and not is_gone(error):
            self.unlisted.append(error.path)
        self._unreadable(error)

    def apart_from(self, places: Iterable[str]) -> list[str]:
        """Return those directories that are not in one of `places`: any of them may be a log directory."""
        above = [os.path.abspath(path) for path in places if not is_url(path)]
        return [path for path in self.unlisted if not any(is_inside(os.path.abspath(path), it) for it in above)]


def directories(path: str, run: Run) -> Iterator[str]:
    """Yield the directory and all readable ones below it, following each link once, but not to what is below it anyway;
    calls `run.unreadable` for the others."""

    def report(error: OSError) -> None:
        run.unreadable(Unlisted(listing_error(error, str(error.filename))))

    if is_url(path):
        yield from _below_url(path, run)
        return
    seen, top = set(), os.path.realpath(path)
    for directory, below, files in file_system.walk(path, onerror=report, followlinks=True):
        try:
            status = file_system.stat(directory)
        except OSError as error:
            report(error)
            continue
        is_link = directory != path and file_system.islink(directory)
        if (status.st_dev, status.st_ino) in seen or (is_link and is_inside(os.path.realpath(directory), top)):
            below.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        if any(by_name(name)[0] in AT_ROOT for name in files) and file_system.tree_at(directory) is None:
            add_root(directory)
        below.sort(key=natural)
        yield directory


def _below_url(url: str, run: Run) -> Iterator[str]:
    """Like `directories`, for an object store."""
    yield url
    try:
        items_below = items(url)
    except OSError as error:
        run.unreadable(Unlisted(listing_error(error, str(error.filename))))
        return
    for item in sorted(items_below, key=lambda item: natural(item.name)):
        if item.is_directory:
            yield from _below_url(item.path, run)


def natural(name: str) -> tuple[str, int, str]:
    """Sort key for directory names: topics by name, their partitions by number."""
    match = PARTITION.match(name)
    return (match.group("topic"), int(match.group("partition")), name) if match else (name, -1, name)


def short_name(path: str) -> str:
    """Return the last directory and the name of a file."""
    return "/".join(path.rstrip("/").split("/")[-2:])
