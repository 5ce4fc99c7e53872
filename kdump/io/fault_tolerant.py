"""Reads files from a failing disk, past bad sectors."""

from __future__ import annotations

import errno
import os

from kdump.io.errors import SourceError, reading_error
from kdump.io.partly_readable import PartlyReadable
from kdump.io.source import FileSource, Source, open_source

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


class FaultTolerantSource(PartlyReadable, FileSource):
    """A file on a failing disk.

    The ranges in `unreadable` are multiples of BLOCK except at the end of the file, and are not read again. Their ends
    are exact, but within long ranges only samples are tried: a file that is unreadable from end to end costs some 30
    failed reads, whatever its size. In return, readable blocks between bad ones are lost if they are fewer than the bad
    ones before them. The more reads fail, the larger the blocks that are marked at once (PATIENCE), so that the numbers
    of failed reads and of ranges are bounded by the logarithm of the size."""

    def __init__(self, path: str, fd: int, status: os.stat_result | None = None) -> None:
        FileSource.__init__(self, path, fd, status)
        PartlyReadable.__init__(self)
        self._failures = 0
        self.has_zeros = True

    def _read(self, position: int, count: int) -> bytes:
        """Read like FileSource. Raises SourceError only for errors that do not concern single blocks."""
        if self.unreadable and self.unreadable_in(position, count):
            return self._salvage(position, count)
        try:
            return super()._read(position, count)
        except SourceError as error:
            cause = error.__cause__
            if not self.has_zeros or not isinstance(cause, OSError) or cause.errno not in UNREADABLE:
                raise
            return self._salvage(position, count)

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
                raise SourceError(reading_error(error, self.name, position)) from error
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
        assert self.size is not None
        return self.add_unreadable(start, min(stop, self.size))

    def close(self) -> None:
        self.note_unreadable()
        super().close()


def careful_source(path: str) -> Source:
    """Open the file at `path`, to be read past bad sectors. Raises SourceError."""
    return open_source(path, FaultTolerantSource)


def refuse_zeros(source: Source) -> None:
    """Make a source raise SourceError from now on, and at once if that has happened, rather than return zeros."""
    if isinstance(source, FaultTolerantSource):
        source.has_zeros = False
        if source.unreadable:
            source.close()
            raise SourceError(source.unreadable_text)


def read_problem(source: Source) -> str:
    """Return what of a source could not be read so far, and why; an empty string if there is nothing."""
    if isinstance(source, PartlyReadable) and source.unreadable:
        return source.unreadable_text
    return source.error or ""
