"""Reads a file of batches as Kafka does: from length to length, trusting each.

Kafka stops at a length that extends past the end of the file, and throws on an invalid length. kdump's own reader
(kdump.log.region_reader) also finds batches after damage.

Source: org.apache.kafka.common.record.FileLogInputStream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kdump.format.batch_formats import LARGEST_HEADER, format_of
from kdump.format.batch_header import LOG_OVERHEAD, BatchHeader
from kdump.format.count_text import count_text, plain_count
from kdump.format.legacy_message import MESSAGES, MIN_MESSAGE_SIZE, MessageHeader
from kdump.io.run import Limits
from kdump.io.window import Window
from kdump.kafka.errors import CorruptRecord
from kdump.log.region import PADDING, Batch, make_batch
from kdump.log.region_reader import regions
from kdump.log.withheld_bytes import withheld_bytes

UP_TO_MAGIC = 17
"""Bytes of a batch up to and including its magic (Records.HEADER_SIZE_UP_TO_MAGIC)."""


class RecordBatchView(NamedTuple):
    """A batch as its header describes it. `header` is None for magic 0 and 1."""

    position: int
    size: int
    baseOffset: int
    """For magic 0 and 1, the stored offset, which is the last one."""
    lastOffset: int
    magic: int
    header: BatchHeader | None
    timestamp: int = -1
    """Of magic 1; epoch ms."""

    @property
    def maxTimestamp(self) -> int:
        return self.timestamp if self.header is None else self.header.maxTimestamp

    @property
    def end(self) -> int:
        return self.position + self.size


class NoBatch(NamedTuple):
    """The reason why Kafka reads no batch at a position, empty at the end of the file, and the message of the
    CorruptRecordException that it throws, empty if it throws none. `thrown`: the exception outside recovery, if it is
    another one; `field`: what would be wrong of a batch there."""

    reason: str = ""
    exception: str = ""
    thrown: str = ""
    field: str = "length"


class StreamStop(NamedTuple):
    """The position at which Kafka stops before the end of the file. `thrown`: with an exception; otherwise it treats
    the rest as an incomplete batch. `next_valid`: position of the next valid batch, None if there is none. `zeros`: the
    rest consists of zeros; `field`: what is wrong if a batch there is valid otherwise."""

    position: int
    reason: str
    thrown: bool
    next_valid: int | None = None
    zeros: bool = False
    field: str = "length"


class FileLogInputStream:
    """The batches of a file up to byte `end`, by default all. For a window whose source has no known size, `end` may be
    after its last byte."""

    def __init__(self, window: Window, end: int | None = None) -> None:
        self.window, self.end = window, end
        size = window.source.size
        self._end = size if end is None or size is None else min(end, size)
        self._withheld = withheld_bytes(window.source)

    def reaches(self, position: int) -> bool:
        if self._end is not None:
            return position <= self._end
        return (self.end is None or position <= self.end) and self.window.reaches(position)

    def next_batch(self, position: int) -> RecordBatchView | NoBatch:
        """Return the batch at `position` (nextBatch). Raises SourceError."""
        window = self.window
        end = self._end
        if position + UP_TO_MAGIC >= end if end is not None else not self.reaches(position + UP_TO_MAGIC + 1):
            left = bytes(window.view(position, UP_TO_MAGIC))
            is_end = not left or not self.reaches(position + len(left))
            return NoBatch("" if is_end else f"{count_text(len(left), 'byte')} left, less than a header")
        if self._withheld is not None:
            self._withheld.require(position)
        view = window.view(position, LARGEST_HEADER)
        if len(view) < UP_TO_MAGIC:  # truncated meanwhile
            return NoBatch()
        base = int.from_bytes(view[:8], "big", signed=True)
        length = int.from_bytes(view[8:12], "big", signed=True)
        if length < MIN_MESSAGE_SIZE:
            reason = f"a length of {plain_count(length, 'byte')}, below the minimum, {MIN_MESSAGE_SIZE}"
            exception = f"Found record size {length} smaller than minimum record overhead ({MIN_MESSAGE_SIZE})"
            return NoBatch(reason if any(view) else "zeros where a batch should start", exception)
        size = LOG_OVERHEAD + length
        if position + size > end if end is not None else not self.reaches(position + size):
            if self.end is not None and window.reaches(position + size):
                return NoBatch()
            return NoBatch(f"a batch of {plain_count(size, 'byte')}, of which only {_left(window, position)} are there")
        magic = int.from_bytes(view[16:17], "big", signed=True)
        layout = format_of(magic).header
        if format_of(magic).is_message:
            timestamp = int.from_bytes(view[18:26], "big", signed=True) if magic else -1
            return RecordBatchView(position, size, base, base, magic, None, timestamp)
        if len(view) < layout.size:
            reason = f"{count_text(len(view), 'byte')} left, less than a"
            thrown = f"KafkaException: Failed to load record batch at position {position}"  # loadBatchWithSize
            return NoBatch(f"{reason} header", f"{reason} batch header", thrown)
        header = layout.read(view)
        return RecordBatchView(position, size, base, header.lastOffset, magic, header)

    def batch(self, head: RecordBatchView, limits: Limits) -> Batch:
        """Return the batch to decode its records. Raises SourceError if they are withheld."""
        header = head.header or legacy_header(self.window, head)
        if self._withheld is not None:
            message = header if isinstance(header, MessageHeader) else None
            return self._withheld.batch_of(head.position, head.size, message, limits)
        return make_batch(self.window, head.position, head.size, limits, header)


def legacy_header(window: Window, head: RecordBatchView) -> MessageHeader:
    """Return the header of a message of magic 0 or 1. Kafka accepts sizes too small for one: the missing bytes are
    padded with zeros."""
    layout = MESSAGES[head.magic].struct
    data = bytes(window.view(head.position, layout.size))
    values = layout.unpack_from(data.ljust(layout.size, b"\0"))
    return MessageHeader._make(values if head.magic else (*values[:5], None, values[5]))


def read_batches(window: Window, start: int, end: int, *, whole: bool = False) -> Iterator[RecordBatchView]:
    """Yield the batches from byte `start` to `end`; stop at one that runs past `end`. `whole`: the caller reads all
    bytes, not only headers. Raises CorruptRecord for a length that is invalid in every format or an incomplete header,
    and SourceError."""
    stream = FileLogInputStream(window, end)
    position = start
    while True:
        window.release(position)
        head = stream.next_batch(position)
        if isinstance(head, NoBatch):
            if head.exception:
                raise CorruptRecord(position, head.exception, thrown=head.thrown)
            return
        yield head
        if not whole:
            window.seek_headers(head.size)
        position += head.size


def kafka_batches(
    window: Window, *, name_offset: int | None = None, limits: Limits | None = None, max_bytes: int | None = None
) -> Iterator[Batch | StreamStop]:
    """Yield the batches in the first `max_bytes` bytes (default: all) of the file in `window`, in order, and a
    StreamStop in place of bytes that Kafka cannot read. Where Kafka throws, reading continues at the next valid batch;
    as long as it does not, this yields exactly the batches that Kafka reads, including damaged ones. A Batch can be
    read until the next item is requested. Raises SourceError."""
    limits = limits or Limits()
    stream = FileLogInputStream(window, max_bytes)
    position = 0
    while True:
        window.release(position)
        head = stream.next_batch(position)
        if isinstance(head, NoBatch) or head.magic < 0:
            head = _unknown_magic(head)
            if not head.reason:
                return
            stop, batch = _stop(window, position, head, name_offset, limits)
            yield stop
            if not stop.thrown or batch is None or not stream.reaches(batch.end):
                return
        else:
            batch = stream.batch(head, limits)
        yield batch
        position = batch.end


def batch_at(window: Window, position: int, limits: Limits | None = None) -> Batch | None:
    """Return the batch that Kafka would read at `position`, None if it would read none. Raises SourceError."""
    if not 0 <= position <= (window.source.size or position):
        return None
    stream = FileLogInputStream(window)
    head = stream.next_batch(position)
    return None if isinstance(head, NoBatch) or head.magic < 0 else stream.batch(head, limits or Limits())


def _unknown_magic(head: RecordBatchView | NoBatch) -> NoBatch:
    return (
        head if isinstance(head, NoBatch) else NoBatch(f"magic {head.magic} is unknown", "unknown magic", field="magic")
    )


def _stop(
    window: Window, position: int, no: NoBatch, name_offset: int | None, limits: Limits
) -> tuple[StreamStop, Batch | None]:
    """Return the StreamStop at `position`, and the next valid batch, which the reader finds."""
    only_zeros = True
    for region in regions(window, name_offset=name_offset, start=position, limits=limits):
        if isinstance(region, Batch) and region.crcValid:
            return StreamStop(position, no.reason, bool(no.exception), region.position, field=no.field), region
        only_zeros = only_zeros and region.kind == PADDING
    return StreamStop(position, no.reason, bool(no.exception), None, only_zeros), None


def _left(window: Window, position: int) -> int:
    """Return the number of bytes from `position` to the end; reads a stream to its end."""
    size = window.source.size
    end = position
    while size is None:
        end += window.size
        window.reaches(end)
        size = window.source.size
    return size - position
