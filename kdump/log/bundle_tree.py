"""A bundle as a tree of files: what `kdump bundle` has written, as a directory or packed into a tar file
(docs/bundle.md)."""

from __future__ import annotations

import errno
import json
import os
import stat
import tarfile
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

from kdump.format.bundle_container import ContainerReader
from kdump.format.errors import DecodeError
from kdump.log.bundle_index import (
    MAX_FILE,
    PIECE,
    RECORDS,
    Bytes,
    FileStatus,
    Log,
    StoredDirectory,
    StoredFile,
    read_index,
)
from kdump.log.bundle_log import BundleLog
from kdump.log.bundle_names import CONTAINER, MANIFEST, container_name
from kdump.log.errors import SourceError, SourceNotFound
from kdump.log.file_system import tree_at
from kdump.log.source import Source
from kdump.log.unreadable_paths import note

FORMAT = 1
"""Version of the format of bundles. A reader refuses others."""
MAX_MANIFEST = 16 << 20
"""Maximum bytes of a manifest."""
OPEN = 8
"""Number of directories whose indexes are kept."""
MOUNTS = 1 << 48
"""Added to device numbers: a bundle's files are not those of this machine, even if it was made here."""


class Manifest(NamedTuple):
    """What is known about a bundle as a whole. `directories`: paths of what was bundled, on its host; `depth`: headers
    or crc; `internal`: whether Kafka's own topics are complete; `topics`: those whose records are complete."""

    format: int
    kdump: str
    host: str
    created: int
    directories: list[str]
    names: list[str]
    depth: str
    internal: bool
    topics: list[str]
    complete: bool


class BundleFile:
    """A Source of a small file."""

    def __init__(self, name: str, container: ContainerReader, contents: Bytes, size: int) -> None:
        self.name = name
        self.size: int | None = size
        self.error: str | None = None
        self.keep = True
        self._container = container
        self._frames = contents.frames
        self._held: tuple[int, bytes] = (-1, b"")
        if len(contents.frames) * PIECE >= size + PIECE or size > MAX_FILE:
            raise SourceError(f"{name}: the bundle is damaged: {len(contents.frames)} frames of a file of {size} bytes")

    def read_at(self, position: int, count: int) -> bytes:
        assert self.size is not None
        count = max(0, min(count, self.size - position))
        parts = []
        while count:
            number, inside = divmod(position, PIECE)
            part = self._piece(number)[inside : inside + count]
            part += bytes(min(count, PIECE - inside) - len(part))
            parts.append(part)
            position, count = position + len(part), count - len(part)
        return b"".join(parts)

    def _piece(self, number: int) -> bytes:
        """Return a piece, without the zeros at its end."""
        if number >= len(self._frames):
            return b""
        if self._held[0] != number:
            try:
                frame = self._frames[number]
                if frame.size > PIECE:
                    raise DecodeError("BundleIndex", "frames", number, f"{frame.size} bytes in a piece")
                self._held = number, self._container.read(frame)
            except DecodeError as error:
                raise SourceError(f"{self.name}: the bundle is damaged: {error}; make it again") from error
        return self._held[1]

    def next_data(self, position: int) -> int:
        return position if position < len(self._frames) * PIECE else max(position, self.size or 0)

    def release(self, position: int) -> None:
        pass

    def close(self) -> None:
        pass


class _BundleEntry:
    """What is in a directory of a bundle, as os.DirEntry."""

    def __init__(self, bundle: Bundle, file: StoredFile, path: str) -> None:
        self.name = file.name
        self.path = path
        self._bundle = bundle
        self._file = file

    def is_dir(self) -> bool:
        return self._file.is_directory

    def stat(self) -> os.stat_result:
        if self._file.seen is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.path)
        return self._bundle.status_of(self._file.seen)


