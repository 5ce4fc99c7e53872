"""Summarizes the headers of a segment: offsets, times, formats, codecs, and bytes that belong to no batch.

Headers of v2 batches are located by their lengths, a block at a time: small batches are read completely, which is
faster than seeking from one to the next (ten times on a cold disk); of large ones, little more than the headers is
read. A batch counts once the next one begins where it ends, with a larger offset. From the first batch that fails this
on, and for magic 0 and 1, the reader (kdump.log.region_reader) takes over, which can resume after damage. Before that,
the only checksum that is computed is that of the last batch, which decides where the log ends: damage inside earlier v2
batches is not detected here.
"""

from __future__ import annotations

from collections.abc import Callable

from kdump.format.batch_header import (
    BATCH_HEADER,
    COMPRESSION,
    CRC_START,
    LOG_OVERHEAD,
    MIN_BATCH_LENGTH,
    MIN_RECORD_SIZE,
    max_records,
)
from kdump.format.checksum import checksum
from kdump.log.bundle_log import BundleLog
from kdump.log.file_kinds import INDEX, TIME_INDEX
from kdump.log.header_candidate import REACH
from kdump.log.header_totals import HeaderTotals
from kdump.log.offset_index_lookup import begins_batch, last_entry
from kdump.log.paths import Target
from kdump.log.region import Limits
from kdump.log.region_reader import regions
from kdump.log.region_totals import NO_FIRST, RegionTotals
from kdump.log.source import FileSource
from kdump.log.window import Window

SMALL = 64 * 1024
"""Batches with fewer bytes than this are read completely, larger ones only around their headers."""
BLOCK, HEADER_BLOCK = 256 * 1024, 4096
FEW_READS, FEW_HEADERS = 16, 128
"""A segment that takes at most this many reads and headers is always read completely: opening its two indexes, and
finding their last entries by bisection, takes as many reads and more CPU."""

OnProgress = Callable[[int], None]
"""Called with the number of bytes processed since the last call."""


def summarize_headers(
    target: Target, window: Window, *, quick: bool = False, on_progress: OnProgress = lambda count: None
) -> HeaderTotals:
    """Summarize the headers of the segment in `window`. If `quick`, read only the first batch, the batches from the
    last entry of its .index on, and the last entry of its .timeindex; without a usable .index, and if that is cheaper,
    read all batches. Raises SourceError."""
    if isinstance(window.source, BundleLog):
        on_progress(window.source.size or 0)
        return window.source.totals()
    reader = _HeaderReader(target, window, on_progress)
    if not isinstance(window.source, FileSource):
        reader.thoroughly(0)
    elif not (quick and reader.is_long() and _only_ends(reader, target, window)):
        reader.straight(0)
    return reader.finished()


def _only_ends(reader: _HeaderReader, target: Target, window: Window) -> bool:
    """Read the first batch and the last ones; return False, with nothing counted, if the index does not locate them."""
    entry = last_entry(target, INDEX)
    if entry is None or not begins_batch(window, entry.position, entry.offset, target.name_offset):
        return False
    if not reader.first():
        return False
    skipped = entry.position > reader.position
    reader.on_progress(max(0, entry.position - reader.position))
    buffer, inside = window.at_hand(entry.position, BATCH_HEADER.size)
    reader.known = buffer, entry.position - inside
    reader.straight(max(entry.position, reader.position))
    if skipped:
        reader.found.partial = True
        latest = last_entry(target, TIME_INDEX)
        if latest is not None and reader.found.last is not None and latest.offset <= reader.found.last:
            reader.found.times(-1, latest.timestamp)
    return True


def _has_room(header: tuple[int, ...]) -> bool:
    """Return True if a batch with these header fields has room for its records."""
    return header[12] <= max_records(LOG_OVERHEAD + header[1], COMPRESSION.of(header[5]))


