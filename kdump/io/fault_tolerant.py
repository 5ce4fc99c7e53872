"""Reads files from a failing disk, past bad sectors."""

from __future__ import annotations

import errno
import os
from bisect import bisect_right

from kdump.format.count_text import plain_count
from kdump.io.errors import SourceError
from kdump.io.source import FileSource, Source, open_source
from kdump.io.unreadable_paths import note

BLOCK = 4096
"""Bytes marked as unreadable at a time. Sectors may be smaller, but a page with a bad one cannot be read at all."""
NEAR = 8 * BLOCK
"""Bad byte ranges shorter than this many bytes are tried block by block; longer ones are only sampled."""
PATIENCE = 256
"""Failed reads of one file after which the size of the marked blocks doubles, and again after as many more: each may
take seconds."""

UNREADABLE = {
    getattr(errno, name)
    for name in ("EIO", "ENXIO", "ENODATA", "EBADMSG", "EUCLEAN")  # not every system has all of them
    if hasattr(errno, name)
}


class FaultTolerantSource(FileSource):
    """A file of which `read_at` returns zeros in place of the bytes that cannot be read.

    `unreadable` lists these: (position, size) of each byte range, in order and never adjacent, in multiples of BLOCK
    except at the end of the file. They are not read again. The ends of a range are exact, but within long ranges only
    samples are tried: a file that is unreadable from end to end costs some 30 failed reads, whatever its size. In
    return, readable blocks between bad ones are lost if they are fewer than the bad ones before them. The more reads
    fail, the larger the blocks that are marked at once (PATIENCE), so that the numbers of failed reads and of ranges
    are bounded by the logarithm of the size."""

    def __init__(self, path: str, fd: int, status: os.stat_result | None = None) -> None:
        super().__init__(path, fd, status)
        self.unreadable: list[tuple[int, int]] = []
        self.fault: str | None = None
        """The device's message for the last failed read."""
        self._failures = 0

    def _read(self, position: int, count: int) -> bytes:
        """Read like FileSource. Raises SourceError only for errors that do not concern single blocks."""
        if self.unreadable and self.unreadable_in(position, count):
            return self._salvage(position, count)
        try:
            return super()._read(position, count)
        except SourceError as error:
            cause = error.__cause__
            if not isinstance(cause, OSError) or cause.errno not in UNREADABLE:
                raise
            return self._salvage(position, count)

    @property
    def unreadable_text(self) -> str:
        """How much of the file cannot be read, and why."""
        count = sum(size for _, size in self.unreadable)
        return (
            f"{self.name}: cannot read {plain_count(count, 'byte')}"
            f", the first at byte {self.unreadable[0][0]}: {self.fault}"
        )

    def unreadable_in(self, position: int, size: int) -> list[tuple[int, int]]:
        """Return (position, size) of each byte range in these bytes that is known to be unreadable."""
        stop = position + size
        index = max(0, bisect_right(self.unreadable, (position, 0)) - 1)
        unreadable = []
        while index < len(self.unreadable) and self.unreadable[index][0] < stop:
            at, length = self.unreadable[index]
            start, end = max(at, position), min(at + length, stop)
            if start < end:
                unreadable.append((start, end - start))
            index += 1
        return unreadable

    def _salvage(self, position: int, count: int) -> bytes:
        """Return the bytes that can be read, with zeros in place of the others."""
        data = bytearray(count)
        stop = position + count
        step = count
        at = position
        while at < stop:
            limit = min(stop, at + step)
            unreadable = self.unreadable_in(at, limit - at)
            if unreadable and unreadable[0][0] == at:
                at += unreadable[0][1]
                continue
            if unreadable:
                limit = unreadable[0][0]
            part = self._try(at, limit - at)
            if part is None:
                step = BLOCK - at % BLOCK
                if limit - at <= step:
                    self._give_up(at)
            elif part:
                data[at - position : at - position + len(part)] = part
                at += len(part)
                step *= 2
            else:  # truncated meanwhile: the file now ends here
                self.size = at
                del data[at - position :]
                break
        return bytes(data)

    def _try(self, position: int, count: int) -> bytes | None:
        """Return the bytes, or some of them; None if they cannot be read."""
        try:
            return self._pread(count, position)
        except OSError as error:
            if error.errno not in UNREADABLE:
                raise SourceError(f"{self.name}: cannot read at byte {position}: {error.strerror}") from error
            self._failures += 1
            self.fault = error.strerror
            return None

    def _give_up(self, position: int) -> None:
        """Mark the block at `position` as unreadable. If the bad range is long, find its end by sampling."""
        assert self.size is not None
        start = position // BLOCK * BLOCK
        start, stop = self._mark(start, start + (BLOCK << self._failures // PATIENCE))
        last = (self.size - 1) // BLOCK * BLOCK
        while stop - start >= NEAR and stop <= last:
            probe = min(stop + (stop - start) // BLOCK * BLOCK, last)
            if self._is_bad(probe):
                start, stop = self._mark(stop, probe + BLOCK)
                continue
            bad, good = stop, probe
            while bad < good:
                middle = (bad + good) // 2 // BLOCK * BLOCK
                if self._is_bad(middle):
                    bad = middle + BLOCK
                else:
                    good = middle
            self._mark(stop, bad)
            return

    def _is_bad(self, position: int) -> bool:
        assert self.size is not None
        count = min(BLOCK, self.size - position)
        self._cache.before(position, count, self.size)
        return self._try(position, count) is None

    def _mark(self, start: int, stop: int) -> tuple[int, int]:
        """Mark start..stop as unreadable; return the start and end of the byte range that now contains it."""
        assert self.size is not None
        stop = min(stop, self.size)
        first = bisect_right(self.unreadable, (start, 0))
        if first and sum(self.unreadable[first - 1]) >= start:
            first -= 1
            start = self.unreadable[first][0]
        after = first
        while after < len(self.unreadable) and self.unreadable[after][0] <= stop:
            stop = max(stop, sum(self.unreadable[after]))
            after += 1
        self.unreadable[first:after] = [(start, stop - start)]
        return start, stop

    def close(self) -> None:
        if self.unreadable:
            note(self.name, self.unreadable_text)
        super().close()


def careful_source(path: str) -> Source:
    """Open the file at `path`, to be read past bad sectors. Raises SourceError."""
    return open_source(path, FaultTolerantSource)


def read_problem(source: Source) -> str:
    """Return what of a source could not be read so far, and why; an empty string if there is nothing."""
    if isinstance(source, FaultTolerantSource) and source.unreadable:
        return source.unreadable_text
    return source.error or ""
