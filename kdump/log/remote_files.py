"""Objects of tiered segments as files of their partition's directory: what a broker reads from remote storage is read
like a local segment."""

from __future__ import annotations

import errno
import os
import stat
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from kdump.format.batch_formats import LARGEST_HEADER
from kdump.format.batch_header import BatchHeader
from kdump.format.errors import DecodeError
from kdump.format.legacy_message import MessageHeader
from kdump.io import file_system
from kdump.io.directory_listing import is_url
from kdump.io.errors import Located, SourceError, SourceNotFound
from kdump.io.partly_readable import PartlyReadable
from kdump.io.remote_paths import remote_partition
from kdump.io.source import Source, open_source
from kdump.log.file_kinds import SEGMENT, by_name
from kdump.log.offset_index_lookup import open_index_lookup
from kdump.log.region import read_header

LOCAL, REMOTE, BOTH = "local", "remote", "both"
"""Where a segment is."""
DEVICE = 1 << 47
"""Device number of these files, which are on no disk."""


class RemoteFile(NamedTuple):
    """An object as a file. `size` in bytes, `time` in epoch ms; `stop`: the first offset that the next segment has, if
    the object goes beyond it; `problem`: why it cannot be read."""

    object: str
    size: int
    time: int
    stop: int | None = None
    problem: str = ""


class _Entry(NamedTuple):
    """As os.DirEntry."""

    name: str
    path: str
    status: os.stat_result

    def is_dir(self) -> bool:
        return False

    def stat(self) -> os.stat_result:
        return self.status


class RemoteFiles(dict[str, RemoteFile]):
    """The AddedFiles of one directory, by their names. `both`: names of the local segments whose offsets all are in
    remote storage, too."""

    is_directory = False
    both: frozenset[str] = frozenset()

    def stat(self, inside: str, *, follow: bool = True) -> os.stat_result:
        if not inside:
            return os.stat_result((stat.S_IFDIR | 0o555, hash(tuple(self)) & (1 << 62) - 1, DEVICE, *(0,) * 7))
        if inside not in self:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), inside)
        file = self[inside]
        if file.object and not is_url(file.object):
            with suppress(OSError):
                status = file_system.stat(file.object)
                if status.st_size == file.size:  # else the object is of other bytes, of which this file is made
                    return status
        seconds = file.time // 1000
        from hashlib import blake2b  # most disks have no such file

        inode = int.from_bytes(blake2b(file.object.encode(), digest_size=7).digest(), "big")  # in each process the same
        numbers = (stat.S_IFREG | 0o444, inode, DEVICE, 1, 0, 0, file.size)
        return os.stat_result(
            (*numbers, seconds, seconds, seconds), {"st_mtime_ns": file.time * 1_000_000, "st_blocks": 0}
        )

    def entries(self, inside: str, path: str) -> Iterator[_Entry]:
        return (_Entry(name, os.path.join(path, name), self.stat(name)) for name in self)

    def readlink(self, inside: str) -> str:
        raise OSError(f"{inside}: not a link")

    def has_records(self, inside: str) -> bool:
        return True

    def open(self, inside: str, path: str) -> Source:
        if inside not in self:
            raise SourceNotFound.at(path, "no such file")
        file = self[inside]
        if file.problem:
            raise SourceError.at(path, file.problem)
        source = open_source(file.object)
        kind, base = by_name(inside)
        if file.stop is None or kind is not SEGMENT:
            return source
        return _Beginning(source, _position(source, path, base or 0, file.stop))


def tier(path: str) -> str | None:
    """Return where a segment is: LOCAL, REMOTE or BOTH; None if no remote storage is read."""
    added, source = file_system.added_files()
    if not source:
        return None
    directory, name = os.path.split(path if is_url(path) else os.path.abspath(path))
    files = added.get(directory)
    if not isinstance(files, RemoteFiles):
        return LOCAL if remote_partition(directory) is None else REMOTE
    return REMOTE if name in files else BOTH if name in files.both else LOCAL


class _Beginning(PartlyReadable):
    """The bytes of a source below `size`."""

    def __init__(self, source: Source, size: int) -> None:
        super().__init__()
        self.name, self.error, self.lacks, self.keep = source.name, source.error, source.lacks, True
        self.size: int | None = size
        self._source = source
        self.unreadable = getattr(source, "unreadable", self.unreadable)

    @property
    def unreadable_text(self) -> Located:
        return getattr(self._source, "unreadable_text", Located(""))

    def read_at(self, position: int, count: int) -> bytes:
        return self._source.read_at(position, max(0, min(count, (self.size or 0) - position)))

    def next_data(self, position: int) -> int:
        return min(self._source.next_data(position), self.size or 0)

    def release(self, position: int) -> None:
        self._source.release(position)

    def close(self) -> None:
        self._source.close()


def _position(source: Source, path: str, base: int, stop: int) -> int:
    """Return where the first batch begins with offsets from `stop` on; the end if there is none."""
    lookup = open_index_lookup(path, base)
    entry = bisect_left(lookup.offsets, stop) - 1
    position, end = lookup.positions[entry] if entry >= 0 else 0, source.size or 0
    with suppress(DecodeError, SourceError):
        while position < end:
            header = read_header(source.read_at(position, LARGEST_HEADER))
            if _first(header) >= stop or header.size <= 0:
                return position if header.size > 0 else end
            position += header.size
    return end


def first_offset(source: Source) -> int | None:
    """Return the base offset of the first batch of a segment; None if it has no header. Raises SourceError."""
    with suppress(DecodeError):
        return _first(read_header(source.read_at(0, LARGEST_HEADER)))
    return None


def _first(header: BatchHeader | MessageHeader) -> int:
    return header.baseOffset if isinstance(header, BatchHeader) else header.offset
