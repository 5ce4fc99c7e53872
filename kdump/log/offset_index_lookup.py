"""The offset index of a segment, as a hint where to begin reading. It is never trusted: an entry is used only if a
batch begins at its position.

The invariant in every release (0.8 to 4.3): an entry's position is a batch boundary, that batch's base offset is at
most the entry's offset, and all offsets of earlier batches are below it.
"""

from __future__ import annotations

import os
import struct
from contextlib import closing
from typing import NamedTuple

from kdump.format.index import INDEX_ENTRY, TIME_INDEX_ENTRY
from kdump.log import file_kinds
from kdump.log.directory_listing import is_url
from kdump.log.errors import SourceError, is_missing
from kdump.log.header_candidate import candidate_at
from kdump.log.paths import Target
from kdump.log.region import Limits
from kdump.log.resync import Resync
from kdump.log.source import FileSource, open_source
from kdump.log.unreadable_paths import note
from kdump.log.window import Window

ENTRY = struct.Struct(">ii")
LARGEST = 64 * 1024 * 1024
"""Maximum bytes of an index that is read; segment.index.bytes is 10 MiB by default."""


class IndexLookup:
    """Offsets and positions of index entries, in ascending order; empty if there is no valid index."""

    def __init__(self, offsets: list[int], positions: list[int]) -> None:
        self.offsets = offsets
        self.positions = positions

    def __len__(self) -> int:
        return len(self.offsets)


def open_index_lookup(path: str, name_offset: int | None) -> IndexLookup:
    """Return the entries of the .index of the segment `path`. Zeros after the last one are preallocation."""
    stem, dot, ending = path.rpartition(".log")
    none = IndexLookup([], [])
    if not dot or name_offset is None:
        return none
    data = index_bytes(stem + ".index" + ending)
    if data is None or len(data) % ENTRY.size:
        return none
    offsets: list[int] = []
    positions: list[int] = []
    for relative, position in ENTRY.iter_unpack(data.rstrip(b"\0") + bytes(-len(data.rstrip(b"\0")) % ENTRY.size)):
        if offsets and (relative <= offsets[-1] - name_offset or position <= positions[-1]):
            return none
        if relative < 0 or position < 0:
            return none
        offsets.append(name_offset + relative)
        positions.append(position)
    return IndexLookup(offsets, positions)


def index_bytes(path: str) -> bytes | None:
    """Return the bytes of an index; None if it does not exist, cannot be read, or is too large."""
    try:
        with closing(open_source(path) if is_url(path) else _opened(path)) as source:
            return None if (source.size or 0) > LARGEST else source.read_at(0, LARGEST)
    except (OSError, SourceError):
        return None


def begins_batch(window: Window, position: int, offset: int, name_offset: int | None) -> bool:
    """Return True if a batch begins at `position`, with a matching checksum, and (v2) no base offset above `offset`."""
    limits = Limits()
    claim = candidate_at(window, position, limits)
    if claim.header is None or claim.error is not None or not window.reaches(claim.end):
        return False
    if claim.header.magic > 1 and claim.first_offset > offset:
        return False
    resync = Resync(window, limits, name_offset)
    return resync.checksum_matches(position, claim.size, claim.header.magic, claim.header.crc)


def _opened(path: str) -> FileSource:
    """Open an index on the local disk. Raises OSError; SourceError for a pipe of that name, which does not block."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if not is_missing(error):
            note(path, f"{path}: {error.strerror}")
        raise
    return FileSource(path, fd)


class LastEntry(NamedTuple):
    """The last entry of an .index (`position`, a byte of the .log) or of a .timeindex (`timestamp`, epoch ms)."""

    offset: int
    position: int = 0
    timestamp: int = -1


def last_entry(target: Target, kind: file_kinds.FileKind) -> LastEntry | None:
    """Return the last entry of the segment's index of that kind; None if there is none, or if it is not above the entry
    before it. Reads few bytes, however many zeros follow: indexes are preallocated with 10 MiB."""
    stem, dot, ending = target.path.rpartition(".log")
    if not dot or target.name_offset is None:
        return None
    layout, name = (INDEX_ENTRY, ".index") if kind is file_kinds.INDEX else (TIME_INDEX_ENTRY, ".timeindex")
    size = layout.size
    try:
        with closing(_opened(stem + name + ending)) as source:
            length = source.size or 0
            if length % size or length > LARGEST:
                return None
            # Entries ascend, so a binary search finds the zeros after them.
            low, high = 0, length // size
            while low < high:
                middle = (low + high) // 2
                low, high = (middle + 1, high) if any(source.read_at(middle * size, size)) else (low, middle)
            rows = list(layout.struct.iter_unpack(source.read_at(max(0, low - 2) * size, min(2, low) * size)))
    except (OSError, SourceError):
        return None
    if not rows or min(rows[-1]) < 0 or rows != sorted(rows):
        return None
    first, second = rows[-1]
    if kind is file_kinds.INDEX:
        return LastEntry(target.name_offset + first, position=second)
    return LastEntry(target.name_offset + second, timestamp=first)