class _HeaderReader:
    """Reads the headers of one segment."""

    def __init__(self, target: Target, window: Window, on_progress: OnProgress) -> None:
        self.window = window
        self.name_offset = target.name_offset
        self.on_progress = on_progress
        self._begin()
        self.known = b"", 0
        """Bytes that have been read, and the position of the first one: `straight` does not read them again."""
        self.position = 0
        """End of the last batch that `straight` counted."""
        self._last = -1 if target.name_offset is None else target.name_offset - 1

    def _begin(self) -> None:
        self.totals = RegionTotals(self.name_offset)
        self.found = self.totals.found

    def _again(self) -> None:
        """Read all batches with their checksums: some at the end are damaged."""
        self._begin()
        self.thoroughly(0)

    def is_long(self) -> bool:
        """Return True if reading all batches costs more than finding the last ones through the indexes, as estimated
        from the length of the first batch. Only v2 batches can be skipped."""
        source = self.window.source
        beginning = source.read_at(0, HEADER_BLOCK)
        self.known = beginning, 0
        if len(beginning) < BATCH_HEADER.size:
            return False
        header, size = BATCH_HEADER.struct.unpack_from(beginning), source.size or 0
        length = LOG_OVERHEAD + max(header[1], MIN_BATCH_LENGTH)
        reads = size // (BLOCK if length < SMALL else length)
        return bool(header[3] == 2) and (reads > FEW_READS or size // length > FEW_HEADERS)

    def first(self) -> bool:
        """Count the batch at the beginning. Returns False if it is not a plausible v2 batch."""
        return self.straight(0, only_one=True)

    def straight(self, position: int, *, only_one: bool = False) -> bool:
        """Count the batches from `position` to the end, by their lengths as long as those are plausible, then with the
        reader; with `only_one`, only a plausible one at `position`. Returns True if the lengths led to the end, or
        that one was counted.

        A batch takes half a microsecond here, and there are millions of them: so all is in one loop.
        """
        source, found, attributes_seen = self.window.source, self.found, self.totals.attributes
        size = source.size or 0
        unpack, header_size = BATCH_HEADER.struct.unpack_from, BATCH_HEADER.size
        beyond = 1 << 63 if self.name_offset is None else min(1 << 63, self.name_offset + REACH)
        last, batches, records = self._last, 0, 0
        oldest = newest = -1
        buffer, start = self.known
        block = HEADER_BLOCK if only_one else BLOCK
        held: tuple[int, ...] | None = None
        held_at = reported = position
        while True:
            header = None
            if position < size and not (only_one and held):
                inside = position - start
                if inside < 0 or inside + header_size > len(buffer):
                    buffer, start, inside = source.read_at(position, block), position, 0
                    self.on_progress(position - reported)
                    reported = position
                if inside + header_size <= len(buffer):
                    header = unpack(buffer, inside)
                    length = header[1]
                    end = position + LOG_OVERHEAD + length
                    if (
                        header[3] != 2
                        or length < MIN_BATCH_LENGTH
                        or end > size
                        or header[12] < 0
                        or (header[12] * MIN_RECORD_SIZE > length and not _has_room(header))
                        or not last < header[0] <= header[0] + header[6] < beyond
                    ):
                        header = None
                if header is None:
                    break
            elif held is not None and not only_one and not self._is_intact(held_at, position, held[4], buffer, start):
                self._again()
                return False
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
        self.on_progress((position if arrived else held_at) - reported)
        self.position, self._last = position, last
        if arrived:
            return True
        if not only_one:
            # The last batch may have a wrong length: let the reader check it again.
            counted = found.last
            self.thoroughly(held_at)
            if counted is not None and found.last == counted:  # no valid batch follows: is that one valid?
                self._again()
        return False

    def _is_intact(self, position: int, end: int, crc: int, buffer: bytes, start: int) -> bool:
        """Return True if the v2 batch position..end has this checksum. `buffer`: what was read from byte `start` on."""
        covered = position + CRC_START
        if start <= covered and end <= start + len(buffer):
            return checksum(2, (memoryview(buffer)[covered - start : end - start],)) == crc
        read = self.window.source.read_at
        return checksum(2, (read(at, min(BLOCK, end - at)) for at in range(covered, end, BLOCK))) == crc

    def thoroughly(self, position: int) -> None:
        """Count the regions that the reader finds from `position` on."""
        stream = regions(self.window, name_offset=self.name_offset, start=position, limits=Limits())
        for region in stream:
            self.on_progress(region.size)
            self.totals.add(region)

    def finished(self) -> HeaderTotals:
        """Return the totals, with formats, codecs and damage completed."""
        return self.totals.finished()
