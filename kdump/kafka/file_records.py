"""The batches of a segment: their validity, their base offsets, and the search for an offset.

Source: org.apache.kafka.common.record.FileRecords.searchForOffsetFromPosition (4.3; KAFKA-19321), DefaultRecordBatch
and AbstractLegacyRecordBatch (ensureValid, baseOffset)."""

from __future__ import annotations

from kdump.format.batch_header import CRC_START
from kdump.format.checksum import checksum
from kdump.format.codec_table import BY_ID
from kdump.format.legacy_message import CRC_START as LEGACY_CRC_START
from kdump.format.legacy_message import MESSAGE_V0, MESSAGES
from kdump.io.run import Limits
from kdump.io.window import Window
from kdump.kafka.errors import CorruptRecord, UnreadableMessage
from kdump.kafka.file_log_input_stream import FileLogInputStream, RecordBatchView, legacy_header, read_batches
from kdump.log.legacy_records import read_wrapper
from kdump.log.region import LegacyRecordBatch
from kdump.log.withheld_bytes import withheld_bytes


def ensure_valid(window: Window, head: RecordBatchView) -> None:
    """Check size and checksum, but no records, as RecordBatch.ensureValid does. Raises CorruptRecord, and SourceError
    for a checksum that is withheld."""
    if head.header is not None:
        least = head.header.headerSize
        if head.size < least:
            reason = f"the size {head.size} is smaller than the minimum allowed overhead {least}"
            raise CorruptRecord(head.position, f"Record batch is corrupt ({reason})")
        stored, magic, covered = head.header.crc, 2, CRC_START
    else:
        stored = int.from_bytes(window.view(head.position + 12, 4), "big")
        magic, covered = 0, LEGACY_CRC_START
    withheld = withheld_bytes(window.source)
    if withheld is not None:
        computed = withheld.checksum_of(head.position, head.size)
    else:
        computed = checksum(magic, window.chunks(head.position + covered, head.size - covered))
    if stored != computed:
        reason = f"Record is corrupt (stored crc = {stored}, computed crc = {computed})"
        raise CorruptRecord(head.position, reason)


def base_offset(window: Window, head: RecordBatchView) -> int:
    """Return RecordBatch.baseOffset. A compressed message of magic 0 or 1, or with a negative magic, has to be
    decompressed for it. Raises UnreadableMessage, and SourceError if that is withheld."""
    if head.header is not None:
        return head.baseOffset
    codec = window.view(head.position + MESSAGE_V0.positions["attributes"], 1)[0] & 0x07
    if not codec:
        return head.baseOffset
    wrong = "this magic is unknown"
    if head.magic in MESSAGES:
        batch = FileLogInputStream(window).batch(head, Limits())
        assert isinstance(batch, LegacyRecordBatch)
        read_wrapper(batch)
        if batch.baseOffset is not None:
            return batch.baseOffset
        wrong = batch.problems[0].reason if batch.problems else "its content is invalid"
    message = f"the broker has to decompress a message of magic {head.magic}, which cannot be read: {wrong}"
    raise UnreadableMessage(message, _wrapper_exception(window, head, codec), head.position, head.baseOffset)


def _wrapper_exception(window: Window, head: RecordBatchView, codec: int) -> str:
    """Return the exception of a broker for a compressed message without magic 2 that it cannot read
    (AbstractLegacyRecordBatch.DeepRecordsIterator, LegacyRecord.value, Utils.sizeDelimited)."""
    if codec >= len(BY_ID):
        return f"IllegalArgumentException: Unknown compression type id: {codec}"
    if head.magic not in MESSAGES:
        return f"InvalidRecordException: Invalid wrapper magic found in legacy deep record iterator {head.magic}"
    header, layout = legacy_header(window, head), MESSAGES[head.magic]
    if not BY_ID[codec].in_messages:
        what = "Invalid wrapper compressionType found in legacy deep record iterator"
        return f"InvalidRecordException: {what} {head.magic}"
    value_at, left = layout.size + max(0, header.keySize), head.size - layout.size - max(0, header.keySize) - 4
    if left < 0:
        return "IndexOutOfBoundsException"
    withheld = withheld_bytes(window.source)
    if withheld is not None:
        withheld.require_bytes(head.position + value_at, 4)
    size = int.from_bytes(window.view(head.position + value_at, 4), "big", signed=True)
    return (
        f"IllegalArgumentException: newLimit > capacity: ({size} > {left})" if size > left else "InvalidRecordException"
    )


def search(window: Window, target: int, start: int, end: int) -> RecordBatchView | None:
    """Return the batch at or after byte `start` in which FileRecords.searchForOffsetFromPosition looks for the offset
    `target`; None if it finds none. Raises CorruptRecord, UnreadableMessage."""
    before: RecordBatchView | None = None
    for head in read_batches(window, start, end):
        base = base_offset(window, head)
        if base == target:
            return head
        if base > target:
            return before if before is not None and before.lastOffset >= target else head
        before = head
    return before if before is not None and before.lastOffset >= target else None


def search_by_last_offset(window: Window, target: int, start: int, end: int) -> RecordBatchView | None:
    """Return the first batch at or after byte `start` whose last offset is at or above `target`, as
    FileRecords.searchForOffsetWithSize does up to 4.0; None if there is none. Raises CorruptRecord."""
    return next((head for head in read_batches(window, start, end) if head.lastOffset >= target), None)
