"""What the headers of a segment say together: offsets, times, formats, codecs, and which bytes are no batch.

Headers of v2 batches are walked by their lengths, a block at a time: of small batches everything is read, since that is
quicker than seeking from one to the next (on a cold disk ten times); of large ones little more than the headers. A
batch counts once the next one begins where it ends, with a larger offset. From the first that does not, and for magic 0
and 1, the reader (kdump.log.reader) goes on: it finds its way through damage. No checksum of a v2 batch is taken on the
straight way, so bytes that are wrong inside of a batch are not seen here.
"""

from __future__ import annotations

from collections.abc import Callable

from kdump.format.batch import (
    BATCH_HEADER,
    CODECS,
    COMPRESSION,
    DELETE_HORIZON,
    LOG_OVERHEAD,
    MIN_BATCH_LENGTH,
    TIMESTAMP_TYPE,
    codec_name,
)
from kdump.log.claim import REACH
from kdump.log.header_sums import Headers
from kdump.log.index import begins_batch, last_entry
from kdump.log.kinds import INDEX, TIME_INDEX
from kdump.log.legacy import look_inside
from kdump.log.paths import Target
from kdump.log.reader import regions
from kdump.log.region import JUNK, PADDING, TORN, Batch, BatchLegacy, Limits, Region
from kdump.log.source import FileSource
from kdump.log.window import Window

SMALL = 64 * 1024
"""Bytes of a batch up to which what lies between two headers is read with them."""
BLOCK, HEADER_BLOCK = 256 * 1024, 4096
NO_FIRST = TIMESTAMP_TYPE.mask | DELETE_HORIZON.mask
"""With one of these attributes baseTimestamp is no timestamp of a record that counts."""

Met = Callable[[int], None]
"""Called with the bytes that have been dealt with since the last call."""


def read_headers(at: Target, window: Window, *, quick: bool = False, met: Met = lambda count: None) -> Headers:
    """The headers of the segment behind `window`; if `quick`, of its first batch and of those behind the last entry of
    its .index (where there is none, all of them), and the last entry of its .timeindex. Raises SourceError."""
    walk = _Walk(at, window, met)
    if not isinstance(window.source, FileSource):
        walk.thoroughly(0)
    elif not (quick and _only_ends(walk, at, window)):
        walk.straight(0)
    return walk.finished()


def _only_ends(walk: _Walk, at: Target, window: Window) -> bool:
    """Walk the first batch and the last ones; False, with nothing done, where no index shows where those are."""
    entry = last_entry(at, INDEX)
    if entry is None or not begins_batch(window, entry.position, entry.offset, at.name_offset):
        return False
    if not walk.first():
        return False
    skipped = entry.position > walk.position
    walk.met(max(0, entry.position - walk.position))
    walk.straight(max(entry.position, walk.position))
    if skipped:
        walk.found.partial = True
        latest = last_entry(at, TIME_INDEX)
        if latest is not None and walk.found.last is not None and latest.offset <= walk.found.last:
            walk.found.times(-1, latest.timestamp)
    return True


