"""The bytes of a segment of which some are withheld, for a reader that follows the lengths in headers as a broker does:
headers are where they were, and payloads that are withheld are zeros."""

from __future__ import annotations

from kdump.format.batch_formats import format_of
from kdump.format.batch_header import BATCH_HEADER, CRC_START, LOG_OVERHEAD, BatchHeader
from kdump.format.checksum import checksum
from kdump.format.errors import MAGIC_UNKNOWN, DecodeError
from kdump.format.legacy_message import CRC_START as MESSAGE_CRC_START
from kdump.format.legacy_message import MESSAGES, MIN_MESSAGE_SIZE, MessageHeader, read_header
from kdump.io.errors import SourceError, damaged_mount
from kdump.io.run import Limits
from kdump.io.source import Source
from kdump.io.window import Window
from kdump.io.withheld import StoredSegment
from kdump.log.legacy_records import contents_of
from kdump.log.region import (
    JUNK,
    MAX_LENGTH,
    PADDING,
    TORN,
    Batch,
    BatchRun,
    BrokerView,
    DefaultRecordBatch,
    KnownBatch,
    LegacyRecordBatch,
    Region,
    make_batch,
    short_view,
    without_problems,
)
from kdump.log.stored_regions import size_of
from kdump.log.withheld_segment import WithheldSegment


class SegmentBytes(StoredSegment):
    """A segment that can be read like a file. Holds what one line says about it at a time."""

    def __init__(self, stored: StoredSegment) -> None:
        self.__dict__.update(stored.__dict__)
        self.reader = WithheldSegment(self)
        self._whole: dict[int, Batch] = {}
        self._known: list[tuple[int, int]] = []
        """Start and end of bytes that are there."""
        self._padding: list[tuple[int, int]] = []
        """Start and end of zeros that are in the file."""
        self._views: dict[int, BrokerView] = {}
        """What a broker finds where no batch begins."""
        self._held = (0, 0)
        """Start and end of what the line is about."""

    def read_at(self, position: int, count: int) -> bytes:
        """Return `count` bytes from `position`, fewer at the end. Raises SourceError for damage."""
        return self.bytes.read(position, count)

    def batch_at(self, position: int) -> Batch | None:
        """Return the batch that begins at a position. Raises SourceError for damage."""
        self._hold(position)
        return self._whole.get(position)

    def batch_of(self, position: int, size: int, message: MessageHeader | None, limits: Limits) -> Batch:
        """Return the batch that a broker reads at a position. `message`: its header, if the broker takes it for a
        message of magic 0 or 1. Raises SourceError if the bundle does not have it."""
        batch = self.batch_at(position)
        if message is not None and isinstance(batch, DefaultRecordBatch):
            view, taken = self._views.get(position), make_batch(batch.window, position, size, limits, message)
            assert isinstance(taken, LegacyRecordBatch)
            taken.known = KnownBatch(contents=None if view is None else view.contents)
            batch = None if taken.is_compressed and taken.known.contents is None else taken
        if batch is None or batch.size != size:
            raise SourceError.at(self.name, f"the batch at byte {position} is not in the bundle")
        return without_problems(batch)

    def require_bytes(self, position: int, count: int) -> None:
        """Raises SourceError if bytes are not in the bundle."""
        self._hold(position)
        if not any(start <= position and position + count <= end for start, end in self._known):
            raise SourceError.at(self.name, f"the bytes at byte {position} are not in the bundle")

    def require(self, position: int, *, magic: bool = False) -> None:
        """Raises SourceError if the bundle does not have what a broker finds at a position, with `magic` also the
        magic."""
        self._hold(position)
        view = self._views.get(position)
        is_known = position in self._whole or (view is not None and not (magic and view.header is None))
        if not is_known and not any(start <= position < end for start, end in self._padding):
            raise SourceError.at(
                self.name, f"what a broker reads at byte {position}, where no batch begins, is not in the bundle"
            )

    def checksum_of(self, position: int, size: int) -> int:
        """Return the checksum of the bytes of a batch. Raises SourceError if the bundle does not have it."""
        batch = self.batch_at(position)
        view = self._views.get(position)
        if view is not None and view.crc is not None and view.length + LOG_OVERHEAD == size:
            return view.crc
        is_other = isinstance(batch, DefaultRecordBatch) and is_taken_for_message(batch)
        if batch is None or batch.size != size or is_other or not self.log.checksums:
            raise SourceError.at(self.name, f"the checksum of the batch at byte {position} is not in the bundle")
        return batch.computedCrc

    def _hold(self, position: int) -> None:
        """Read the line that is about a position."""
        if self._held[0] <= position < self._held[1]:
            return
        self._known, self._whole, self._padding, self._views = [], {}, [], {}
        try:
            start, row = self.reader.line_at(position)
            for region in self.reader.regions_of_line(start, row, Limits()):
                self._add(region)
        except DecodeError as error:
            raise damaged_mount(self.name, error) from error
        self._held = (start, start + size_of(row))

    def _add(self, region: Region) -> None:
        if isinstance(region, BatchRun):
            for batch in region.batches():
                self._add(batch)
        elif isinstance(region, (DefaultRecordBatch, LegacyRecordBatch)):
            self._whole[region.position] = region
            if region.broker_view is not None:
                self._views[region.position] = region.broker_view
            is_there = not (region.lacks or region.replaced_under)
            size = region.size if is_there else region.format.header.size
            self._known.append((region.position, region.position + size))
        elif region.kind == PADDING:
            self._padding.append((region.position, region.end))
        else:
            view = broker_view_of(region)
            if view is not None:
                self._views[region.position] = view


