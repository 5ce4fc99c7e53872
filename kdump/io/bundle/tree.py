"""A bundle as a tree of files: what `kdump bundle` has written, as a directory or packed into a tar file
(docs/bundle.md)."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any

from kdump.format.errors import DecodeError
from kdump.format.iso_time import iso
from kdump.io.bundle.index import MAX_FILE, Bytes, StoredDirectory, StoredFile
from kdump.io.bundle.manifest import read_manifest
from kdump.io.bundle.members import ReadPart, part_of_directory, parts_of_file
from kdump.io.bundle.names import FACTS, container_name
from kdump.io.errors import SourceError, SourceNotFound
from kdump.io.frames import FramesReader
from kdump.io.sorted_lines import Extent
from kdump.io.source import NOTHING, RECORDS, Source
from kdump.io.unreadable_paths import note
from kdump.io.withheld import FileStatus, Log, StoredBytes, StoredSegment
from kdump.text import path_text


class BundleFile:
    """A Source of a small file: an index, a checkpoint."""

    lacks = NOTHING

    def __init__(self, name: str, frames: FramesReader, data: Extent, size: int) -> None:
        self.name = name
        self.size: int | None = size
        self.error: str | None = None
        self.keep = True
        self._bytes = StoredBytes(name, frames, data)
        if data.size > size or size > MAX_FILE:
            raise SourceError.at(name, f"the bundle is damaged: {data.size} bytes of a file of {size} bytes")

    def read_at(self, position: int, count: int) -> bytes:
        assert self.size is not None
        count = max(0, min(count, self.size - position))
        return self._bytes.read(position, count).ljust(count, b"\0")

    def next_data(self, position: int) -> int:
        return position if position < self._bytes.size else max(position, self.size or 0)

    def release(self, position: int) -> None:
        pass

    def close(self) -> None:
        pass


OPEN = 4
"""Number of directories of which a part of the index is kept."""
MOUNTS = 1 << 48
"""Added to device numbers: a bundle's files are not those of this machine, even if it was made here."""


class _BundleEntry:
    """What is in a directory of a bundle, as os.DirEntry."""

    def __init__(self, bundle: Bundle, file: StoredFile, above: str) -> None:
        self.name = file.name
        self._above, self._bundle = above, bundle
        self._seen = file.seen

    @property
    def path(self) -> str:
        return os.path.join(self._above, self.name)

    def is_dir(self) -> bool:
        return self._seen is not None and stat.S_ISDIR(self._seen.mode)

    def stat(self) -> os.stat_result:
        if self._seen is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.path)
        return self._bundle.status_of(self._seen)


