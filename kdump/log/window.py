"""A bounded sliding window over a source: whatever the size of the file, this much of it is in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kdump.log.source import Source

DEFAULT_SIZE = 1024 * 1024


class Window:
    """Bytes of `source` by position, through a buffer of `size` bytes that is filled anew as positions move on."""

    def __init__(self, source: Source, size: int = DEFAULT_SIZE) -> None:
        self.source = source
        self.size = size
        self.ahead = size
        """Bytes that are read at once, at most `size`: fewer while those behind a header are not wanted."""
        self.is_nameless = False
        """Whether neither the file's name nor anybody says what kind of file it is: without a batch it is none of
        Kafka's, where a segment would be damaged, or preallocated."""
        self.bytes_read = 0
        self._buffer = b""
        self._start = 0

    def forget(self) -> None:
        """What was read may have changed under us: read it anew."""
        self._buffer = b""

    def view(self, position: int, count: int) -> memoryview:
        """The bytes from `position`, `count` of them or what there is before the end. Valid as long as it is held."""
        start = position - self._start
        if start < 0 or start + count > len(self._buffer):
            if start < 0 or not self._at_end(position + count):
                self._fill(position, count)
                start = 0
            elif start >= len(self._buffer):
                return memoryview(b"")
        return memoryview(self._buffer)[start : start + count]

    def at_hand(self, position: int, count: int) -> tuple[bytes, int]:
        """The buffer, and where in it `position` is; with `count` bytes from there on, if the source has them."""
        self.view(position, count)
        return self._buffer, position - self._start

    def peek(self, position: int, count: int) -> memoryview:
        """As `view`, for a look ahead or behind: the buffer does not move away from what is being read."""
        start = position - self._start
        length = len(self._buffer)
        if start < 0 or start + count > min(length + self.ahead, 2 * self.size):
            return memoryview(self._read(position, count))
        if start + count > length and not self._at_end(position + count):
            # What lies between will be read next.
            self._buffer += self._read(self._start + length, self.ahead)
        return memoryview(self._buffer)[start : start + count]

    def _at_end(self, stop: int) -> bool:
        """The buffer already reaches to the end of the source, so a short view is all there is."""
        end = self.source.size
        return end is not None and self._start + len(self._buffer) >= end

    def _fill(self, position: int, count: int) -> None:
        kept = self._buffer[max(0, position - self._start) :] if position >= self._start else b""
        want = max(count, self.ahead)
        more = self._read(position + len(kept), want - len(kept))
        self._buffer = kept + more if kept else more
        self._start = position

    def _read(self, position: int, count: int) -> bytes:
        data = self.source.read_at(position, count)
        self.bytes_read += len(data)
        return data

    def chunks(self, position: int, count: int) -> Iterator[memoryview]:
        """The bytes position..position+count in pieces of at most the window's size; fewer where the source ends."""
        return self._pieces(self.view, position, count)

    def peeks(self, position: int, count: int) -> Iterator[memoryview]:
        """As `chunks`, by `peek`."""
        return self._pieces(self.peek, position, count)

    def _pieces(self, look: Callable[[int, int], memoryview], position: int, count: int) -> Iterator[memoryview]:
        stop = position + count
        while position < stop:
            piece = look(position, min(self.size, stop - position))
            if not piece:
                return
            yield piece
            position += len(piece)

    def reaches(self, position: int) -> bool:
        """Whether there are bytes up to `position` (it may be the end itself)."""
        if self.source.size is None and position > 0 and not self.source.read_at(position - 1, 1):
            return False
        return self.source.size is None or position <= self.source.size

    def release(self, position: int) -> None:
        """Nothing before `position` will be asked for again."""
        self.source.release(position)


class Held:
    """Bytes that are at hand, by their positions in the source that they come from: a Window over no more."""

    def __init__(self, data: bytes, start: int) -> None:
        self.data = memoryview(data)
        self.start = start

    def chunks(self, position: int, count: int) -> Iterator[memoryview]:
        """The bytes position..position+count."""
        if count > 0:
            yield self.data[position - self.start : position - self.start + count]