class Bundle:
    """A FileTree. `read` returns a function that reads a member of the bundle (position, count) and its size, and
    raises OSError. Raises SourceError for a bundle of which nothing can be read."""

    def __init__(self, path: str, read: Callable[[str], tuple[Callable[[int, int], bytes], int]], number: int) -> None:
        self.path = path
        self.manifest = _manifest(path, read)
        self._read = read
        self._number = number
        self._directory = lru_cache(OPEN)(self._opened)
        for source in range(len(self.manifest.directories)):
            try:
                self._directory(source, "")
            except OSError as error:
                raise SourceError(f"{path}: {error.strerror}") from error

    @property
    def _is_single(self) -> bool:
        return len(self.manifest.directories) == 1

    def stat(self, inside: str, *, follow: bool = True) -> os.stat_result:
        if not inside and not self._is_single:
            return self.status_of(FileStatus(stat.S_IFDIR | 0o555, 0, 0, self.manifest.created * 1_000_000, 0, 0, 0, 0))
        above, _, name = inside.rpartition("/")
        if not inside or (not above and not self._is_single):
            return self.status_of(self._container(inside)[0].status)
        file = self._file(above, name, inside)
        seen = file.seen if follow else file.status
        if seen is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), inside)
        return self.status_of(seen)

    def entries(self, inside: str, path: str) -> list[Any]:
        if not inside and not self._is_single:
            status = FileStatus(stat.S_IFDIR | 0o555, 0, 0, 0, 0, 0, 0, 0)
            files = [StoredFile(name, status) for name in self.manifest.names]
        else:
            directory = self._container(inside)[0]
            if directory.error is not None:
                raise OSError(errno.EIO, f"{directory.error} (when the bundle was made)", path)
            files = list(directory.files.values())
        return [_BundleEntry(self, file, os.path.join(path, file.name)) for file in files]

    def readlink(self, inside: str) -> str:
        above, _, name = inside.rpartition("/")
        file = self._file(above, name, inside)
        if file.target is None:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), inside)
        return file.target

    def open(self, inside: str, path: str) -> Source:
        above, _, name = inside.rpartition("/")
        try:
            directory, container = self._container(above)
            file = directory.files[name]
        except (FileNotFoundError, KeyError):
            raise SourceNotFound(f"{path}: no such file in the bundle") from None
        except OSError as error:
            text = f"{path}: {error.strerror}"
            note(path, text)
            raise SourceError(text) from error
        if file.is_directory:
            raise SourceError(f"{path}: is a directory")
        if file.seen is None:
            raise SourceNotFound(f"{path}: no such file in the bundle")
        if file.contents is None:
            raise SourceError(f"{path}: {file.error or 'its contents are not in the bundle'}")
        if isinstance(file.contents, Bytes):
            return BundleFile(path, container, file.contents, file.seen.size)
        return BundleLog(path, container, file.contents, file.seen)

    def directory(self, inside: str) -> StoredDirectory:
        """Return a directory. Raises OSError."""
        return self._container(inside)[0]

    def status_of(self, status: FileStatus) -> os.stat_result:
        """Return what stat returns for a file of the bundle."""
        seconds, rest = divmod(status.mtimeNs, 1_000_000_000)
        device = status.device + self._number * MOUNTS
        numbers = (status.mode, status.inode, device, 1, status.uid, status.gid, status.size, seconds, seconds, seconds)
        more = {
            "st_mtime": seconds + rest / 1e9,
            "st_mtime_ns": status.mtimeNs,
            "st_blocks": (status.allocated + 511) // 512,
        }
        return os.stat_result(numbers, more)

    def _file(self, above: str, name: str, inside: str) -> StoredFile:
        found = self._container(above)[0].files.get(name)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), inside)
        return found

    def _container(self, inside: str) -> tuple[StoredDirectory, ContainerReader]:
        """Return a directory and its container. Raises OSError."""
        number = 0
        if not self._is_single:
            name, _, inside = inside.partition("/")
            if name not in self.manifest.names:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
            number = self.manifest.names.index(name)
        return self._directory(number, inside)

    def _opened(self, number: int, inside: str) -> tuple[StoredDirectory, ContainerReader]:
        try:
            read, size = self._read(f"{number}/{container_name(inside)}")
        except FileNotFoundError:
            looped = self._behind_loop(number, inside)
            if looped is not None:
                return looped
            above, _, name = inside.rpartition("/")
            if not inside or name not in self._directory(number, above)[0].files:
                raise
            text = "not in the bundle, which is not complete, or from which it was removed"
            raise OSError(errno.EIO, text, inside) from None  # a missing directory would look deleted
        try:
            container = ContainerReader(read, size)
            directory = read_index(container.index)
            container.index = None  # it has been read
            if directory.path != inside:
                raise DecodeError("BundleIndex", "path", 0, f"it is that of {directory.path!r}")
        except DecodeError as error:
            text = f"the bundle is damaged: {number}/{container_name(inside)}: {error}"
            raise OSError(errno.EIO, text, inside) from error
        return directory, container

    def _behind_loop(self, number: int, inside: str) -> tuple[StoredDirectory, ContainerReader] | None:
        """Return the directory above a link to which this leads; None if it is no such link."""
        above, _, name = inside.rpartition("/")
        link = self._directory(number, above)[0].files.get(name) if inside else None
        if link is None or link.target is None or link.followed is None:
            return None
        while True:
            found = self._directory(number, above)
            status = found[0].status
            if (status.device, status.inode) == (link.followed.device, link.followed.inode):
                return found
            if not above:
                return None
            above = above.rpartition("/")[0]


