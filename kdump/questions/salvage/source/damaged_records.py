"""Best-effort recovery: makes a valid batch of the records that decode in a damaged one. Only on request.

If the checksum of a batch does not match, nothing confirms its contents. If one flipped bit explains the difference,
correcting that bit restores the whole batch. Otherwise the records before the first invalid byte are written under the
same header, uncompressed, at the same offsets, with a new checksum; their values may be wrong. From a wrapper of magic
0 or 1, the messages whose own checksums match are recovered. Transaction markers are recovered only by correcting one
flipped bit. Of an uncompressed batch that the end of its file truncates, the complete records are written likewise."""

from __future__ import annotations

import gzip
from typing import Any

from kdump.check.engine.unflipped import batch_of, makes_sense, unflipped
from kdump.core.record_columns import each_row
from kdump.format.batch_header import COMPRESSION, KNOWN_ATTRIBUTES, LOG_OVERHEAD, MAGIC_POSITION
from kdump.format.batch_writer import message_bytes
from kdump.format.checksum import checksum
from kdump.format.codec_table import BY_NAME
from kdump.log import legacy_records
from kdump.log.batch_records import decode_columns
from kdump.log.reading import Reading
from kdump.log.region import Batch, DefaultRecordBatch, LegacyRecordBatch
from kdump.log.torn_batch import TornBatch
from kdump.questions.salvage.source.source_file import CORRECTED_BIT, take_last_offset

LARGEST = 64 * 1024 * 1024
"""Bytes of records that are collected from one batch, in memory."""
HIGHEST = (1 << 63) - 1
"""Largest offset or timestamp."""
GZIP = list(BY_NAME).index("gzip")


def rescue(batch: Batch) -> tuple[Batch, int, tuple[str, ...]] | None:
    """Return a valid batch of the records that decode, how many records the damaged batch seems to have had, and
    what was corrected if one flipped bit made its checksum match; None if no record decodes."""
    if batch.size <= LARGEST:
        made = unflipped(batch)
        if made is not None:
            marks = (CORRECTED_BIT, "offset corrected") if take_last_offset(made) else (CORRECTED_BIT,)
            return made, made.recordCount or 0, marks
    if isinstance(batch, DefaultRecordBatch):
        recovered = None if batch.isControlBatch else _records(batch)
    else:
        assert isinstance(batch, LegacyRecordBatch)
        recovered = _messages(batch) if batch.is_compressed else _lone(batch)
    return None if recovered is None else (*recovered, ())


def rescue_torn(batch: TornBatch) -> tuple[Batch, int] | None:
    """Return a valid batch of the complete records of one that the end of its file truncates, and how many it had."""
    return _records(batch)


def _records(batch: DefaultRecordBatch) -> tuple[Batch, int] | None:
    """Recover the records of a v2 batch, up to the first that is invalid."""
    header = batch.header
    parts: list[bytes] = []
    last, largest, size = -1, None, 0
    for columns, _ in decode_columns(batch):
        for start, end, _, time, delta, *_ in each_row(columns):
            if not last < delta <= header.lastOffsetDelta or size > LARGEST:
                break
            if header.baseTimestamp + time > HIGHEST:
                break
            parts.append(bytes(columns.data[start:end]))
            size += end - start
            last = delta
            largest = time if largest is None else max(largest, time)
        else:
            continue
        break
    if not parts or largest is None:
        return None
    payload = b"".join(parts)
    appended = header.timestampType == "LogAppendTime"
    fields: dict[str, Any] = {
        "batchLength": header.headerSize - LOG_OVERHEAD + len(payload),
        "attributes": header.attributes & KNOWN_ATTRIBUTES & ~COMPRESSION.mask,
        "maxTimestamp": header.maxTimestamp if appended else max(-1, header.baseTimestamp + largest),
        "recordCount": len(parts),
    }
    data = bytearray(header._replace(**fields).packed() + payload)
    data[17:21] = checksum(2, (data[21:],)).to_bytes(4, "big")
    made = batch_of(bytes(data), batch.position, batch.limits)
    claimed = header.recordCount if 0 <= header.recordCount <= header.lastOffsetDelta + 1 else len(parts)
    return None if made is None or not makes_sense(made) else (made, max(claimed, len(parts)))


def _messages(batch: LegacyRecordBatch) -> tuple[Batch, int] | None:
    """Recover the messages of a wrapper whose own checksums match, in a new wrapper."""
    parts: list[bytes] = []
    count = size = 0
    last = next_position = None
    for record in legacy_records.messages(batch):
        count += 1
        size += record.end - record.start
        if record.offset is None or not record.crcValid or record.magic != batch.magic or size > LARGEST:
            continue
        if not 0 <= record.offset <= HIGHEST:
            continue
        if last is not None and record.offset <= last:
            continue
        parts.append(record.raw)
        last, next_position = record.offset, record
    if not parts or last is None or next_position is None:
        return None
    value = gzip.compress(b"".join(parts), mtime=0)
    body = bytes((batch.magic, batch.attributes & ~COMPRESSION.mask & 0xFF | GZIP))
    if batch.magic:
        body += (batch.maxTimestamp or 0).to_bytes(8, "big", signed=True)
    body += (-1).to_bytes(4, "big", signed=True) + len(value).to_bytes(4, "big") + value
    made = batch_of(message_bytes(last, body), batch.position, batch.limits)
    return None if made is None or not makes_sense(made) else (made, count)


def _lone(batch: LegacyRecordBatch) -> tuple[Batch, int] | None:
    """Recover an uncompressed message unchanged, with a new checksum, if its sizes are consistent."""
    reading = Reading(batch)
    if batch.size > LARGEST or batch.lastOffset < 0 or not any(True for _ in legacy_records.messages(reading)):
        return None
    if reading.problems:
        return None
    data = b"".join(batch.chunks(0, batch.size))
    made = batch_of(message_bytes(batch.lastOffset, data[MAGIC_POSITION:]), batch.position, batch.limits)
    return None if made is None or not makes_sense(made) else (made, 1)
