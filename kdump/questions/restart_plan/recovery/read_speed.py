"""How fast a disk is read, measured with a few reads of the segments that a recovery will read.

They are read as a broker reads them if they are not in the page cache. Otherwise, or if that cannot be determined
(Linux before 6.5), they are read past the page cache (O_DIRECT), which some file systems refuse."""

from __future__ import annotations

import fcntl
import mmap
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from itertools import islice
from typing import NamedTuple

from kdump.io.errors import SourceError
from kdump.io.low_impact_reads import max_rate
from kdump.io.page_cache import PAGE, cached_pages
from kdump.io.source import FileSource, open_source

MEASURED, GIVEN, ASSUMED = "measured", "option", "assumed"
"""Where a read speed is from."""
ASSUMED_SPEED = 125_000_000
"""Bytes per second that are assumed if nothing can be measured: the default of many cloud disks."""
SAMPLES = 8
SAMPLE_BYTES = 16 << 20
"""SAMPLES of this size are read; if there are fewer files, more of each."""
MAX_TRIED = 256
"""Maximum number of files that are opened for it: those of small logs contain less than a sample."""
MAX_STREAMS = 4
MOST_CACHED = 0.1
"""Maximum share of a sample in the page cache: the last pages of a file often stay there."""
CHUNK = 1 << 20
"""Bytes of one read: the kernel reads ahead of a broker, which reads batch by batch."""
SMALLEST = 16 << 20
"""Bytes below which nothing is known about the disk."""
DIRECT: int = getattr(os, "O_DIRECT", 0)


class ReadSpeed(NamedTuple):
    """`perSecond` in bytes; `source`: MEASURED, GIVEN or ASSUMED; `sampled`: bytes that were read to measure it."""

    perSecond: int
    source: str
    sampled: int = 0


@contextmanager
def _opened(path: str) -> Iterator[FileSource | None]:
    """Yield a file of this machine's disks; None for one that cannot be opened, or is in a bundle."""
    try:
        source = open_source(path)
    except SourceError:
        yield None
        return
    try:
        yield source if isinstance(source, FileSource) else None
    finally:
        source.close()


def cached_bytes(path: str) -> int:
    """Return how many bytes of a file are in the page cache; 0 if that cannot be determined."""
    with _opened(path) as source:
        if source is None or not source.size:
            return 0
        try:
            return min(source.size, cached_pages(source.fd, 0, source.size) * PAGE)
        except OSError:
            return 0


def measure(paths: Iterable[str], streams: int = 1) -> ReadSpeed:
    """Measure with a read at the end of several files that are not in the page cache, `streams` at a time, as the
    threads of a recovery read, or past the page cache; leave the page cache as it was. A speed is assumed if too little
    can be read, or if the reads of this process are limited (--max-rate)."""
    tried = list(islice(paths if max_rate() is None else (), MAX_TRIED))
    sample = max(SAMPLE_BYTES, SAMPLES * SAMPLE_BYTES // max(1, len(tried)))
    read_end = _read_end
    chosen = _chosen(tried, lambda path: _uncached_end(path, sample))
    if not chosen:
        read_end = _read_direct
        chosen = _chosen(tried, lambda path: _sample_size(path, sample))
    began = time.monotonic()
    with ThreadPoolExecutor(max(1, min(streams, MAX_STREAMS))) as pool:
        runs = [copy_context() for _ in chosen]  # in which what cannot be read is noted
        read = sum(pool.map(lambda run, path: run.run(read_end, path, sample), runs, chosen))
    seconds = time.monotonic() - began
    if read < SMALLEST:
        return ReadSpeed(ASSUMED_SPEED, ASSUMED)
    return ReadSpeed(max(1, int(read / seconds)), MEASURED, read)


def _chosen(paths: Iterable[str], size_of: Callable[[str], int]) -> list[str]:
    """Return enough of the files to measure with; none if they contain too little. `size_of`: size of a sample."""
    chosen, size = [], 0
    for path in paths:
        count = size_of(path)
        if count:
            chosen.append(path)
            size += count
        if size >= SAMPLES * SAMPLE_BYTES:
            break
    return chosen if size >= SMALLEST else []


def _sample_size(path: str, sample: int) -> int:
    with _opened(path) as source:
        size = 0 if source is None else source.size or 0
        return size - _begin(size, sample)


def _begin(size: int, sample: int) -> int:
    """Return where a sample begins. It reaches to the end of the file, because the kernel would also read what follows
    it, and that would not be counted."""
    return max(0, size - sample) // PAGE * PAGE


def _uncached_end(path: str, sample: int) -> int:
    """Return how much of a file's sample is not cached; 0 if too little, or if that cannot be determined."""
    with _opened(path) as source:
        size = 0 if source is None else source.size or 0
        if source is None or size < PAGE:
            return 0
        start = _begin(size, sample)
        try:
            cached = cached_pages(source.fd, start, size) * PAGE
        except OSError:
            return 0
        return size - start - cached if cached <= (size - start) * MOST_CACHED else 0


def _read_end(path: str, sample: int) -> int:
    """Read a sample, and return how many bytes came from the disk; 0 if the device fails."""
    with _opened(path) as source:
        size = 0 if source is None else source.size or 0
        if source is None:
            return 0
        start = _begin(size, sample)
        try:
            cached = cached_pages(source.fd, start, size) * PAGE
            read = sum(
                len(source.read_at(position, min(CHUNK, size - position))) for position in range(start, size, CHUNK)
            )
        except (OSError, SourceError):
            return 0
        return max(0, read - cached)


def _read_direct(path: str, sample: int) -> int:
    """Read a sample past the page cache, and return its bytes; 0 if the file system refuses that, or the device
    fails."""
    with _opened(path) as source:
        size = 0 if source is None else source.size or 0
        if source is None or not size or not DIRECT:
            return 0
        read = 0
        try:
            fcntl.fcntl(source.fd, fcntl.F_SETFL, fcntl.fcntl(source.fd, fcntl.F_GETFL) | DIRECT)
            with mmap.mmap(-1, CHUNK) as buffer:  # its address is a multiple of the page size, as O_DIRECT requires
                for position in range(_begin(size, sample), size, CHUNK):
                    read += os.preadv(source.fd, [buffer], position)
        except OSError:
            return 0
        return read
