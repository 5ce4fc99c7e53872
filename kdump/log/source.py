"""Where bytes come from: a file, a pipe, a compressed file, an object store. Nothing here writes beside a source."""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple, Protocol

from kdump.extras import how_to_install
from kdump.format.codec import decompress
from kdump.format.errors import DecodeError
from kdump.log.errors import Missing, SourceError, is_missing

BLOCK = 256 * 1024
MEMORY = 16 * 1024 * 1024
"""Bytes of a pipe kept in memory; what a damaged length makes the reader look back on beyond that goes to a
temporary file in $TMPDIR."""


class Source(Protocol):
    """Bytes at positions. `size` is the end in bytes, None while a stream has not reached it."""

    name: str
    size: int | None
    error: str | None
    """Why a stream ended before its time, if it did."""
    keep: bool
    """Whether nothing of a stream is let go, because it will be read again from further back."""

    def read_at(self, position: int, count: int) -> bytes:
        """Up to `count` bytes; fewer only at the end. Raises SourceError when the device does."""
        ...

    def next_data(self, position: int) -> int:
        """The first position from `position` on that may hold anything but zeros: behind a hole of a sparse file."""
        ...

    def release(self, position: int) -> None:
        """Nothing before `position` will be asked for again."""
        ...

    def close(self) -> None: ...


class Identity(NamedTuple):
    """What tells a file from itself after a change: device, inode, size in bytes, and last change in ns."""

    device: int
    inode: int
    size: int
    modified: int


