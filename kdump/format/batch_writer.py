"""Encoder of record batches of format v2, without compression, and of messages of format v0 and v1. Source:
DefaultRecordBatch, DefaultRecord, LegacyRecord."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from kdump.format.batch_header import BATCH_HEADER, CONTROL, CRC_START, LOG_OVERHEAD, TRANSACTIONAL, BatchHeader
from kdump.format.checksum import castagnoli
from kdump.format.varint import varint


def record_bytes(
    offset_delta: int, key: bytes | None, value: bytes | None, timestamp_delta: int = 0, attributes: int = 0
) -> bytes:
    """Return a record without headers, including its length."""
    numbers = varint(timestamp_delta) + varint(offset_delta)
    body = (attributes & 0xFF).to_bytes(1, "big") + numbers + _sized(key) + _sized(value) + varint(0)
    return varint(len(body)) + body


def with_checksum(header: BatchHeader, payload: bytes | bytearray) -> bytes:
    """Return a header, with the checksum of it and what follows, and encoded records."""
    crc = castagnoli(payload, castagnoli(header.packed()[CRC_START:]))
    return header._replace(crc=crc).packed() + payload


def new_batch(
    offset: int,
    epoch: int,
    timestamp: int,
    records: Sequence[tuple[bytes | None, bytes | None]],
    *,
    is_control: bool = False,
) -> bytes:
    """Return a batch of these keys and values, written by no producer. `epoch`: of the leader; `timestamp`: of all
    records, epoch ms."""
    payload = b"".join([record_bytes(number, key, value) for number, (key, value) in enumerate(records)])
    header = BatchHeader(
        baseOffset=offset,
        batchLength=BATCH_HEADER.size - LOG_OVERHEAD + len(payload),
        partitionLeaderEpoch=epoch,
        magic=2,
        crc=0,
        attributes=CONTROL.mask if is_control else 0,
        lastOffsetDelta=len(records) - 1,
        baseTimestamp=timestamp,
        maxTimestamp=timestamp,
        producerId=-1,
        producerEpoch=-1,
        baseSequence=-1,
        recordCount=len(records),
    )
    return with_checksum(header, payload)


def abort_marker(
    offset: int, epoch: int, timestamp: int, producer_id: int, producer_epoch: int, coordinator_epoch: int
) -> bytes:
    """Return the batch that ends a transaction as aborted (EndTransactionMarker). `epoch`: of the leader."""
    value = (0).to_bytes(2, "big") + coordinator_epoch.to_bytes(4, "big", signed=True)
    marker = BATCH_HEADER.read(new_batch(offset, epoch, timestamp, [(bytes(4), value)], is_control=True))
    marker = marker._replace(
        attributes=CONTROL.mask | TRANSACTIONAL.mask, producerId=producer_id, producerEpoch=producer_epoch
    )
    return with_checksum(marker, record_bytes(0, bytes(4), value))


def message_bytes(offset: int, body: bytes) -> bytes:
    """Return a message of format v0 or v1: offset, size and checksum, then `body`, which starts with the magic."""
    start = offset.to_bytes(8, "big", signed=True) + (4 + len(body)).to_bytes(4, "big")
    return start + zlib.crc32(body).to_bytes(4, "big") + body


def _sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data
