"""Output directories and files: new, apart from the input, and never overwriting anything."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from typing import BinaryIO

from kdump.io.directory_listing import is_inside, is_url, real_path
from kdump.io.file_access import OWNER, access_of, make_directories, new_file
from kdump.io.file_system import added_files
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.log_directory import META, ROOT_FILES, LogDirectory, directory_at
from kdump.log.partition_directory import PartitionDirectory, partition
from kdump.log.paths import PARTITION
from kdump.signals import uninterrupted

__all__ = ["OutputError"]

PASSING = ".kdump-part"
"""Suffix of a file's name until the file is complete."""


def _sync_file_system() -> Callable[[str], None] | None:
    """Return a function that writes all of the file system of a path to its disk (syncfs); None if there is none."""
    import ctypes

    call = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None) if sys.platform == "linux" else None
    if call is None:
        return None

    def sync(path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if call(fd):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        finally:
            os.close(fd)

    return sync


sync_file_system = _sync_file_system()


class OutputError(Exception):
    """Output cannot be written; the message states what, where and why."""


class OutputExists(OutputError):
    """Something is at the path already."""


class OutputNotAllowed(OutputError):
    """The path is in what is read, or on a Kafka disk."""


class OutputDirectory:
    """A directory that is created when it is first written to. It must not be inside any of `sources`, the paths that
    are read, nor on a Kafka disk, where a broker would stop because of it. Nobody may read its files who may not read
    the sources; what is made of the cluster's metadata, which have credentials, is for its owner alone. Raises
    OutputError if it is where it must not be, or if `root` exists and is not an empty directory."""

    def __init__(self, root: str, sources: Iterable[str]) -> None:
        self._sources = tuple(sources)
        refuse_output(root, self._sources)
        self.root = os.path.abspath(root)
        self._syncs_each = True
        if os.path.lexists(self.root):
            self._must_be_empty(root)

    def _must_be_empty(self, named: str) -> None:
        try:
            if not os.path.isdir(self.root):
                raise OutputExists(f"{named} exists and is not a directory; choose a new one")
            if os.listdir(self.root):
                raise OutputExists(f"{named} exists and is not empty; choose a new directory")
        except OSError as error:
            raise OutputError(f"{named}: {error.strerror}") from error

    @cached_property
    def access(self) -> int:
        """The permission bits of its files."""
        return _access_of(self._sources)

    def path(self, name: str) -> str:
        """Return the path of a file in the directory. `name` is relative, with / between directories; raises ValueError
        for one that leads outside, which is a mistake of the caller."""
        parts = name.split("/")
        if not name or any(part in ("", ".", "..") or "\0" in part for part in parts):
            raise ValueError(f"not a valid file name: {name!r}")
        return os.path.join(self.root, *parts)

    def writing(self, name: str) -> AbstractContextManager[BinaryIO]:
        """Open a new file. It gets its name once it is completely written and, unless this is within `synced_once`,
        synced to disk, and is removed if the block raises. Raises OutputError, also for write errors within the
        block."""
        access = OWNER if METADATA_TOPIC in name else self.access
        return _writing(self.path(name), access, syncs=self._syncs_each)

    def write(self, name: str, data: bytes) -> None:
        """Write a small file. Raises OutputError."""
        with self.writing(name) as file:
            file.write(data)

    @contextmanager
    def synced_once(self) -> Iterator[None]:
        """Sync the files of the block at its end, all at once, which takes a fraction of the time of each alone. What
        states that they are complete, such as a ledger, is written after it. Raises OutputError."""
        try:
            self._syncs_each = sync_file_system is None
            yield
            if sync_file_system is not None and os.path.isdir(self.root):
                with explained(self.root):
                    sync_file_system(self.root)
        finally:
            self._syncs_each = True

    @contextmanager
    def together(self, name: str) -> Iterator[None]:
        """Create a directory. It gets its name once it is complete; nothing remains of it if the block raises or writes
        nothing. Write its files to `name` + PASSING. Raises OutputError."""
        path, passing = self.path(name), self.path(name + PASSING)
        try:
            yield
            if os.path.isdir(passing):
                if os.path.lexists(path):
                    raise OutputExists(f"{path} was created in the meantime; it is not overwritten")
                os.rename(passing, path)
        except OSError as error:
            raise OutputError(f"{path}: cannot be written: {error.strerror}") from error
        finally:
            shutil.rmtree(passing, ignore_errors=True)

    @contextmanager
    def whole(self) -> Iterator[OutputDirectory]:
        """Write everything or nothing: yields a directory next to this one, to write to, which takes its place when the
        block ends, and of which nothing remains if the block raises. Raises OutputError."""
        passing = OutputDirectory(self.root + PASSING, ())
        passing.access = self.access
        try:
            with passing.synced_once():
                yield passing
            with explained(self.root), uninterrupted():
                os.rename(passing.root, self.root)
        finally:
            with uninterrupted():
                shutil.rmtree(passing.root, ignore_errors=True)


def _access_of(sources: tuple[str, ...]) -> int:
    """Return the permission bits of what is made of the sources."""
    return OWNER if any(METADATA_TOPIC in source for source in sources) else access_of(sources)


class OutputFile:
    """A single new file, under the rules of OutputDirectory; its directory may contain other files. `replaces`: it may
    take the place of an existing one. Raises OutputError."""

    def __init__(self, path: str, sources: Iterable[str], *, replaces: bool = False) -> None:
        self._sources = tuple(sources)
        refuse_output(path, self._sources)
        self.path = os.path.abspath(path)
        self.replaces = replaces
        if not os.path.lexists(self.path):
            return
        if os.path.islink(self.path) or not os.path.isfile(self.path):
            raise OutputError(f"{path} exists and is not a regular file; choose another name")
        if not replaces:
            raise OutputExists(f"{path} exists and is not overwritten; choose another name")

    def writing(self) -> AbstractContextManager[BinaryIO]:
        """Like OutputDirectory.writing."""
        access = _access_of(self._sources)
        return replacing(self.path, access) if self.replaces else _writing(self.path, access)


@contextmanager
def replacing(path: str, access: int) -> Iterator[BinaryIO]:
    """Open a file with these permission bits that takes the place of the one at `path` once it is completely written
    and synced to disk; an unfinished one of an earlier run is overwritten. Raises OutputError."""
    passing = path + PASSING
    try:
        with explained(path):
            with suppress(FileNotFoundError):  # if it is a link, what it points to is not written to
                os.unlink(passing)
            with open(new_file(passing, access), "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            with uninterrupted():
                os.replace(passing, path)
    finally:
        with uninterrupted(), suppress(OSError):
            os.unlink(passing)


@contextmanager
def _writing(path: str, access: int, *, syncs: bool = True) -> Iterator[BinaryIO]:
    passing = path + PASSING
    is_ours = False
    try:
        with explained(passing), uninterrupted():
            make_directories(os.path.dirname(path), access)
            file = open(new_file(passing, access), "wb")  # noqa: SIM115
            is_ours = True
        with explained(path, passing):
            with file:
                yield file
                file.flush()
                if syncs:
                    os.fsync(file.fileno())
            with uninterrupted():  # a signal between the two steps would leave both names
                _publish(passing, path)
                with suppress(FileNotFoundError):
                    os.unlink(passing)
                is_ours = False
    finally:
        if is_ours:
            with uninterrupted(), suppress(FileNotFoundError):
                os.unlink(passing)


@contextmanager
def explained(path: str, *also: str) -> Iterator[None]:
    """Raise OutputError instead of an OSError that names one of the paths, or none."""
    try:
        yield
    except OSError as error:
        if also and error.filename not in (None, path, *also):
            raise
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error


def lock_directory(path: str, refusal: str) -> int:
    """Open a directory, so that until it is closed, this raises OutputError(`refusal`) for it everywhere."""
    with explained(path):
        lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise OutputError(f"{path}: {refusal}") from None
    except OSError:  # a file system without locks
        pass
    return lock


def _publish(passing: str, path: str) -> None:
    """Give a file its name. Raises FileExistsError if a file of that name exists by now."""
    try:
        os.link(passing, path)
        return
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        pass
    with open(new_file(path, OWNER), "wb"):
        try:
            os.replace(passing, path)
        except OSError:
            os.unlink(path)
            raise


def refuse_output(root: str, sources: Iterable[str]) -> None:
    """Raise OutputError if the output would be on a Kafka disk or inside the input."""
    if is_url(root):
        raise OutputError(f"{root}: is a URL; pass a path on this machine")
    own = real_path(os.path.abspath(root))
    _refuse_kafkas(root, own)
    for source in (*sources, added_files()[1] or "-"):
        if is_url(source) or source == "-":
            continue
        place = real_path(source)
        if os.path.isdir(place) and is_inside(own, place):
            raise OutputNotAllowed(
                f"refusing to write to {root}: it is in {source}, which is read; choose another directory"
            )
        above = directory_at(os.path.dirname(place)) if is_inside(own, os.path.dirname(place)) else None
        is_disk = isinstance(above, LogDirectory) and above.files  # more than copies of some partitions
        is_partition = isinstance(above, PartitionDirectory) and above.topic is not None and not os.path.isdir(place)
        if is_disk or is_partition:
            raise OutputNotAllowed(
                f"refusing to write to {root}: it is in the same directory as {source}, on Kafka's disk; choose "
                "another directory"
            )


def _refuse_kafkas(root: str, own: str) -> None:
    """Raise OutputError if a directory is a log directory or a partition directory, or is inside one. Copies of some
    partitions or of one checkpoint do not make a log directory, and a copy of a segment does not make a partition
    directory."""
    here = own
    while True:
        # Nothing is listed but what has a partition's name: a directory above may have a million files.
        files = [name for name in ROOT_FILES if os.path.isfile(os.path.join(here, name))]
        if META in files or len(files) > 1:
            raise OutputNotAllowed(
                f"refusing to write to {root}: it is in {here}, a Kafka log directory; choose another directory"
            )
        if PARTITION.match(os.path.basename(here)) and os.path.isdir(here) and partition(here).segments:
            raise OutputNotAllowed(
                f"refusing to write to {root}: it is in {here}, a Kafka partition directory; choose another directory"
            )
        above = os.path.dirname(here)
        if above == here:
            return
        here = above
