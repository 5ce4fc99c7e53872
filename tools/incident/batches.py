"""Batches with other fields or values, and the checksum that matches them."""

from __future__ import annotations

from collections.abc import Callable

from crc32c import crc32c

from kdump.format.batch_header import BATCH_HEADER
from kdump.format.varint import read_varint, read_varlong, varint


def changed(batch: bytes, **fields: int) -> bytes:
    """Return the batch with other header fields, and the checksum that matches them."""
    header = BATCH_HEADER.read(batch)._replace(**fields)
    data = BATCH_HEADER.struct.pack(*header) + batch[BATCH_HEADER.size :]
    return data[:17] + crc32c(data[21:]).to_bytes(4, "big") + data[21:]


def with_values(batch: bytes, change: Callable[[int, bytes], bytes]) -> bytes:
    """Return an uncompressed batch in which a function of the offset delta has changed the values of records."""
    out, position = b"", BATCH_HEADER.size
    while position < len(batch):
        length, start = read_varint(batch, position, len(batch), "Record", "length")
        end = start + length
        _, at = read_varlong(batch, start + 1, end, "Record", "timestampDelta")
        delta, at = read_varint(batch, at, end, "Record", "offsetDelta")
        size, at = read_varint(batch, at, end, "Record", "keySize")
        before = at + max(size, 0)
        size, at = read_varint(batch, before, end, "Record", "valueSize")
        body = batch[start:end]
        if size >= 0:
            value = change(delta, batch[at : at + size])
            body = batch[start:before] + varint(len(value)) + value + batch[at + size : end]
        out += varint(len(body)) + body
        position = end
    return changed(batch[: BATCH_HEADER.size] + out, batchLength=BATCH_HEADER.size + len(out) - 12)


def record(key: bytes, value: bytes | None) -> bytes:
    """Return the first record of a batch, without headers, with the batch's base timestamp."""
    written = varint(-1) if value is None else varint(len(value)) + value
    body = bytes(3) + varint(len(key)) + key + written + varint(0)
    return varint(len(body)) + body
