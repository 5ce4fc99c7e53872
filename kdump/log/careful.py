"""Files of a disk that is in use, or dying: read at a bounded rate, out of the page cache again, past bad sectors."""

from __future__ import annotations

import errno
from bisect import bisect_right
from collections.abc import Callable

from kdump.log.errors import SourceError
from kdump.log.pagecache import PageCache
from kdump.log.rate import Rate
from kdump.log.source import FileSource, Source

BLOCK = 4096
"""What is given up at a time. Sectors may be smaller, but a page with a bad one cannot be read at all."""
NEAR = 8 * BLOCK
"""A stretch of bad blocks that is tried block by block; a longer one is leapt over."""
PATIENCE = 256
"""Failed reads of one file after which the blocks that are given up are twice as large; and again. Each may take the
disk seconds."""

UNREADABLE = {
    getattr(errno, name)
    for name in ("EIO", "ENXIO", "ENODATA", "EBADMSG", "EUCLEAN")  # not every system has all of them
    if hasattr(errno, name)
}


class CarefulSource(FileSource):
    """A file of which `read_at` also gives what cannot be read: zeros in its place.

    `unreadable` says where: (position, size) of each stretch, in order, none touching another, sizes of whole blocks
    but at the end of the file. Once there it is not read again. Its ends are exact, but where bad blocks go on for long
    only samples are tried: a file that is dead from end to end costs some 30 failed reads whatever its size, at the
    price of good blocks that lie between bad ones for less than those before them. And the more reads fail, the more is
    given up each time (PATIENCE), so that both their number and that of the stretches are bounded, by the logarithm
    of the size.

    `rate` is waited for before each read, `on_read` is called after it with the bytes handed out. `page_cache`: leave
    the page cache as it was found, where that can be done.
    """

    def __init__(
        self,
        path: str,
        fd: int,
        *,
        rate: Rate | None = None,
        on_read: Callable[[int], None] | None = None,
        page_cache: bool = True,
    ) -> None:
        super().__init__(path, fd)
        self.unreadable: list[tuple[int, int]] = []
        self.fault: str | None = None
        """What the device said of the latest."""
        self._rate = rate
        self._on_read = on_read
        self._cache = PageCache(fd) if page_cache else None
        self._failures = 0

    def read_at(self, position: int, count: int) -> bytes:
        """As a FileSource's. Raises SourceError only for what is no matter of single blocks."""
        assert self.size is not None
        count = min(count, self.size - position)
        if count <= 0:
            return b""
        if self._rate is not None:
            self._rate.take(count)
        if self._cache is not None:
            self._cache.before(position, count, self.size)
        if self.unreadable and self.unreadable_in(position, count):
            data = self._salvage(position, count)
        else:
            try:
                data = super().read_at(position, count)
            except SourceError as error:
                cause = error.__cause__
                if not isinstance(cause, OSError) or cause.errno not in UNREADABLE:
                    raise
                data = self._salvage(position, count)
        if self._on_read is not None:
            self._on_read(len(data))
        return data

    def unreadable_in(self, position: int, size: int) -> list[tuple[int, int]]:
        """What of these bytes could not be read, as far as they have been: (position, size) of each stretch."""
        stop = position + size
        index = max(0, bisect_right(self.unreadable, (position, 0)) - 1)
        found = []
        while index < len(self.unreadable) and self.unreadable[index][0] < stop:
            at, length = self.unreadable[index]
            start, end = max(at, position), min(at + length, stop)
            if start < end:
                found.append((start, end - start))
            index += 1
        return found

    def _salvage(self, position: int, count: int) -> bytes:
        """The bytes that can be read, in zeros."""
        data = bytearray(count)
        stop = position + count
        step = count
        at = position
        while at < stop:
            limit = min(stop, at + step)
            known = self.unreadable_in(at, limit - at)
            if known and known[0][0] == at:
                at += known[0][1]
                continue
            if known:
                limit = known[0][0]
            part = self._try(at, limit - at)
            if part is None:
                step = BLOCK - at % BLOCK
                if limit - at <= step:
                    self._give_up(at)
            elif part:
                data[at - position : at - position + len(part)] = part
                at += len(part)
                step *= 2
            else:  # truncated under us: it ends here now
                self.size = at
                del data[at - position :]
                break
        return bytes(data)

    def _try(self, position: int, count: int) -> bytes | None:
        """The bytes, some of them, or None if they cannot be read."""
        try:
            return self._pread(count, position)
        except OSError as error:
            if error.errno not in UNREADABLE:
                raise SourceError(f"{self.name}: cannot read at position {position}: {error.strerror}") from error
            self._failures += 1
            self.fault = error.strerror
            return None

    def _give_up(self, position: int) -> None:
        """The block at `position` is bad. Find out where that ends, if it goes on for long."""
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
        if self._cache is not None:
            self._cache.before(position, count, self.size)
        return self._try(position, count) is None

    def _mark(self, start: int, stop: int) -> tuple[int, int]:
        """Note that start..stop cannot be read; the ends of the stretch that it is part of now."""
        assert self.size is not None
        stop = min(stop, self.size)
        first = bisect_right(self.unreadable, (start, 0))
        if first and sum(self.unreadable[first - 1]) >= start:
            first -= 1
            start = self.unreadable[first][0]
        behind = first
        while behind < len(self.unreadable) and self.unreadable[behind][0] <= stop:
            stop = max(stop, sum(self.unreadable[behind]))
            behind += 1
        self.unreadable[first:behind] = [(start, stop - start)]
        return start, stop

    def close(self) -> None:
        if self._cache is not None:
            self._cache.close()
        super().close()


def careful(
    source: Source,
    *,
    rate: Rate | None = None,
    on_read: Callable[[int], None] | None = None,
    page_cache: bool = True,
) -> Source:
    """The same file read with care, in place of `source`; what is no file (a pipe, an object store) is given back as
    it is. As open_source's `wrap` it is there before the first byte is read, which may be bad or not yet cached."""
    if not isinstance(source, FileSource) or isinstance(source, CarefulSource):
        return source
    found = CarefulSource(source.name, source.fd, rate=rate, on_read=on_read, page_cache=page_cache)
    found.size = source.size
    return found
