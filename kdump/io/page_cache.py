"""Leaves a live broker's page cache unchanged: drops only the pages that our reads brought in.

POSIX_FADV_DONTNEED drops pages whoever brought them in, so cachestat(2) (Linux 6.5) first determines which are cached.
If it is not available, nothing is dropped."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import stat
import sys
import time
from collections.abc import Iterable
from functools import lru_cache

PAGE = mmap.PAGESIZE
ALIGN = max(PAGE, 64 * 1024)
"""Bytes of the largest file system block, which is cached as a whole."""
GRANULE = 2 * 1024 * 1024
"""Minimum bytes dropped at once. Readahead makes folios up to this size, and part of a folio cannot be dropped."""
READAHEAD = 4 * 1024 * 1024
"""Bytes of readahead if the kernel does not report it: the largest default of a file system (btrfs)."""
ZONES = 3
"""Maximum zones of a file that are read alternately: the current one, one ahead and one back."""

CACHESTAT = 451
MACHINES = ("x86_64", "aarch64")

ByteRange = tuple[int, int]
"""Start and end (exclusive) of a byte range."""


class _Range(ctypes.Structure):
    _fields_ = [("off", ctypes.c_uint64), ("len", ctypes.c_uint64)]


class _Counts(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_uint64)
        for name in ("nr_cache", "nr_dirty", "nr_writeback", "nr_evicted", "nr_recently_evicted")
    ]


def cached_pages(fd: int, start: int, stop: int) -> int:
    """Return how many of the pages with the bytes start..stop are in the page cache. Raises OSError if that is not
    available: ENOSYS with an old kernel or another system, EPERM in a sandbox or for a file of another user."""
    counts = _Counts()
    if _call(CACHESTAT, fd, ctypes.byref(_Range(start, stop - start)), ctypes.byref(counts), 0):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    count: int = counts.nr_cache
    return count


def _unavailable(*_arguments: object) -> int:
    import errno

    ctypes.set_errno(errno.ENOSYS)
    return -1


if sys.platform == "linux" and platform.machine() in MACHINES:
    _call = ctypes.CDLL(None, use_errno=True).syscall
    _call.restype = ctypes.c_long
    _call.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]
else:
    _call = _unavailable  # type: ignore[assignment]


class PageCache:
    """The cached pages of one open file.

    Before each read, `before` notes the pages that are not cached, including those that the kernel may read ahead. They
    are dropped once reading has moved on, and at `close`. Pages that others bring in meanwhile cannot be distinguished
    from ours, so no more is noted in advance than readahead can reach."""

    def __init__(self, fd: int, readahead: int) -> None:
        self.fd = fd
        self._zones: list[ByteRange] = []  # being read, the latest last: pages not cached before are in _ours
        self._ours: list[ByteRange] = []
        self._late: list[ByteRange] = []
        self._reach = 2 * readahead  # one readahead in progress, and the next one
        self._granule = max(GRANULE, 1 << (readahead - 1).bit_length())

    def before(self, position: int, count: int, size: int) -> None:
        """Prepare to read the bytes position..position+count of a file of `size` bytes: note the pages that are not
        cached, and drop ours that reading has moved past."""
        ahead = position + count + self._reach
        if self._zones:
            start, stop = self._zones[-1]
            if start <= position and min(ahead, size) <= stop:
                return
        # Not beyond the end: the pages that a broker appends there are not ours.
        requested = (_down(position, ALIGN), min(_up(ahead, self._granule), _up(size, PAGE)))
        if not self._zones:
            self._zones, self._ours = [requested], merged(self._absent(*requested))
            return
        absent = [run for gap in without([requested], merged(self._zones)) for run in self._absent(*gap)]
        self._ours = merged([*self._ours, *absent])
        self._move(position, requested)
        kept = merged((_down(start, self._granule), stop) for start, stop in self._zones)
        gone = without(self._ours, kept)
        if gone:
            left = self._drop(gone)
            # Retry only once, later: pages that remain then are in use by others.
            self._ours = merged([*without(self._ours, gone), *without(left, self._late)])
            self._late = left

    def _move(self, position: int, requested: ByteRange) -> None:
        start, stop = requested
        for zone in reversed(self._zones):
            if zone[0] <= position <= zone[1]:
                self._zones.remove(zone)
                start, stop = max(zone[0], _down(position, self._granule)), max(zone[1], stop)
                break
        self._zones = [*self._zones[1 - ZONES :], (start, stop)]

    def _absent(self, start: int, stop: int) -> list[ByteRange]:
        """Return the byte ranges in start..stop that are not cached, by bisection: the kernel reports only counts."""
        if start >= stop:
            return []
        cached = self._cached(start, stop)
        pages = (stop - start) // PAGE
        if not cached:
            return [(start, stop)]
        if cached >= pages or pages == 1:
            return []
        middle = start + pages // 2 * PAGE
        return [*self._absent(start, middle), *self._absent(middle, stop)]

    def _cached(self, start: int, stop: int) -> int:
        try:
            return cached_pages(self.fd, start, stop)
        except OSError:  # "all cached" means that none is dropped
            return (stop - start) // PAGE

    def _drop(self, runs: list[ByteRange]) -> list[ByteRange]:
        """Drop pages; return those that remain, because pages cannot be dropped while readahead is in progress."""
        for start, stop in runs:
            os.posix_fadvise(self.fd, start, stop - start, os.POSIX_FADV_DONTNEED)
        return [left for run in runs if self._cached(*run) for left in without([run], merged(self._absent(*run)))]

    def close(self) -> None:
        """Drop the remaining pages. Call this while the file is still open."""
        self._zones = []
        ours, self._ours = self._ours, []
        for attempt in range(6 if ours else 0):
            ours = self._drop(ours)
            if not ours:
                return
            time.sleep(0.001 * 2**attempt)


def _down(position: int, unit: int) -> int:
    return position // unit * unit


def _up(position: int, unit: int) -> int:
    return -(-position // unit) * unit


def readahead(status: os.stat_result) -> int:
    """Return the maximum number of bytes that the kernel reads ahead in a file with this status."""
    return _readahead_of(status.st_rdev if stat.S_ISBLK(status.st_mode) else status.st_dev)


@lru_cache
def _readahead_of(device: int) -> int:
    name = f"{os.major(device)}:{os.minor(device)}"
    for directory in (f"class/bdi/{name}", f"dev/block/{name}/queue", f"dev/block/{name}/../queue"):  # a disk partition
        try:
            with open(f"/sys/{directory}/read_ahead_kb") as file:
                return max(PAGE, int(file.read()) * 1024)
        except (OSError, ValueError):
            continue
    return READAHEAD


def merged(runs: Iterable[ByteRange]) -> list[ByteRange]:
    """Return the same bytes as the fewest possible byte ranges, in order."""
    joined: list[ByteRange] = []
    for start, stop in sorted(runs):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], stop))
        else:
            joined.append((start, stop))
    return joined


def without(runs: list[ByteRange], holes: list[ByteRange]) -> list[ByteRange]:
    """Return the parts of `runs` that are in none of the `holes`. Both must be as `merged` returns them."""
    left = []
    index = 0
    for start, stop in runs:
        while index < len(holes) and holes[index][1] <= start:
            index += 1
        hole = index
        while hole < len(holes) and holes[hole][0] < stop:
            if start < holes[hole][0]:
                left.append((start, holes[hole][0]))
            start = holes[hole][1]
            hole += 1
        if start < stop:
            left.append((start, stop))
    return left
