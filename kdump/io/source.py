"""Sources of bytes: a file, a pipe, a compressed file, an object store. Nothing here writes to the directory of a
source."""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
from collections import deque
from contextlib import suppress
from typing import Any, BinaryIO, NamedTuple, Protocol

from kdump.extras import how_to_install
from kdump.format.errors import DecodeError
from kdump.io.errors import Located, SourceError, SourceNotFound, is_gone, is_missing, reading_error, reason
from kdump.io.file_system import tree_at
from kdump.io.link_boundary import refuse
from kdump.io.low_impact_reads import after_read, before_read, before_request
from kdump.io.page_cache import PageCache, readahead
from kdump.io.remote_paths import object_suffix
from kdump.io.unreadable_paths import note

BLOCK = 256 * 1024
SMALL = 64 * 1024
"""Maximum bytes of a file that is read at once."""
MEMORY = 16 * 1024 * 1024
"""Maximum number of bytes of a pipe kept in memory. Beyond that, bytes that the reader still needs, as for looking back
after a damaged length, go to a temporary file in $TMPDIR."""


BYTES, RECORDS, CHECKSUMS = "bytes", "records", "checksums"
"""What a Source may lack of a segment: a bundle has its regions without most bytes, perhaps without the records of
batches, and without the results of their checksums."""
NOTHING: frozenset[str] = frozenset()


class Source(Protocol):
    """Bytes at positions. `size` is the end in bytes, None while the end of a stream has not been reached."""

    name: str
    size: int | None
    error: str | None
    """Why a stream ended early, if it did."""
    keep: bool
    """Whether a stream keeps all its bytes because they will be read again."""

    @property
    def lacks(self) -> frozenset[str]:
        """What of the file is not there: BYTES, RECORDS, CHECKSUMS. A Batch has the same of itself."""
        ...

    def read_at(self, position: int, count: int) -> bytes:
        """Return up to `count` bytes, fewer only at the end. Raises SourceError if the device fails."""
        ...

    def next_data(self, position: int) -> int:
        """Return the first position, from `position` on, that may contain anything but zeros: skips holes of sparse
        files."""
        ...

    def release(self, position: int) -> None:
        """Declare that nothing before `position` will be read again."""
        ...

    def close(self) -> None: ...


class Identity(NamedTuple):
    """Identifies a version of a file: device, inode, size in bytes, and modification time in ns."""

    device: int
    inode: int
    size: int
    modified: int


