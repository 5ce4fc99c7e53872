"""Batches with other names in their records. They are as long as their records then are, and never compressed, whatever
their headers say, which keep the size on the disk."""

from __future__ import annotations

from kdump.forensics.bundle.redact.messages import Undecodable, redacted_record
from kdump.forensics.bundle.redact.pseudonyms import Pseudonyms
from kdump.format.batch_header import BATCH_HEADER, CRC_START
from kdump.format.checksum import castagnoli
from kdump.format.varint import varint
from kdump.log.batch_records import records
from kdump.log.bundle_index import MAX_KEPT
from kdump.log.record import Record
from kdump.log.region import Batch, DefaultRecordBatch


def redacted_batch(batch: Batch, topic: str | None, names: Pseudonyms) -> bytes | None:
    """Return the header of a batch, with the checksum of what follows, and its records with other names; None if there
    may be a name in it that cannot be found. `topic`: which of Kafka's own it is of, None for a client's, of which only
    control batches can be redacted."""
    if not isinstance(batch, DefaultRecordBatch) or not batch.crcValid or (batch.is_compressed and topic is None):
        return None
    payload = bytearray()
    try:
        for record in records(batch):
            payload += _encoded(record, topic, names)
            if len(payload) > MAX_KEPT - BATCH_HEADER.size:
                return None
    except Undecodable:
        return None
    if batch.problems:
        return None
    stored = BATCH_HEADER.struct.pack(*batch.header._replace(crc=0))
    crc = castagnoli(payload, castagnoli(stored[CRC_START:]))
    return BATCH_HEADER.struct.pack(*batch.header._replace(crc=crc)) + payload


def _encoded(record: Record, topic: str | None, names: Pseudonyms) -> bytes:
    key, value = redacted_record(record, topic, names)
    assert record.timestampDelta is not None
    assert record.offsetDelta is not None
    numbers = varint(record.timestampDelta) + varint(record.offsetDelta)
    body = (record.attributes & 0xFF).to_bytes(1, "big") + numbers + _sized(key) + _sized(value) + varint(0)
    return varint(len(body)) + body


def _sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data
