"""Reads a file of batches as Kafka does: from length to length, trusting each.

Kafka stops at a length that extends past the end of the file, and throws on an invalid length or magic. In the second
case, the reader (kdump.log.region_reader) finds the next valid batch, and reading continues there. As long as Kafka
does not throw, this yields exactly the batches that Kafka reads, including damaged ones.

Source: org.apache.kafka.common.record.FileLogInputStream.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kdump.format.batch_header import BATCH_HEADER, LOG_OVERHEAD, BatchHeader
from kdump.format.count_text import count_text
from kdump.format.legacy_message import MESSAGES, MIN_MESSAGE_SIZE, MessageHeader
from kdump.log.header_candidate import HEADER, LEAST
from kdump.log.region import PADDING, Batch, Limits, Region, make_batch
from kdump.log.region_reader import regions
from kdump.log.window import Window


class StreamStop(NamedTuple):
    """The position at which Kafka stops before the end of the file. `thrown`: with an exception; otherwise it treats
    the rest as an incomplete batch. `next_valid`: position of the next valid batch, None if there is none. `zeros`: the
    rest consists of zeros."""

    position: int
    reason: str
    thrown: bool
    next_valid: int | None = None
    zeros: bool = False


def kafka_batches(
    window: Window, *, name_offset: int | None = None, limits: Limits | None = None, max_bytes: int | None = None
) -> Iterator[Batch | StreamStop]:
    """Yield the batches in the first `max_bytes` bytes (default: all) of the file in `window`, in order, and a
    StreamStop in place of bytes that Kafka cannot read. A Batch can be read until the next item is requested. Raises
    SourceError."""
    batches = _BatchStream(window, name_offset, limits or Limits(), max_bytes)
    position = 0
    while True:
        window.release(position)
        found = batches.look(position)
        if isinstance(found, _NoBatch):
            stop = batches.stop(position, found)
            yield stop
            if not stop.thrown or stop.next_valid is None:
                return
            found = batches.valid_batch(stop.next_valid)
            if found is not None and not batches.reaches(found.end):
                return
        if found is None:
            return
        yield found
        position = found.end


def batch_at(window: Window, position: int, limits: Limits | None = None) -> Batch | None:
    """Return the batch that Kafka would read at `position`, None if it would read none. Raises SourceError."""
    if not 0 <= position <= (window.source.size or position):
        return None
    found = _BatchStream(window, None, limits or Limits(), None).look(position)
    return found if isinstance(found, Batch) else None


class _NoBatch(NamedTuple):
    """The reason why no batch begins at a position. `thrown`: Kafka throws an exception."""

    reason: str
    thrown: bool


class _BatchStream:
    """Reads single batches of one file as Kafka does."""

    def __init__(self, window: Window, name_offset: int | None, limits: Limits, max_bytes: int | None) -> None:
        self.window = window
        self.name_offset = name_offset
        self.limits = limits
        self.max_bytes = max_bytes

    def reaches(self, position: int) -> bool:
        return (self.max_bytes is None or position <= self.max_bytes) and self.window.reaches(position)

    def look(self, position: int) -> Batch | _NoBatch | None:
        """Return the batch at `position`, or why there is none; None at the end of the file or of the `max_bytes`
        bytes."""
        data = bytes(self.window.view(position, HEADER))
        if len(data) < LEAST or not self.reaches(position + LEAST + 1):  # FileLogInputStream requires one more byte
            whole = not data or not self.reaches(position + len(data))
            return None if whole else _NoBatch(f"{count_text(len(data), 'byte')} left, less than a header", False)
        length = int.from_bytes(data[8:12], "big", signed=True)
        magic = int.from_bytes(data[LEAST - 1 : LEAST], "big", signed=True)
        size = LOG_OVERHEAD + length
        if length < MIN_MESSAGE_SIZE:
            if not any(data):
                return _NoBatch("zeros where a batch should start", True)
            return _NoBatch(f"a length of {length} bytes, below the minimum, {MIN_MESSAGE_SIZE}", True)
        if not self.reaches(position + size):
            if self.window.reaches(position + size):
                return None
            return _NoBatch(f"a batch of {size} bytes, of which only {_left(self.window, position)} are there", False)
        if magic < 0:
            return _NoBatch(f"magic {magic} is unknown", True)
        if magic > 1 and len(data) < BATCH_HEADER.size:
            return _NoBatch(f"{count_text(len(data), 'byte')} left, less than a header", True)
        return make_batch(self.window, position, size, self.limits, _header(magic, data))

    def stop(self, position: int, no: _NoBatch) -> StreamStop:
        """Return the StreamStop at `position`, after searching for the next valid batch."""
        only_zeros = True
        for region in self._regions(position):
            if isinstance(region, Batch) and region.crcValid:
                return StreamStop(position, no.reason, no.thrown, region.position)
            only_zeros = only_zeros and region.kind == PADDING
        return StreamStop(position, no.reason, no.thrown, None, only_zeros)

    def valid_batch(self, position: int) -> Batch | None:
        """Return the valid batch that the reader finds at `position`."""
        for region in self._regions(position):
            if isinstance(region, Batch) and region.crcValid:
                return region
        return None

    def _regions(self, position: int) -> Iterator[Region]:
        return regions(self.window, name_offset=self.name_offset, start=position, limits=self.limits)


def _header(magic: int, data: bytes) -> BatchHeader | MessageHeader:
    """Read the header as Kafka does: any magic above 1 is read as 2."""
    if magic > 1:
        return BATCH_HEADER.read(data)
    # Kafka accepts sizes too small for a header with keySize: pad the missing bytes with zeros.
    values = MESSAGES[magic].struct.unpack_from(data.ljust(HEADER, b"\0"), 0)
    return MessageHeader._make(values if magic else (*values[:5], None, values[5]))


def _left(window: Window, position: int) -> int:
    """Return the number of bytes from `position` to the end; reads a stream to its end."""
    size = window.source.size
    at = position
    while size is None:
        at += window.size
        window.reaches(at)
        size = window.source.size
    return size - position