def identity_of(status: os.stat_result) -> Identity:
    """Return the identity of a file or directory from its status."""
    return Identity(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


class FileSource:
    """A regular file or block device, read with pread: never mapped, because a broker may truncate it. Reads
    leave the page cache as it was (kdump.io.page_cache), and keep to the limit (kdump.io.low_impact_reads)."""

    lacks = NOTHING

    def __init__(self, path: str, fd: int, status: os.stat_result | None = None) -> None:
        """`status`: that of the open file, if it is known."""
        self.name = path
        self.error: str | None = None
        self.keep = True
        self.fd = fd
        status = status or os.fstat(fd)
        self._cache = PageCache(fd, readahead(status))
        self._whole = b""
        """All bytes of a small file, once `start` has read them."""
        try:
            # Files of /proc state no size, and some cannot be read.
            is_stated = stat.S_ISREG(status.st_mode) and status.st_size > 0
            self.size: int | None = status.st_size if is_stated else os.lseek(fd, 0, os.SEEK_END)
        except OSError as error:
            raise SourceError.at(path, str(error.strerror)) from error

    def start(self, count: int) -> bytes:
        """Return the first bytes. A small file is read as a whole then, and not again. Raises SourceError."""
        if self.size is not None and self.size <= SMALL:
            with suppress(SourceError):
                self._whole = self.read_at(0, self.size)
        return self.read_at(0, count)

    def read_at(self, position: int, count: int) -> bytes:
        assert self.size is not None
        count = min(count, self.size - position)
        if count <= 0:
            return b""
        if position + count <= len(self._whole):
            return self._whole[position : position + count]
        before_read(count)
        self._cache.before(position, count, self.size)
        try:
            data = self._read(position, count)
        except SourceError as error:
            if not is_gone(error):
                note(str(error))
            raise
        after_read(len(data))
        return data

    def _read(self, position: int, count: int) -> bytes:
        """Read bytes below the end. Raises SourceError."""
        try:
            data = self._pread(count, position)
            while len(data) < count:
                more = self._pread(count - len(data), position + len(data))
                if not more:  # truncated since it was opened: it ends here now
                    self.size = position + len(data)
                    break
                data += more
        except OSError as error:
            raise SourceError(reading_error(error, self.name, position)) from error
        return data

    def _pread(self, count: int, position: int) -> bytes:
        return os.pread(self.fd, count, position)

    def next_data(self, position: int) -> int:
        try:
            return min(os.lseek(self.fd, position, os.SEEK_DATA), self.size or 0)
        except OSError as error:
            # ENXIO: only a hole up to the end. Any other error: this file system does not support it.
            return max(position, self.size or 0) if error.errno == errno.ENXIO else position

    def grown(self) -> int:
        """Return by how many bytes the file is longer now than the end known here; negative if it was truncated."""
        return os.fstat(self.fd).st_size - (self.size or 0)

    def identity(self) -> Identity:
        """Return the current identity of the file."""
        return identity_of(os.fstat(self.fd))

    def state(self) -> tuple[int, int]:
        """Return the size in bytes and modification time in ns, which change when the file is written to."""
        now = os.fstat(self.fd)
        return now.st_size, now.st_mtime_ns

    def is_deleted(self) -> bool:
        """Return True if the file has no name left: what a broker now writes under its name is another file."""
        return os.fstat(self.fd).st_nlink == 0

    def extend(self) -> None:
        """Extend the size to the current end of the file, whose bytes may have changed."""
        self.size = os.fstat(self.fd).st_size
        self._whole = b""

    def release(self, position: int) -> None:
        pass

    def close(self) -> None:
        self._cache.close()
        os.close(self.fd)


class FileStream(io.RawIOBase):
    """The bytes of a file in order, for a decompressor. Closes the file."""

    def __init__(self, source: FileSource) -> None:
        self._source = source
        self._position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._source.read_at(self._position, len(buffer))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._source.close()
        super().close()


class SeekableSource:
    """A seekable file object: a file of an object store, through fsspec."""

    lacks = NOTHING

    def __init__(self, name: str, file: BinaryIO) -> None:
        self.name = name
        self.error: str | None = None
        self.keep = True
        self.file = file
        self.size: int | None = file.seek(0, io.SEEK_END)

    def read_at(self, position: int, count: int) -> bytes:
        before_read(count)
        try:
            self.file.seek(position)
            data = self.file.read(count)
        except SourceError:
            raise
        except Exception as error:  # every store has its own exceptions
            raise SourceError.at(self.name, f"cannot read at byte {position}: {error}") from error
        after_read(len(data))
        return data

    def next_data(self, position: int) -> int:
        return position

    def release(self, position: int) -> None:
        pass

    def close(self) -> None:
        self.file.close()


class StreamSource:
    """Bytes that come once, in order: a pipe, or a decompressor's output. Bytes not yet released can be read again."""

    lacks = NOTHING

    def __init__(self, name: str, stream: Any, compressed: Any = None) -> None:
        """`compressed`: what a decompressor reads, to be closed with it."""
        self.name = name
        self.size: int | None = None
        self.error: str | None = None
        """Why the stream ended early, if it did."""
        self.keep = False
        self._stream, self._compressed = stream, compressed
        self._by_piece = hasattr(stream, "read1")
        self._start = 0  # position of the first block that is kept
        self._blocks: deque[bytes | int] = deque()  # a block, or its position in the temporary file
        self._spill: BinaryIO | None = None
        self._spilled = 0

    def read_at(self, position: int, count: int) -> bytes:
        if position < self._start:
            raise SourceError.at(self.name, f"byte {position} of the stream is no longer available")
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
            import tempfile  # a costly import

            self._spill = tempfile.TemporaryFile(prefix="kdump-")  # noqa: SIM115
        place = self._spill.seek(0, io.SEEK_END)
        self._spill.write(data.ljust(BLOCK, b"\0"))
        self._blocks.append(place)
        self._spilled += 1

    def _read_block(self) -> bytes:
        """Read a whole block, or what is left before the end. A damaged compressed file ends at the damage."""
        parts: list[bytes] = []
        want = BLOCK
        try:
            while want and (part := self._stream.read1(want) if self._by_piece else self._stream.read(want)):
                parts.append(part)
                want -= len(part)
        except SourceError as error:  # the compressed file cannot be read
            self.error = str(error)
        except Exception as error:  # OSError, EOFError, zlib.error, ZstdError: whatever the decompressor raises
            self.error = Located(f"{self.name}: cannot read further: {error}", self.name)
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
        if self._compressed is not None:
            self._compressed.close()
        if self._spill is not None:
            self._spill.close()


def modified(source: Source) -> int | None:
    """Return the modification time in epoch ms of what is read; None if it has none."""
    state = getattr(source, "state", None)
    return None if state is None else int(state()[1]) // 1_000_000


GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def open_source(path: str, of_file: type[FileSource] = FileSource) -> Source:
    """Open what `path` names: `-` is standard input, a URL goes to fsspec; gzip and zstd files are decompressed.

    `of_file`: the class of the source of a file. Raises SourceError with a one-line reason."""
    if path == "-":
        if sys.stdin is None:
            raise SourceError("-: standard input is closed")
        stdin = sys.stdin.buffer
        return _stream("-", stdin if hasattr(stdin, "peek") else io.BufferedReader(stdin))
    suffix = object_suffix(path)
    if suffix:
        from kdump.io.aiven import opened  # few runs need it

        content = opened(path, suffix, lambda path: _open(path, of_file, as_stored=True))
        return SeekableSource(path, io.BytesIO(content)) if isinstance(content, bytes) else content
    return _open(path, of_file)


def _open(path: str, of_file: type[FileSource], *, as_stored: bool = False) -> Source:
    """Open a file; `as_stored`: it is not decompressed."""
    if "://" in path:
        return _open_url(path, as_stored=as_stored)
    in_tree = tree_at(path)
    if in_tree is not None:
        source: Source = in_tree[0].open(in_tree[1], path)
        return source
    try:
        refuse(path)
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and is_missing(error):
            raise SourceNotFound.at(path, reason(error, path)) from error
        unread = SourceError.at(path, reason(error, path) if isinstance(error, OSError) else str(error))
        note(str(unread))
        raise unread from error
    status = os.fstat(fd)
    if stat.S_ISDIR(status.st_mode):
        os.close(fd)
        raise SourceError.at(path, "is a directory")
    if stat.S_ISREG(status.st_mode) or stat.S_ISBLK(status.st_mode):
        file = of_file(path, fd, status)
        if as_stored or not file.start(4).startswith((GZIP, ZSTD)):
            return file
        return _stream(path, io.BufferedReader(FileStream(file), BLOCK))
    return _stream(path, os.fdopen(fd, "rb"))


def _stream(name: str, stream: Any) -> Source:
    """Return a buffered stream, decompressed if it is a compressed file. A segment cannot start with either magic: its
    first eight bytes would be an offset of 10^18 or more."""
    try:
        start = stream.peek(4)[:4]
    except OSError as error:
        raise SourceError.at(name, str(error.strerror)) from error
    if start.startswith(GZIP):
        import gzip

        return StreamSource(name, gzip.GzipFile(fileobj=stream, mode="rb"), stream)
    if start.startswith(ZSTD):
        return StreamSource(name, io.BufferedReader(_Unpacked(stream), BLOCK), stream)
    return StreamSource(name, stream)


class _Unpacked(io.RawIOBase):
    """Decompresses a zstd stream piece by piece; an error is raised only after all output that precedes it."""

    def __init__(self, stream: Any) -> None:
        chunks = iter(lambda: stream.read(BLOCK), b"")
        from kdump.format.codec import decompress  # few files are compressed

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


def _count_requests(file: Any, url: str) -> None:
    """Count the requests for parts of an object: one each time that its cache, if it has one, fetches a part."""
    cache: Any = getattr(file, "cache", None)
    fetch = getattr(cache, "fetcher", None)
    if fetch is None:
        return

    def fetched(start: int, end: int) -> Any:
        before_request(url)
        return fetch(start, end)

    cache.fetcher = fetched


def _open_url(url: str, *, as_stored: bool) -> Source:
    try:
        import fsspec
    except ImportError:
        raise SourceError.at(url, f"reading URLs needs fsspec: {how_to_install('remote')}") from None
    before_request(url)
    try:
        file = fsspec.open(url, "rb").open()
        _count_requests(file, url)
        start = file.read(4)
        file.seek(0)
    except FileNotFoundError as error:
        raise SourceNotFound.at(url, str(error)) from error
    except SourceError:
        raise
    except Exception as error:  # every store has its own exceptions
        raise SourceError.at(url, f"{str(error) or type(error).__name__}") from error
    if start.startswith((GZIP, ZSTD)) and not as_stored:
        return _stream(url, io.BufferedReader(file, BLOCK))
    return SeekableSource(url, file)
