"""Writes a part of a bundle: a tar file with the files of one directory, and what is known about them, as frames of
zstd's (docs/bundle.md)."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import SpooledTemporaryFile
from typing import Any

from kdump.io.bundle.names import FACTS
from kdump.io.frames import FRAME, FramesReader, FramesWriter, Writable
from kdump.io.sorted_lines import MAX_LINE, Extent, line_of
from kdump.io.withheld import FileStatus

IN_MEMORY = 16 << 20
"""Bytes of what is written after a segment that are not in a temporary file: a tar file has the size of a member before
it."""
PLAIN = FileStatus(0o100644, 0, 0, 0, 0, 0, 0, 0)


class LineTooLong(Exception):
    """Raised for a row that has more than MAX_LINE bytes."""


class Spool:
    """Bytes that are held until it is known how many they are. Zeros at the end are counted, but not held."""

    def __init__(self) -> None:
        self._file: Any = SpooledTemporaryFile(IN_MEMORY, prefix="kdump-")  # noqa: SIM115
        self.size = 0
        """Number of bytes, without zeros at the end."""
        self.position = 0
        """Number of bytes, with them."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        stripped = bytes(data).rstrip(b"\0")
        if stripped:
            self._file.seek(self.position)
            self._file.write(stripped)
            self.size = self.position + len(stripped)
        self.position += len(data)

    def zeros(self, count: int) -> None:
        self.position += count

    def add(self, data: bytes) -> Extent:
        """Write bytes, and return where they are."""
        self.write(data)
        return Extent(self.position - len(data), len(data))

    def row(self, key: int | str, row: Any) -> None:
        """Write a line. Raises LineTooLong."""
        line = line_of(key, row)
        if len(line) > MAX_LINE:
            raise LineTooLong
        self.write(line)

    def __iter__(self) -> Iterator[bytes]:
        """Yield all bytes, without zeros at the end."""
        self._file.seek(0)
        while data := self._file.read(FRAME):
            yield data

    def close(self) -> None:
        self._file.close()


class Member:
    """A file of a part that is being written. What is not written of it is zeros."""

    def __init__(self, target: FramesWriter | Spool, size: int | None) -> None:
        self._target, self._size = target, size
        self.start = target.position
        self.position = 0

    def put(self, position: int, data: bytes | bytearray | memoryview) -> None:
        """Write bytes at a position after those that were written before."""
        assert self.position <= position
        assert self._size is None or position + len(data) <= self._size
        self._target.zeros(position - self.position)
        self._target.write(data)
        self.position = position + len(data)


class PartWriter:
    """Writes a part. `name`: that of the part; `prefix`: path in the tar file of the directory."""

    def __init__(self, file: Writable, name: str, prefix: str) -> None:
        self._frames = FramesWriter(file)
        self._name, self._prefix = name, prefix

    def directory(self, status: FileStatus) -> None:
        self._header(f"{self._prefix}/", 0, status, tarfile.DIRTYPE)

    def _header(self, path: str, size: int, status: FileStatus, kind: bytes = tarfile.REGTYPE) -> None:
        member = tarfile.TarInfo(path)
        member.size, member.type, member.mode = size, kind, status.mode & 0o7777
        member.mtime, member.uid, member.gid = status.mtimeNs // 1_000_000_000, status.uid, status.gid
        self._frames.write(member.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape"))

    @contextmanager
    def member(self, name: str, size: int | None, status: FileStatus) -> Iterator[Member]:
        """Add a file of that size, of which the with statement writes what it has. Where the size is not known, its
        bytes are held."""
        if size is None:
            spool = Spool()
            member = Member(spool, None)
            yield member
            member.start = self._spooled(f"{self._prefix}/{name}", spool, member.position, status).start
            return
        self._header(f"{self._prefix}/{name}", size, status)
        member = Member(self._frames, size)
        try:
            yield member
        finally:
            self._end(size, member.position)

    def _end(self, size: int, written: int) -> None:
        self._frames.zeros(size - written + -size % tarfile.BLOCKSIZE)

    def _spooled(self, path: str, spool: Spool, size: int, status: FileStatus) -> Extent:
        self._header(path, size, status)
        start = self._frames.position
        for data in spool:
            self._frames.write(data)
        self._end(size, spool.size)
        return Extent(start, size)

    def small(self, name: str, spool: Spool, status: FileStatus) -> Extent:
        """Add a file that has been held, without the zeros at its end."""
        return self._spooled(f"{self._prefix}/{name}", spool, spool.size, status)

    def facts(self, name: str, what: str, spool: Spool) -> Extent:
        """Add `what` is known about a file."""
        return self._spooled(f"{FACTS}/{self._prefix}/{name}.{what}", spool, spool.position, PLAIN)

    def copied(self, frames: FramesReader, extent: Extent, name: str, status: FileStatus, what: str = "") -> Extent:
        """Add a file of another part, or `what` is known about it. Raises DecodeError, so verify it first."""
        path = f"{FACTS}/{self._prefix}/{name}.{what}" if what else f"{self._prefix}/{name}"
        self._header(path, extent.size, PLAIN if what else status)
        start = self._frames.position
        for data in pieces(frames, extent):
            self._frames.write(data)
        self._end(extent.size, extent.size)
        return Extent(start, extent.size)

    def finish(self, index: Spool) -> None:
        """End the part with the index of its files."""
        self._frames.cut()
        self._frames.finish(self._name, index=self.facts("index", "jsonl", index))


def pieces(frames: FramesReader, extent: Extent) -> Iterator[bytes]:
    """Yield the bytes of a file of a part. Raises DecodeError."""
    for start in range(extent.start, extent.start + extent.size, FRAME):
        yield frames.read(start, min(FRAME, extent.start + extent.size - start))


def write_manifest(file: Writable, name: str, data: bytes, created: int, *, is_last: bool) -> None:
    """Write the part that has the manifest of a packed bundle. `created`: epoch in seconds; `is_last`: no part follows
    it."""
    frames = FramesWriter(file)
    member = tarfile.TarInfo(name)
    member.size, member.mtime = len(data), created
    frames.write(member.tobuf(tarfile.GNU_FORMAT))
    frames.cut()  # by its first bytes, a bundle is recognized
    start = frames.position
    frames.write(data)
    frames.zeros(-len(data) % tarfile.BLOCKSIZE + 2 * tarfile.BLOCKSIZE * is_last)
    frames.finish(name, index=Extent(start, len(data)))
