"""Reading next to a running broker: files that go away, grow or are rewritten while a command reads them.

One file is read as it was when it was opened. A conclusion from several files, or from a small file that is rewritten
in place, is valid only if none of them has changed since it was first looked at; a FileWatch detects that. A file that
went away is a Gone (kdump.io.errors) wherever a file is opened that was found in a directory.

Source: org.apache.kafka.storage.internals.log.LocalLog (deleteSegmentFiles, replaceSegments: files are renamed to
.deleted first), LogManager.asyncDelete (a deleted topic's directories are renamed to -delete)."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TypeVar

from kdump.io import file_system
from kdump.io.command_line_paths import existing_paths
from kdump.io.directory_listing import is_url
from kdump.io.errors import SourceError, SourceNotFound, went_away
from kdump.io.fault_tolerant import careful_source
from kdump.io.file_identities import FirstLooks
from kdump.io.source import FileSource, Identity, Source, identity_of, open_source
from kdump.io.window import Window
from kdump.log.paths import Target, reject_pipe
from kdump.log.served_files import current_segments

Opener = Callable[[str], Source]
Open = Callable[[Target], Window]
ReadT = TypeVar("ReadT")


def open_target(target: Target, opener: Opener = open_source) -> Source:
    """Open a file. Raises SourceError; its text is a Gone for a file that was found in a directory, or existed when the
    run began, and is no longer there, unless it is a broken link."""
    reject_pipe(target)
    try:
        return opener(target.path)
    except SourceNotFound as error:
        if file_system.islink(target.path) or (target.source == target.path and target.path not in existing_paths()):
            raise
        raise SourceError(went_away(target.path)) from error


def open_window(target: Target) -> Window:
    """Open a file as is right next to a running broker: the page cache is left unchanged. Raises SourceError."""
    return Window(open_target(target, careful_source))


def identity(path: str) -> Identity | None:
    """Return the current identity of a file or directory; None if it does not exist, or cannot be read."""
    if is_url(path) or path == "-":
        return None
    try:
        return identity_of(file_system.stat(path))
    except (OSError, ValueError):
        return None


PAUSES = (0.1, 0.4, 1.0)
"""Seconds before the second look, and before each later one."""
YOUNG = 1_000_000_000
"""Nanoseconds after a change in which a file may still be half written, or a directory half renamed."""


def is_young(seen: Identity | None) -> bool:
    """Return True if the last change was just now, so that more changes may follow. (A time well in the future comes
    from another clock.)"""
    return seen is not None and abs(time.time_ns() - seen.modified) < YOUNG


@dataclass(frozen=True)
class SeenDirectory:
    """What was in a directory when it was listed. Links are followed."""

    identities: dict[str, Identity] = field(default_factory=dict)
    """Of the directory (under the empty name), and of what is in it; empty if the directory does not exist."""
    files: dict[str, str] = field(default_factory=dict)
    """Paths of regular files by name, in the order of the names."""
    directories: dict[str, str] = field(default_factory=dict)
    """Paths of subdirectories by name."""
    error: OSError | None = None
    """Why the directory could not be listed."""


def see(directory: str) -> SeenDirectory:
    """List a directory once, with the identities of its files."""
    seen = SeenDirectory()
    try:
        seen.identities[""] = identity_of(file_system.stat(directory))
        with file_system.scandir(directory) as entries:
            for entry in sorted(entries, key=attrgetter("name")):
                try:
                    status = entry.stat()
                except OSError:  # a broken or circular link, deleted in the meantime, or the user may only list
                    with suppress(OSError):
                        if entry.is_dir():
                            seen.directories[entry.name] = entry.path
                    continue
                seen.identities[entry.name] = identity_of(status)
                if stat.S_ISREG(status.st_mode):
                    seen.files[entry.name] = entry.path
                elif stat.S_ISDIR(status.st_mode):
                    seen.directories[entry.name] = entry.path
    except OSError as error:
        return replace(seen, error=error)
    return seen


def is_changing(directory: str, before: dict[str, Identity]) -> bool:
    """Return True if files in the directory have changed since `before`, or shortly before it; segments may grow."""
    now = see(directory).identities
    if now.keys() != before.keys():
        return True
    return any(_differs(name, seen, now[name]) for name, seen in before.items())


def _differs(name: str, seen: Identity, now: Identity) -> bool:
    if name.endswith(".log") and seen[:2] == now[:2] and now.size > seen.size:
        return False
    return now != seen or is_young(seen)


def read_stable(path: str, read: Callable[[], ReadT], is_valid: Callable[[ReadT], bool]) -> ReadT:
    """Return the result of `read` for a small file. If that is not valid, read it again a few times, as long as it is
    changing: a broker may be writing it."""
    for pause in PAUSES:
        seen = identity(path)
        content = read()
        if is_valid(content) or (identity(path) == seen and not is_young(seen)):
            return content
        time.sleep(pause)
    return read()


class FileWatch:
    """The files that a conclusion is based on, each with its identity when it was first looked at."""

    def __init__(self) -> None:
        self.first = FirstLooks()
        self.also: FileWatch | None = None
        """Others that the conclusion is based on, which several watches share."""

    def look_at_log(self, directory: str) -> None:
        """Record the directory and the newest segment of one of Kafka's internal logs: the log has changed if either
        has."""
        if is_url(directory):
            return
        self.look(directory, identity(directory))
        for name in current_segments(directory)[-1:]:
            path = os.path.join(directory, name)
            self.look(path, identity(path))

    def look(self, path: str, seen: Identity | None) -> None:
        """Record a file that is looked at. `seen` is None if it was listed, but no longer exists."""
        if path not in self.first:
            self.first.add(path, seen)

    def siblings(self, path: str) -> list[str]:
        """Return the files looked at that have the same stem as this one: a segment, its indexes and its snapshot."""
        return self.first.siblings(path)

    def opening(self, opener: Opener) -> Opener:
        """Return an opener that records every file that it opens."""

        def opened(path: str) -> Source:
            try:
                source = opener(path)
            except SourceNotFound:
                self.look(path, None)
                raise
            if path not in self.first and isinstance(source, FileSource):
                self.look(path, source.identity())
            return source

        return opened

    def changed(self, paths: Iterable[str]) -> bool:
        """Return True if one of the files that were looked at was replaced, changed or removed."""
        return any(path in self.first and self._has_changed(path) for path in paths)

    def any_changed(self) -> bool:
        """Return True if any file has changed, of those that are shared, too."""
        return self.changed(self.first) or (self.also is not None and self.also.any_changed())

    def _has_changed(self, path: str) -> bool:
        first = self.first[path]
        return first is None or identity(path) != first or is_young(first)
