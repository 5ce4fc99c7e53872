"""The offset index of a segment, as a hint where to begin reading. It is never trusted: an entry is used only if a
batch begins at its position.

The invariant in every release (from 0.8 on): an entry's position is a batch boundary, that batch's base offset is at
most the entry's offset, and all offsets of earlier batches are below it."""

from __future__ import annotations

import os
import struct
import sys
from array import array
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from typing import NamedTuple, overload

from kdump.format.batch_formats import FORMATS
from kdump.format.count_text import plain_count
from kdump.format.index import INDEX_ENTRY, TIME_INDEX_ENTRY
from kdump.io.directory_listing import is_url
from kdump.io.errors import SourceError, is_missing, listing_error
from kdump.io.file_system import tree_at
from kdump.io.link_boundary import refuse
from kdump.io.run import Limits
from kdump.io.source import FileSource, Source, open_source
from kdump.io.unreadable_paths import note
from kdump.io.window import Window
from kdump.log import file_kinds
from kdump.log.header_candidate import candidate_at
from kdump.log.paths import Target
from kdump.log.resync import Resync

ENTRY = struct.Struct(">ii")
LARGEST = 64 * 1024 * 1024
"""Maximum bytes of an index that is read; segment.index.bytes is 10 MiB by default."""


def index_size(path: str, source: Source) -> int:
    """Return the size in bytes of the index at `path`, 0 if it is unknown. Raises SourceError if it is too large."""
    size = source.size or 0
    if size > LARGEST:
        raise SourceError.at(path, f"{plain_count(size, 'byte')}, too large for an index (at most {LARGEST} are read)")
    return size


PIECE = 1 << 20
"""Bytes of an index that are read at once."""


class _Column(Sequence[int]):
    """Every other number of `pairs` from `start` on, plus `base`."""

    def __init__(self, pairs: array[int], start: int, base: int) -> None:
        self._pairs, self._start, self._base = pairs, start, base

    def __len__(self) -> int:
        return len(self._pairs) // 2

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        return self._base + self._pairs[2 * range(len(self))[index] + self._start]


class IndexLookup:
    """Offsets and positions of index entries, in ascending order; empty if there is no valid index. An entry takes 8
    bytes, as in the file: an index may have millions."""

    def __init__(self, pairs: array[int], base: int) -> None:
        self.offsets: Sequence[int] = _Column(pairs, 0, base)
        self.positions: Sequence[int] = _Column(pairs, 1, 0)

    def __len__(self) -> int:
        return len(self.offsets)


def open_index_lookup(path: str, name_offset: int | None) -> IndexLookup:
    """Return the entries of the .index of the segment `path`. Zeros after the last one are preallocation."""
    stem, dot, ending = path.rpartition(".log")
    pairs = array("i")
    if dot and name_offset is not None:
        with suppress(UnusableIndex):
            pairs = _pairs(stem + ".index" + ending)
    return IndexLookup(pairs, name_offset or 0)


def _pairs(path: str) -> array[int]:
    """Return the relative offsets and positions of an .index. Raises UnusableIndex."""
    pairs = array("i")
    offset, position = -1, -1
    for piece in index_pieces(path, ENTRY.size):
        for entry in ENTRY.iter_unpack(piece):
            if entry[0] <= offset or entry[1] <= position:
                raise UnusableIndex
            offset, position = entry
        numbers = array("i", piece)
        if sys.byteorder == "little":
            numbers.byteswap()
        pairs.extend(numbers)
    return pairs


class UnusableIndex(Exception):
    """Raised for an index that is not as brokers write it; it is then ignored."""


def index_pieces(path: str, entry_size: int) -> Iterator[bytes]:
    """Yield the entries of an index in pieces, without the zeros of preallocation after the last one. Yields nothing if
    the index does not exist, is too large, or ends in part of an entry, and ends early if it cannot be read. Raises
    UnusableIndex if there are such zeros elsewhere, or if a compressed index ends in part of an entry."""
    zeros = 0
    try:
        with closing(open_source(path) if is_url(path) or tree_at(path) else _opened(path)) as source:
            size = source.size or 0  # unknown if it is compressed
            position, step = 0, PIECE // entry_size * entry_size
            while size <= LARGEST and not size % entry_size and position < LARGEST:
                piece = source.read_at(position, step)
                if not piece:
                    return
                used = len(piece.rstrip(b"\0"))
                if len(piece) % entry_size or (used and zeros):
                    raise UnusableIndex
                used += -used % entry_size
                zeros += len(piece) - used
                yield piece[:used]
                position += len(piece)
                source.release(position)
    except (OSError, SourceError):
        return


def begins_batch(window: Window, position: int, offset: int, name_offset: int | None) -> bool:
    """Return True if a batch begins at `position`, with a matching checksum, and (v2) no base offset above `offset`."""
    limits = Limits()
    claim = candidate_at(window, position, limits)
    if claim.header is None or claim.error is not None or not window.reaches(claim.end):
        return False
    if not FORMATS[claim.header.magic].is_message and claim.first_offset > offset:
        return False
    resync = Resync(window, limits, name_offset)
    return resync.checksum_matches(position, claim.size, claim.header.magic, claim.header.crc)


def open_index(path: str) -> Source:
    """Open an index on the local disk, or in a bundle. Raises OSError, SourceError."""
    return open_source(path) if tree_at(path) else _opened(path)


def _opened(path: str) -> FileSource:
    """Open an index on the local disk. Raises OSError; SourceError for a pipe of that name, which does not block."""
    try:
        refuse(path)
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if not is_missing(error):
            note(listing_error(error, path))
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
        path = stem + name + ending
        with closing(open_index(path)) as source:
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