def identity_of(status: os.stat_result) -> Identity:
    """The identity of a file or directory, by its status."""
    return Identity(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


class FileSource:
    """A regular file or block device, read with pread: never mapped, for a broker may truncate it under us."""

    def __init__(self, path: str, fd: int) -> None:
        self.name = path
        self.error: str | None = None
        self.keep = True
        self.fd = fd
        try:
            self.size: int | None = os.lseek(fd, 0, os.SEEK_END)
        except OSError as error:
            raise SourceError(f"{path}: {error.strerror}") from error

    def read_at(self, position: int, count: int) -> bytes:
        assert self.size is not None
        count = min(count, self.size - position)
        if count <= 0:
            return b""
        try:
            data = self._pread(count, position)
            while len(data) < count:
                more = self._pread(count - len(data), position + len(data))
                if not more:  # truncated under us: it ends here now
                    self.size = position + len(data)
                    break
                data += more
        except OSError as error:
            raise SourceError(f"{self.name}: cannot read at position {position}: {error.strerror}") from error
        return data

    def _pread(self, count: int, position: int) -> bytes:
        return os.pread(self.fd, count, position)

    def next_data(self, position: int) -> int:
        try:
            return min(os.lseek(self.fd, position, os.SEEK_DATA), self.size or 0)
        except OSError as error:
            # ENXIO: nothing but a hole up to the end. Anything else: this file system cannot tell.
            return max(position, self.size or 0) if error.errno == errno.ENXIO else position

    def grown(self) -> int:
        """Bytes by which the file is longer now than where this reads to; negative if it was truncated."""
        return os.fstat(self.fd).st_size - (self.size or 0)

    def identity(self) -> Identity:
        """Which file it is, and its last change."""
        return identity_of(os.fstat(self.fd))

    def state(self) -> tuple[int, int]:
        """What changes when the file is written to."""
        now = os.fstat(self.fd)
        return now.st_size, now.st_mtime_ns

    def is_deleted(self) -> bool:
        """Whether no name is left for the file: what a broker writes under that name now is another."""
        return os.fstat(self.fd).st_nlink == 0

    def extend(self) -> None:
        """Read on to where the file ends now."""
        self.size = os.fstat(self.fd).st_size

    def release(self, position: int) -> None:
        pass

    def close(self) -> None:
        os.close(self.fd)


class SeekableSource:
    """A file object that can seek: an object store's, through fsspec."""

    def __init__(self, name: str, file: BinaryIO) -> None:
        self.name = name
        self.error: str | None = None
        self.keep = True
        self.file = file
        self.size: int | None = file.seek(0, io.SEEK_END)

    def read_at(self, position: int, count: int) -> bytes:
        try:
            self.file.seek(position)
            return self.file.read(count)
        except Exception as error:  # every store has its own errors
            raise SourceError(f"{self.name}: cannot read at position {position}: {error}") from error

    def next_data(self, position: int) -> int:
        return position

    def release(self, position: int) -> None:
        pass

    def close(self) -> None:
        self.file.close()


class StreamSource:
    """Bytes that come once, in order: a pipe, a decompressor's output. What is not yet released can be read again."""

    def __init__(self, name: str, stream: Any) -> None:
        self.name = name
        self.size: int | None = None
        self.error: str | None = None
        """Why the stream ended before its time, if it did."""
        self.keep = False
        self._stream = stream
        self._by_piece = hasattr(stream, "read1")
        self._start = 0  # position of the first block that is kept
        self._blocks: deque[bytes | int] = deque()  # a block, or where in the temporary file it is
        self._spill: BinaryIO | None = None
        self._spilled = 0

    def read_at(self, position: int, count: int) -> bytes:
        if position < self._start:
            raise SourceError(f"{self.name}: position {position} of a stream has been read past")
        while self.size is None and self._start + len(self._blocks) * BLOCK < position + count:
            self._pull()
        if self.size is not None:
            count = min(count, self.size - position)
        parts = []
        while count > 0:
            index, inside = divmod(position - self._start, BLOCK)
            part = self._block(index)[inside : inside + count]
            parts.append(part)
            position, count = position + len(part), count - len(part)
        return b"".join(parts)

    def _pull(self) -> None:
        data = self._read_block()
        if len(data) < BLOCK:
            self.size = self._start + len(self._blocks) * BLOCK + len(data)
        if not data:
            return
        if (len(self._blocks) - self._spilled) * BLOCK < MEMORY:
            self._blocks.append(data)
            return
        if self._spill is None:
            import tempfile  # it imports a lot

            self._spill = tempfile.TemporaryFile(prefix="kdump-")  # noqa: SIM115
        place = self._spill.seek(0, io.SEEK_END)
        self._spill.write(data.ljust(BLOCK, b"\0"))
        self._blocks.append(place)
        self._spilled += 1

    def _read_block(self) -> bytes:
        """A whole block, or what there is before the end. A damaged compressed file ends where it breaks."""
        parts: list[bytes] = []
        want = BLOCK
        try:
            while want and (part := self._stream.read1(want) if self._by_piece else self._stream.read(want)):
                parts.append(part)
                want -= len(part)
        except Exception as error:  # OSError, EOFError, zlib.error, ZstdError: whatever the decompressor says
            self.error = f"{self.name}: cannot be read on: {error}"
        return b"".join(parts)

    def _block(self, index: int) -> bytes:
        block = self._blocks[index]
        if isinstance(block, bytes):
            return block
        assert self._spill is not None
        self._spill.seek(block)
        return self._spill.read(BLOCK)

    def next_data(self, position: int) -> int:
        return position

    def release(self, position: int) -> None:
        while not self.keep and self._blocks and self._start + BLOCK <= position:
            if isinstance(self._blocks.popleft(), int):
                self._spilled -= 1
            self._start += BLOCK
        if self._spill is not None and not self._spilled:
            self._spill.close()
            self._spill = None

    def close(self) -> None:
        self._stream.close()
        if self._spill is not None:
            self._spill.close()


GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def open_source(path: str, wrap: Callable[[FileSource], Source] | None = None) -> Source:
    """Open what `path` names: `-` is standard input, a URL goes to fsspec; gzip'd and zstd'd files are seen through.

    `wrap` may put another source in the place of a file's, before a byte of it is read (careful.careful does).
    Raises SourceError with one line that says why not.
    """
    if path == "-":
        if sys.stdin is None:
            raise SourceError("-: standard input is closed")
        stdin = sys.stdin.buffer
        return _stream("-", stdin if hasattr(stdin, "peek") else io.BufferedReader(stdin))
    if "://" in path:
        return _open_url(path)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        kind = Missing if isinstance(error, OSError) and is_missing(error) else SourceError
        raise kind(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    mode = os.fstat(fd).st_mode
    if stat.S_ISDIR(mode):
        os.close(fd)
        raise SourceError(f"{path}: is a directory")
    if stat.S_ISREG(mode) or stat.S_ISBLK(mode):
        file = FileSource(path, fd)
        source = wrap(file) if wrap else file
        if not source.read_at(0, 4).startswith((GZIP, ZSTD)):
            return source
        os.lseek(fd, 0, os.SEEK_SET)
    return _stream(path, os.fdopen(fd, "rb"))


def _stream(name: str, stream: Any) -> Source:
    """A buffered stream, decompressed if it is a compressed file. A segment cannot start with either mark: its first
    eight bytes would be an offset of 10^18 and more."""
    try:
        start = stream.peek(4)[:4]
    except OSError as error:
        raise SourceError(f"{name}: {error.strerror}") from error
    if start.startswith(GZIP):
        import gzip

        stream = gzip.GzipFile(fileobj=stream, mode="rb")
    elif start.startswith(ZSTD):
        stream = io.BufferedReader(_Unpacked(stream), BLOCK)
    return StreamSource(name, stream)


class _Unpacked(io.RawIOBase):
    """A zstd stream, unpacked piece by piece; its damage is raised only behind all that came out before it."""

    def __init__(self, stream: Any) -> None:
        chunks = iter(lambda: stream.read(BLOCK), b"")
        self._pieces = decompress("zstd", chunks, limit=sys.maxsize, size=sys.maxsize)
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            self._left = self._left or next(self._pieces, b"")
        except DecodeError as error:
            raise OSError(error.reason) from error
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count


def _open_url(url: str) -> Source:
    try:
        import fsspec
    except ImportError:
        raise SourceError(f"{url}: reading URLs needs fsspec: {how_to_install('remote')}") from None
    try:
        file = fsspec.open(url, "rb").open()
        start = file.read(4)
        file.seek(0)
    except FileNotFoundError as error:
        raise Missing(f"{url}: {error}") from error
    except Exception as error:  # every store has its own errors
        raise SourceError(f"{url}: {str(error) or type(error).__name__}") from error
    if start.startswith((GZIP, ZSTD)):
        return _stream(url, io.BufferedReader(file, BLOCK))
    return SeekableSource(url, file)