def broker_view_of(region: Region) -> BrokerView | None:
    """Return what a broker finds where no batch begins, as far as it is known without the bytes."""
    if isinstance(region.claimed, BatchHeader):
        return BrokerView(region.claimed.batchLength, region.claimed)
    if region.kind == TORN and region.broker_view is None:
        return BrokerView(MAX_LENGTH)
    return region.broker_view


def bytes_of_view(view: BrokerView, size: int) -> bytes:
    """Return the first bytes of a region of that size, as far as they matter to a broker."""
    data = bytes(8) + view.length.to_bytes(4, "big", signed=True) if view.header is None else view.header.packed()
    return data[:size]


def is_taken_for_message(batch: DefaultRecordBatch) -> bool:
    """Return True if a broker takes the batch for a message of magic 0 or 1, because of its stored magic."""
    return format_of(batch.stored_header.magic).is_message


def broker_view(window: Window, region: Region) -> BrokerView | None:
    """Return what a broker finds where junk begins, or a batch that it takes for a message of magic 0 or 1. None if
    that cannot be known without bytes of the junk; of any other region, what its reader has found."""
    size = window.source.size
    if isinstance(region, DefaultRecordBatch) and is_taken_for_message(region):
        covered = window.chunks(region.position + MESSAGE_CRC_START, region.size - MESSAGE_CRC_START)
        crc, contents = checksum(0, covered), None
        if region.stored_header.magic in MESSAGES:
            header = read_header(region.stored_header.packed())
            message = make_batch(window, region.position, region.size, region.limits, header)
            assert isinstance(message, LegacyRecordBatch)
            contents = contents_of(message) if message.is_compressed else None
        return BrokerView(region.size - LOG_OVERHEAD, None, crc, contents)
    if region.kind != JUNK or size is None:
        return region.broker_view
    data = bytes(window.peek(region.position, BATCH_HEADER.size))
    if len(data) < BATCH_HEADER.size:
        return short_view(data)
    length = int.from_bytes(data[8:LOG_OVERHEAD], "big", signed=True)
    left = size - region.position - LOG_OVERHEAD
    if region.code == MAGIC_UNKNOWN and 0 <= length <= left:
        claimed = BATCH_HEADER.read(data)
        magic, start = (0, MESSAGE_CRC_START) if format_of(claimed.magic).is_message else (2, CRC_START)
        crc = checksum(magic, window.peeks(region.position + start, length + LOG_OVERHEAD - start))
        return BrokerView(length, claimed, crc)
    if length > left:
        return BrokerView(MAX_LENGTH)
    return BrokerView(length) if length < MIN_MESSAGE_SIZE else None


def withheld_bytes(source: Source) -> SegmentBytes | None:
    """Return the source if bytes of it are withheld; None if not."""
    return source if isinstance(source, SegmentBytes) else None
