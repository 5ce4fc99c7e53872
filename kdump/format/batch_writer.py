"""Encoder of record batches of format v2, without compression. Source: DefaultRecordBatch, DefaultRecord."""

from __future__ import annotations

from collections.abc import Sequence

from kdump.format.batch_header import BATCH_HEADER, CONTROL, CRC_START, LOG_OVERHEAD, BatchHeader
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


def _sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data