class _Walk:
    """The walk over one segment."""

    def __init__(self, at: Target, window: Window, met: Met) -> None:
        self.window = window
        self.name_offset = at.name_offset
        self.met = met
        self.found = Headers()
        self.position = 0
        """Where the last batch ends that was counted on the straight way."""
        self._last = -1 if at.name_offset is None else at.name_offset - 1
        self._attributes: set[int] = set()

    def first(self) -> bool:
        """Count the batch at the beginning. False if it is none of v2 that can be believed."""
        return self.straight(0, only_one=True)

    def straight(self, position: int, *, only_one: bool = False) -> bool:
        """Count the batches from `position` to the end, by their lengths as long as those can be believed, and then as
        the reader has them; or only the one there, if that can be. Whether the straight way led to the end.

        A batch in here takes half a microsecond, and there are millions: so it is all in one loop.
        """
        source, found, attributes_seen = self.window.source, self.found, self._attributes
        size = source.size or 0
        unpack, header_size = BATCH_HEADER.struct.unpack_from, BATCH_HEADER.size
        beyond = 1 << 63 if self.name_offset is None else min(1 << 63, self.name_offset + REACH)
        last, batches, records = self._last, 0, 0
        oldest = newest = -1
        buffer, start, block = b"", position, HEADER_BLOCK if only_one else BLOCK
        held: tuple[int, ...] | None = None
        held_at = told = position
        while True:
            header = None
            if position < size and not (only_one and held):
                inside = position - start
                if inside + header_size > len(buffer):
                    buffer, start, inside = source.read_at(position, block), position, 0
                    self.met(position - told)
                    told = position
                if inside + header_size <= len(buffer):
                    header = unpack(buffer, inside)
                    length = header[1]
                    end = position + LOG_OVERHEAD + length
                    if (
                        header[3] != 2
                        or length < MIN_BATCH_LENGTH
                        or end > size
                        or header[12] < 0
                        or not last < header[0] <= header[0] + header[6] < beyond
                    ):
                        header = None
                if header is None:
                    break
            if held is not None:
                base, _, _, _, _, attributes, delta, base_timestamp, max_timestamp, _, _, _, count = held
                if found.first is None:
                    found.first = base
                found.last = base + delta
                batches += 1
                records += count
                attributes_seen.add(attributes)
                if max_timestamp > newest:
                    newest = max_timestamp
                if attributes & NO_FIRST or not count:
                    base_timestamp = max_timestamp
                if base_timestamp >= 0 and (base_timestamp < oldest or oldest < 0):
                    oldest = base_timestamp
            if header is None:
                break
            held, held_at = header, position
            last = header[0] + header[6]
            position = end
            block = BLOCK if length < SMALL else HEADER_BLOCK
        found.batches += batches
        found.records = None if found.records is None else found.records + records
        found.times(oldest, newest)
        arrived = position == size or bool(only_one and held)
        self.met((position if arrived else held_at) - told)
        self.position, self._last = position, last
        if arrived:
            return True
        if not only_one:
            # The last batch may have a wrong length: it is judged anew, too.
            self.thoroughly(held_at)
        return False

    def thoroughly(self, position: int) -> None:
        """Count what the reader makes of the bytes from `position` on."""
        found = self.found
        stream = regions(self.window, name_offset=self.name_offset, start=position, limits=Limits())
        before: Region | None = None
        for region in stream:
            self.met(region.size)
            if before is not None and before.kind == PADDING:
                self._damaged(before)
            found.tail = ""
            if isinstance(region, Batch):
                self._batch(region)
            elif region.kind == PADDING:
                found.padding += region.size
                found.tail = PADDING
            elif region.kind == TORN:
                found.torn += region.size
                found.tail = TORN
            else:
                found.junk += region.size
                self._damaged(region)
            before = region

    def _batch(self, batch: Batch) -> None:
        found = self.found
        if isinstance(batch, BatchLegacy) and found.first is None:
            look_inside(batch)
        base = batch.lastOffset if batch.baseOffset is None else batch.baseOffset
        if batch.problems or not batch.crcValid or min(base, batch.lastOffset) < 0:
            self._damaged(batch)
        elif found.last is not None and base <= found.last:
            self._damaged(batch, f"offsets go back to {base}")
        found.batches += 1
        if found.records is not None:
            found.records = None if batch.recordCount is None else found.records + max(0, batch.recordCount)
        found.first = base if found.first is None else found.first
        found.last = batch.lastOffset
        found.formats.add(batch.magic)
        found.codecs.add(batch.compression)
        newest = -1 if batch.maxTimestamp is None else batch.maxTimestamp
        stored = not (batch.attributes & NO_FIRST) and batch.recordCount and batch.baseTimestamp is not None
        found.times(batch.baseTimestamp if stored and batch.baseTimestamp is not None else newest, newest)

    def _damaged(self, region: Region, what: str = "") -> None:
        if not self.found.damage:
            kind = what or (region.kind if region.kind in (JUNK, PADDING) else "a damaged batch")
            self.found.damage = f"{kind} at {region.position}"

    def finished(self) -> Headers:
        """What was found, the sets named."""
        found = self.found
        if self._attributes:
            found.formats.add(2)
            found.codecs |= {codec_name(COMPRESSION.of(attributes)) for attributes in self._attributes}
        unknown = sorted(found.codecs - set(CODECS.values()))
        if unknown and not found.damage:
            found.damage = f"compression {unknown[0]}"
        if found.first is not None and self.name_offset is not None and found.first < self.name_offset:
            found.damage = found.damage or f"offset {found.first} is below the file's name"
        return found
