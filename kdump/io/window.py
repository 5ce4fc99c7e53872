"""A sliding window over a source, which bounds the memory used whatever the size of the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kdump.io.hash_key import RecordHash
from kdump.io.source import NOTHING, Source

DEFAULT_SIZE = 1024 * 1024
LARGE = 64 * 1024
"""Batches with fewer bytes than this are read completely, which is faster than seeking (ten times on a cold disk)."""
READ_AGAIN = 16
"""The end of the buffer is read again with what follows, which is faster than to join the two, if it is at most one in
this many of the bytes."""
HEADER_BLOCK = 4096
"""Bytes read at once while only headers of large batches are needed."""


class Window:
    """Bytes of `source` by position, through a buffer of `size` bytes that is refilled as positions advance."""

    lacks = NOTHING

    def __init__(self, source: Source, size: int = DEFAULT_SIZE) -> None:
        self.source, self.size = source, size
        self.ahead = size
        """Bytes read at once, at most `size`: fewer while only headers are needed."""
        self.is_nameless = False
        """True if neither the file's name nor the user gives the kind of file: without a batch, it is then not a Kafka
        file, while a segment without a batch is damaged or preallocated."""
        self.bytes_read = 0
        self._buffer = b""
        self._start = 0

    def seek_headers(self, size: int) -> None:
        """Read little more than the headers from now on, if the batches have about `size` bytes and are large."""
        self.ahead = self.size if size < LARGE else min(HEADER_BLOCK, self.size)

    def forget(self) -> None:
        """Discard the buffer, because the file may have changed since it was read."""
        self._buffer = b""

    def view(self, position: int, count: int) -> memoryview:
        """Return `count` bytes from `position`, fewer only at the end. The view stays valid as long as it is kept."""
        start = position - self._start
        if start < 0 or start + count > len(self._buffer):
            if start < 0 or not self._at_end(position + count):
                self._fill(position, count)
                start = 0
            elif start >= len(self._buffer):
                return memoryview(b"")
        return memoryview(self._buffer)[start : start + count]

    def at_hand(self, position: int, count: int) -> tuple[bytes, int]:
        """Return the buffer and the index of `position` in it; `count` bytes follow there, if the source has them."""
        self.view(position, count)
        return self._buffer, position - self._start

    def peek(self, position: int, count: int) -> memoryview:
        """Like `view`, but for looking ahead or back: does not move the buffer."""
        start = position - self._start
        length = len(self._buffer)
        if start < 0 or start + count > min(length + self.ahead, 2 * self.size):
            return memoryview(self._read(position, count))
        if start + count > length and not self._at_end(position + count):
            # The bytes in between will be read next.
            self._buffer += self._read(self._start + length, self.ahead)
        return memoryview(self._buffer)[start : start + count]

    def _at_end(self, stop: int) -> bool:
        """Return True if the buffer already extends to the end of the source, so that a view may be short."""
        end = self.source.size
        return end is not None and self._start + len(self._buffer) >= end

    def _fill(self, position: int, count: int) -> None:
        kept = self._buffer[max(0, position - self._start) :] if position >= self._start else b""
        want = max(count, self.ahead)
        end = self.source.size
        left = want if end is None else min(want, end - position)
        if READ_AGAIN * max(len(kept), HEADER_BLOCK) <= left:
            self._buffer = self.source.read_at(position, want)
            self.bytes_read += max(0, len(self._buffer) - len(kept))
        else:
            self._buffer = kept + self._read(position + len(kept), want - len(kept))
        self._start = position

    def _read(self, position: int, count: int) -> bytes:
        data = self.source.read_at(position, count)
        self.bytes_read += len(data)
        return data

    def chunks(self, position: int, count: int) -> Iterator[memoryview]:
        """Yield `count` bytes from `position`, fewer at the end, in pieces of at most the window's size."""
        return self._pieces(self.view, position, count)

    def peeks(self, position: int, count: int) -> Iterator[memoryview]:
        """Like `chunks`, but with `peek`."""
        return self._pieces(self.peek, position, count)

    def _pieces(self, look: Callable[[int, int], memoryview], position: int, count: int) -> Iterator[memoryview]:
        stop = position + count
        while position < stop:
            piece = look(position, min(self.size, stop - position))
            if not piece:
                return
            yield piece
            position += len(piece)

    def hashes(self, position: int) -> list[tuple[int, RecordHash]] | None:
        """Return offset delta and hash of each record of the batch at a position, of which nothing else is there; None
        if they are not known. Raises SourceError."""
        return None

    def reaches(self, position: int) -> bool:
        """Return True if the source has all bytes before `position`, which may be its end."""
        if self.source.size is None and position > 0 and not self.source.read_at(position - 1, 1):
            return False
        return self.source.size is None or position <= self.source.size

    def release(self, position: int) -> None:
        """State that nothing before `position` will be read again."""
        self.source.release(position)


class BufferWindow:
    """Bytes in memory, by their position in the source: a Window over only these bytes."""

    lacks = NOTHING

    def __init__(self, data: bytes, start: int) -> None:
        self.data = memoryview(data)
        self.start = start

    def chunks(self, position: int, count: int) -> Iterator[memoryview]:
        """Yield `count` bytes from `position`."""
        if count > 0:
            yield self.data[position - self.start : position - self.start + count]