def has_records(directory: str) -> bool:
    """Return False if a partition directory is in a bundle that does not have its records."""
    found = tree_at(directory)
    if found is None or not isinstance(found[0], Bundle):
        return True
    try:
        files = found[0].directory(found[1]).files.values()
    except OSError:
        return False
    return not any(isinstance(file.contents, Log) and RECORDS in file.contents.lacks for file in files)


def _manifest(path: str, read: Callable[[str], tuple[Callable[[int, int], bytes], int]]) -> Manifest:
    """Read the manifest. Raises SourceError."""
    try:
        read_at, size = read(MANIFEST)
        if size > MAX_MANIFEST:
            raise ValueError(f"{size} bytes")
        values = json.loads(read_at(0, size))
        if values["format"] != FORMAT:
            raise SourceError(f"{path}: a bundle of format {values['format']!r}, this kdump reads {FORMAT}")
        manifest = Manifest(**{name: values[name] for name in Manifest._fields})
        lists = (manifest.directories, manifest.names, manifest.topics)
        texts = [manifest.kdump, manifest.host, manifest.depth, *(each for one in lists for each in one)]
        numbers = (manifest.created, manifest.internal, manifest.complete)
        if not all(type(each) is list for each in lists) or [type(each) for each in numbers] != [int, bool, bool]:
            raise ValueError("a value of another type")
        for text in texts:
            os.fsencode(text)  # raises for what is no text, or cannot be printed
        if len(manifest.directories) != len(manifest.names) or not manifest.names:
            raise ValueError("its directories have no names")
        if any(not name or "/" in name or "\0" in name or name in (".", "..") for name in manifest.names):
            raise ValueError("an impossible name of a directory")
    except OSError as error:
        raise SourceError(f"{path}: {MANIFEST}: {error.strerror}") from error
    except (KeyError, TypeError, ValueError, RecursionError, AttributeError) as error:
        raise SourceError(f"{path}: {MANIFEST} is not that of a bundle: {error}") from error
    return manifest


def read_member(root: str, name: str) -> tuple[Callable[[int, int], bytes], int]:
    path = os.path.join(root, name)
    if os.path.islink(path) or not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    return partial(_pread, path, 0), os.stat(path).st_size


def _pread(path: str, base: int, position: int, count: int) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(fd, count, base + position)
    finally:
        os.close(fd)


def _packed(path: str) -> Callable[[str], tuple[Callable[[int, int], bytes], int]]:
    """Return a function that finds the members of a tar file. Raises SourceError for members that no bundle has."""
    members: dict[str, tuple[int, int]] = {}
    try:
        with tarfile.open(path, "r:") as archive:
            for member in archive:
                if member.isdir():
                    continue
                name = member.name
                known = name == MANIFEST or (name.endswith(CONTAINER) and name.count("/") == 1)
                if not member.isreg() or not known or name.startswith("/") or ".." in name.split("/"):
                    raise SourceError(f"{path}: {name!r} is not a file of a bundle; nothing of it was read")
                members[name] = (member.offset_data, member.size)
    except (tarfile.TarError, OSError) as error:
        raise SourceError(f"{path}: not a packed bundle: {error}") from error

    def read(name: str) -> tuple[Callable[[int, int], bytes], int]:
        if name not in members:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        start, size = members[name]
        return lambda position, count: _pread(path, start, position, max(0, min(count, size - position))), size

    return read


def open_bundle(path: str, number: int) -> Bundle:
    """Open a bundle. `number` tells the bundles of a run apart. Raises SourceError."""
    return Bundle(path, partial(read_member, path) if os.path.isdir(path) else _packed(path), number)
