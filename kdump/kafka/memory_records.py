"""Removes records from a batch as Kafka's log cleaner does: what remains keeps its offsets, and the batch keeps its
producer ID, epochs, base sequence, base offset and last offset.

Source: org.apache.kafka.common.record.MemoryRecords.filterTo (internal.MemoryRecords from 4.3 on) with
BatchRetention.RETAIN_EMPTY, and DefaultRecordBatch.writeEmptyHeader. Unlike the cleaner, this sets no delete horizon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from kdump.format.batch_header import COMPRESSION, CONTROL, DELETE_HORIZON, LOG_OVERHEAD, TIMESTAMP_TYPE, TRANSACTIONAL
from kdump.format.batch_writer import message_bytes, with_checksum
from kdump.format.codec.compress import compress
from kdump.format.numbers import int64
from kdump.format.varint import read_varint, read_varlong, varint
from kdump.log.batch_records import records
from kdump.log.record import Record
from kdump.log.region import Batch, DefaultRecordBatch, LegacyRecordBatch

NO_TIMESTAMP = -1


class FilterResult(NamedTuple):
    """What is left of a batch. `data`: its bytes; None if it is unchanged; empty if it is removed, because a batch of
    magic 0 or 1 without records does not exist. `last`: its last offset, which for magic 0 and 1 is that of the last
    record. `kept` and `removed`: numbers of records."""

    data: bytes | None
    last: int
    kept: int
    removed: int


def filter_to(batch: Batch, retains: Callable[[Record], bool]) -> FilterResult:
    """Remove the records of a valid batch for which `retains` returns False; it is called once for each record, in
    order. The records are read again if only some of them remain."""
    retained = bytearray(retains(record) for record in records(batch))
    kept = sum(retained)
    removed = len(retained) - kept
    if not removed:
        return FilterResult(None, batch.lastOffset, kept, 0)
    remaining = (record for record, is_retained in zip(records(batch), retained, strict=False) if is_retained)
    if isinstance(batch, DefaultRecordBatch):
        data = _rebuilt(batch, kept, remaining) if kept else _emptied(batch)
        return FilterResult(data, batch.lastOffset, kept, removed)
    assert isinstance(batch, LegacyRecordBatch)
    if not kept:
        return FilterResult(b"", batch.lastOffset, 0, removed)
    data, last = _rewrapped(batch, remaining)
    return FilterResult(data, last, kept, removed)


def _emptied(batch: DefaultRecordBatch) -> bytes:
    """Return the batch without records, as a header that keeps its range of offsets and sequences."""
    header = batch.header
    remaining = TIMESTAMP_TYPE.mask | TRANSACTIONAL.mask | CONTROL.mask
    return with_checksum(
        header._replace(
            batchLength=header.headerSize - LOG_OVERHEAD,
            attributes=header.attributes & remaining,
            baseTimestamp=NO_TIMESTAMP,
            recordCount=0,
        ),
        b"",
    )


def _rebuilt(batch: DefaultRecordBatch, kept: int, remaining: Iterable[Record]) -> bytes:
    header = batch.header
    times = _Times(header.deleteHorizonMs)
    payload = compress(batch.compression, times.records(remaining))
    attributes = header.attributes & (
        COMPRESSION.mask | TIMESTAMP_TYPE.mask | TRANSACTIONAL.mask | CONTROL.mask | DELETE_HORIZON.mask
    )
    appended = header.timestampType == "LogAppendTime"
    return with_checksum(
        header._replace(
            batchLength=header.headerSize - LOG_OVERHEAD + len(payload),
            attributes=attributes,
            baseTimestamp=times.base or 0,
            maxTimestamp=header.maxTimestamp if appended else times.largest,
            recordCount=kept,
        ),
        payload,
    )


class _Times:
    """The timestamps of the records that remain. `base`: the delete horizon, or else that of the first one."""

    def __init__(self, base: int | None) -> None:
        self.base, self.largest = base, NO_TIMESTAMP

    def records(self, remaining: Iterable[Record]) -> Iterator[bytes]:
        """Yield the bytes of the records, with their deltas from the new base timestamp."""
        for record in remaining:
            timestamp = record.timestamp or 0
            self.base = timestamp if self.base is None else self.base
            self.largest = max(self.largest, timestamp)
            raw = record.raw
            _, attributes_at = read_varint(raw, 0, len(raw), "Record", "length")
            _, rest_at = read_varlong(raw, attributes_at + 1, len(raw), "Record", "timestampDelta")
            body = raw[attributes_at : attributes_at + 1] + varint(int64(timestamp - self.base)) + raw[rest_at:]
            yield varint(len(body)) + body


def _rewrapped(batch: LegacyRecordBatch, remaining: Iterable[Record]) -> tuple[bytes, int]:
    """Return a wrapper with the messages that remain, and its offset, which is that of the last one."""
    first: int | None = None
    last, largest = 0, NO_TIMESTAMP

    def messages() -> Iterator[bytes]:
        nonlocal first, last, largest
        for record in remaining:
            last = record.offset or 0
            first = last if first is None else first
            largest = max(largest, NO_TIMESTAMP if record.timestamp is None else record.timestamp)
            offset = last - first if batch.format.has_timestamp else last  # KIP-31
            yield offset.to_bytes(8, "big", signed=True) + record.raw[8:]

    payload = compress(batch.compression, messages())
    body = bytes((batch.magic, batch.attributes & (COMPRESSION.mask | TIMESTAMP_TYPE.mask)))
    if batch.format.has_timestamp:
        timestamp = batch.maxTimestamp if batch.timestampType == "LogAppendTime" else largest
        body += (NO_TIMESTAMP if timestamp is None else timestamp).to_bytes(8, "big", signed=True)
    body += (-1).to_bytes(4, "big", signed=True) + len(payload).to_bytes(4, "big") + payload
    return message_bytes(last, body), last