class Bundle:
    """A FileTree. `read` returns the reader of a part. Raises SourceError for a bundle of which nothing can be read."""

    def __init__(self, path: str, read: ReadPart, number: int) -> None:
        self.path = path
        self.manifest = read_manifest(path, read)
        self._read, self._number = read, number
        self._directory = lru_cache(OPEN)(self._opened)
        for source in range(len(self.manifest.directories)):
            try:
                self._directory(source, "")
            except OSError as error:
                if os.path.isdir(os.path.join(path, FACTS)):
                    raise SourceError.at(path, "a bundle that was unpacked: give the path of the tar file") from error
                raise SourceError.at(path, str(error.strerror)) from error

    @property
    def note(self) -> str:
        """What to tell the user once about a bundle that is read in place of a disk."""
        made = self.manifest
        lacks = "records of clients" if not made.topics else "records of other topics"
        what = [lacks] if made.internal else ["records"]
        what += ["results of checksums"] if made.depth == "headers" else []
        note = f"{path_text(self.path)}: a bundle of {', '.join(map(path_text, made.directories))} on {made.host}"
        note += f", made {iso(made.created)}; it has no {' and no '.join(what)}"
        note += "; its names are replaced" if made.redacted is not None else ""
        return note if made.complete else f"{note}. IT IS NOT COMPLETE: run kdump bundle again"

    @property
    def _is_single(self) -> bool:
        return len(self.manifest.directories) == 1

    @property
    def _root(self) -> FileStatus:
        """Status of the directory above those that were bundled, if there are several."""
        return FileStatus(stat.S_IFDIR | 0o555, 0, 0, self.manifest.created * 1_000_000, 0, 0, 0, 0)

    def stat(self, inside: str, *, follow: bool = True) -> os.stat_result:
        if not inside and not self._is_single:
            return self.status_of(self._root)
        above, _, name = inside.rpartition("/")
        if not inside or (not above and not self._is_single):
            return self.status_of(self.directory(inside).status)
        file = self._file(above, name, inside)
        seen = file.seen if follow else file.status
        if seen is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), inside)
        return self.status_of(seen)

    def entries(self, inside: str, path: str) -> Iterator[Any]:
        if not inside and not self._is_single:
            files = iter([StoredFile(name, self._root) for name in self.manifest.names])
        else:
            directory = self.directory(inside)
            if directory.error is not None:
                raise OSError(errno.EIO, f"{directory.error} (when the bundle was made)", path)
            files = self._files(directory, inside)
        return (_BundleEntry(self, file, path) for file in files)

    def _files(self, directory: StoredDirectory, inside: str) -> Iterator[StoredFile]:
        try:
            yield from directory.files()
        except DecodeError as error:
            raise _damaged(*self._place(inside), error) from error

    def readlink(self, inside: str) -> str:
        above, _, name = inside.rpartition("/")
        file = self._file(above, name, inside)
        if file.target is None:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), inside)
        return file.target

    def open(self, inside: str, path: str) -> Source:
        above, _, name = inside.rpartition("/")
        try:
            file, frames = self._file(above, name, inside), self.directory(above).frames
        except FileNotFoundError:
            raise SourceNotFound.at(path, "no such file in the bundle") from None
        except OSError as error:
            unread = SourceError.at(path, str(error.strerror))
            note(str(unread))
            raise unread from error
        if file.is_directory:
            raise SourceError.at(path, "is a directory")
        if file.seen is None:
            raise SourceNotFound.at(path, "no such file in the bundle")
        if file.contents is None:
            raise SourceError.at(path, f"{file.error or 'its contents are not in the bundle'}")
        if isinstance(file.contents, Bytes):
            size = file.seen.size if file.contents.size is None else file.contents.size
            return BundleFile(path, frames, file.contents.data, size)
        return StoredSegment(path, frames, file.contents, file.seen, self.manifest.redacted)

    def has_records(self, inside: str) -> bool:
        try:
            files = self.directory(inside).files()
            return not any(isinstance(file.contents, Log) and RECORDS in file.contents.lacks for file in files)
        except (OSError, DecodeError):
            return False

    def status_of(self, status: FileStatus) -> os.stat_result:
        """Return what stat returns for a file of the bundle."""
        seconds, rest = divmod(status.mtimeNs, 1_000_000_000)
        device = status.device + self._number * MOUNTS
        times = (seconds,) * 3
        numbers = (status.mode, status.inode, device, status.links, status.uid, status.gid, status.size, *times)
        more = {
            "st_mtime": seconds + rest / 1e9,
            "st_mtime_ns": status.mtimeNs,
            "st_blocks": (status.allocated + 511) // 512,
        }
        return os.stat_result(numbers, more)

    def _file(self, above: str, name: str, inside: str) -> StoredFile:
        """Return a file by its name in the directory `above`. Raises OSError."""
        entry = self._found(*self._place(above), name)
        if entry is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), inside)
        return entry

    def _found(self, number: int, above: str, name: str) -> StoredFile | None:
        """Return a file by its name in the directory `above`; None if there is none. Raises OSError."""
        directory = self._directory(number, above)
        try:
            return directory.find(name)
        except DecodeError as error:
            raise _damaged(number, above, error) from error

    def directory(self, inside: str) -> StoredDirectory:
        """Return a directory. Raises OSError."""
        return self._directory(*self._place(inside))

    def _place(self, inside: str) -> tuple[int, str]:
        """Return the number of the directory that was bundled, and the path in it. Raises OSError."""
        number = 0
        if not self._is_single:
            name, _, inside = inside.partition("/")
            if name not in self.manifest.names:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
            number = self.manifest.names.index(name)
        return number, inside

    def _opened(self, number: int, inside: str) -> StoredDirectory:
        try:
            directory = StoredDirectory(self._read(f"{number}/{container_name(inside)}"))
            if directory.path != inside:
                raise DecodeError("BundleIndex", "path", 0, f"it is that of {directory.path[:40]!r}")
        except FileNotFoundError:
            looped = self._through_loop(number, inside)
            if looped is not None:
                return looped
            above, _, name = inside.rpartition("/")
            if not inside or self._found(number, above, name) is None:
                raise
            message = "not in the bundle, which is not complete, or from which it was removed"
            raise OSError(errno.EIO, message, inside) from None  # a missing directory would look deleted
        except DecodeError as error:
            raise _damaged(number, inside, error) from error
        return directory

    def _through_loop(self, number: int, inside: str) -> StoredDirectory | None:
        """Return the directory above a link to which this leads; None if it is no such link."""
        above, _, name = inside.rpartition("/")
        link = self._found(number, above, name) if inside else None
        if link is None or link.target is None or link.followed is None:
            return None
        while True:
            directory = self._directory(number, above)
            if (directory.status.device, directory.status.inode) == (link.followed.device, link.followed.inode):
                return directory
            if not above:
                return None
            above = above.rpartition("/")[0]


def _damaged(number: int, inside: str, error: DecodeError) -> OSError:
    return OSError(errno.EIO, f"the bundle is damaged: {number}/{container_name(inside)}: {error}", inside)


def open_bundle(path: str, number: int) -> Bundle:
    """Open a bundle. `number` tells the bundles of a run apart. Raises SourceError."""
    return Bundle(path, partial(part_of_directory, path) if os.path.isdir(path) else parts_of_file(path), number)
