"""Reads the batches of a segment as a broker does: it follows the lengths in the headers, and stops at the first header
that is invalid. kdump's own reader (kdump.log.region_reader) also finds batches after damage; this one reads what Kafka
reads.

Source: org.apache.kafka.common.record.FileLogInputStream.nextBatch, DefaultRecordBatch and AbstractLegacyRecordBatch
(ensureValid, lastOffset, baseOffset), FileRecords.searchForOffsetFromPosition (4.3; KAFKA-19321).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kdump.forensics.restart.plan_values import EXIT, StartupFailed, StartupFailure
from kdump.format.batch_header import BATCH_HEADER, CRC_START, LOG_OVERHEAD, BatchHeader
from kdump.format.checksum import checksum
from kdump.format.errors import DecodeError
from kdump.format.legacy_message import CRC_START as LEGACY_CRC_START
from kdump.format.legacy_message import MessageHeader
from kdump.log.bundle_bytes import BundleBytes
from kdump.log.errors import SourceError
from kdump.log.legacy_records import read_wrapper
from kdump.log.region import Batch, LegacyRecordBatch, Limits, make_batch, read_header
from kdump.log.window import Window

UP_TO_MAGIC = 17
LEAST_SIZE = 14
"""LegacyRecord.RECORD_OVERHEAD_V0, in bytes: a smaller length is invalid in every format."""
READ_HEADERS = 4096
LARGE = 64 * 1024


class CorruptRecord(Exception):
    """Kafka's CorruptRecordException or InvalidRecordException: recovery truncates there, everything else fails."""

    def __init__(self, position: int, message: str, invalid: bool = False) -> None:
        super().__init__(message)
        self.position = position
        self.exception = "InvalidRecordException" if invalid else "CorruptRecordException"


class RecordBatchView(NamedTuple):
    """A batch as its header describes it. `header` is None for magic 0 and 1."""

    position: int
    size: int
    base: int
    """baseOffset; the stored offset of magic 0 and 1."""
    last: int
    magic: int
    header: BatchHeader | None

    @property
    def end(self) -> int:
        return self.position + self.size


def read_batches(window: Window, start: int, end: int, *, whole: bool = False) -> Iterator[RecordBatchView]:
    """Yield the batches from byte `start` to `end`, as FileLogInputStream does; stop at one that runs past `end`.
    `whole`: the caller reads all bytes, not only headers. Raises CorruptRecord for a length that is invalid in every
    format or an incomplete header, and SourceError."""
    position = start
    source = window.source
    while position < end - UP_TO_MAGIC:
        window.release(position)
        if isinstance(source, BundleBytes):
            source.require(position)
        view = window.view(position, BATCH_HEADER.size)
        if len(view) < UP_TO_MAGIC:
            return
        base = int.from_bytes(view[:8], "big", signed=True)
        length = int.from_bytes(view[8:12], "big", signed=True)
        if length < LEAST_SIZE:
            reason = f"Found record size {length} smaller than minimum record overhead ({LEAST_SIZE})"
            raise CorruptRecord(position, reason)
        size = LOG_OVERHEAD + length
        if position > end - size:
            return
        magic = int.from_bytes(view[16:17], "big", signed=True)
        if magic < 2:
            yield RecordBatchView(position, size, base, base, magic, None)
        elif len(view) < BATCH_HEADER.size:
            raise CorruptRecord(position, f"{len(view)} bytes left, less than a batch header")
        else:
            header = BATCH_HEADER.read(view)
            yield RecordBatchView(position, size, base, header.lastOffset, magic, header)
        if not whole:
            window.ahead = READ_HEADERS if size >= LARGE else window.size
        position += size


def ensure_valid(window: Window, head: RecordBatchView) -> None:
    """Check size and checksum, but no records, as RecordBatch.ensureValid does. Raises CorruptRecord, and SourceError
    for a checksum that is not in a bundle."""
    if head.header is not None:
        if head.size < BATCH_HEADER.size:
            reason = f"the size {head.size} is smaller than the minimum allowed overhead {BATCH_HEADER.size}"
            raise CorruptRecord(head.position, f"Record batch is corrupt ({reason})")
        stored, magic, covered = head.header.crc, 2, CRC_START
    else:
        stored = int.from_bytes(window.view(head.position + 12, 4), "big")
        magic, covered = 0, LEGACY_CRC_START
    if isinstance(window.source, BundleBytes):
        computed = window.source.checksum_of(head.position, head.size)
    else:
        computed = checksum(magic, window.chunks(head.position + covered, head.size - covered))
    if stored != computed:
        reason = f"Record is corrupt (stored crc = {stored}, computed crc = {computed})"
        raise CorruptRecord(head.position, reason)


def batch_of(window: Window, head: RecordBatchView, limits: Limits) -> Batch:
    """Return the batch to decode its records. That of a bundle raises SourceError if they are not in it."""
    if isinstance(window.source, BundleBytes):
        known = window.source.batch_at(head.position)
        if known is None or known.size != head.size:
            raise SourceError(f"{window.source.name}: the batch at byte {head.position} is not in the bundle")
        return known
    header = head.header or read_header(window.view(head.position, min(head.size, BATCH_HEADER.size)))
    return make_batch(window, head.position, head.size, limits, header)


def base_offset(window: Window, head: RecordBatchView, file: str) -> int:
    """Return RecordBatch.baseOffset. A compressed message of magic 0 or 1 has to be decompressed for it; if that fails,
    the broker exits. Raises StartupFailed."""
    if head.header is not None:
        return head.base
    view = window.view(head.position, min(head.size, BATCH_HEADER.size))
    try:
        header = read_header(view)
    except DecodeError:
        return head.base
    if not isinstance(header, MessageHeader) or header.compression == "none":
        return head.base
    batch = batch_of(window, head, Limits())
    assert isinstance(batch, LegacyRecordBatch)
    read_wrapper(batch)
    if batch.baseOffset is not None:
        return batch.baseOffset
    wrong = batch.problems[0].reason if batch.problems else "its content is invalid"
    raise StartupFailed(
        StartupFailure(
            EXIT,
            file,
            head.position,
            head.base,
            f"the broker has to decompress a message of magic {head.magic}, which cannot be read: {wrong}",
            "InvalidRecordException",
            f"save what is readable (kdump inspect --extract), then truncate {file} at byte {head.position}",
        )
    )


def search(window: Window, target: int, start: int, end: int, file: str) -> RecordBatchView | None:
    """Return the batch at or after byte `start` in which FileRecords.searchForOffsetFromPosition looks for the offset
    `target`; None if it finds none. Raises CorruptRecord, StartupFailed."""
    before: RecordBatchView | None = None
    for head in read_batches(window, start, end):
        base = base_offset(window, head, file)
        if base == target:
            return head
        if base > target:
            return before if before is not None and before.last >= target else head
        before = head
    return before if before is not None and before.last >= target else None


def search_by_last_offset(window: Window, target: int, start: int, end: int) -> RecordBatchView | None:
    """Return the first batch at or after byte `start` whose last offset is at or above `target`, as
    FileRecords.searchForOffsetWithSize does up to 4.0; None if there is none. Raises CorruptRecord."""
    return next((head for head in read_batches(window, start, end) if head.last >= target), None)
