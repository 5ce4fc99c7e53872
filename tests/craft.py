"""Builds batches and messages for tests: real ones with changed fields, and new ones. Headers are written from the
layouts that kdump declares; everything else is independent of the code under test."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import lz4.frame
import snappy
import zstandard
from crc32c import crc32c

from kdump.format.batch_header import BATCH_HEADER, BatchHeader

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
HEADER = BATCH_HEADER.size
Header = tuple[bytes, bytes | None]


def write_file(path: Path, data: bytes) -> Path:
    """Write a file, and the directories above it. Returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def split(data: bytes) -> list[bytes]:
    """Return the batches and messages of a valid segment, using only their lengths; trailing zeros are left out."""
    found = []
    position = 0
    while position < len(data) and any(data[position:]):
        size = 12 + int.from_bytes(data[position + 8 : position + 12], "big")
        found.append(data[position : position + size])
        position += size
    return found


def fix_crc(batch: bytes) -> bytes:
    """Return a batch or message with a matching checksum."""
    if batch[16] > 1:
        return batch[:17] + crc32c(batch[21:]).to_bytes(4, "big") + batch[21:]
    return batch[:12] + zlib.crc32(batch[16:]).to_bytes(4, "big") + batch[16:]


def patch(batch: bytes, crc: bool = True, **fields: int) -> bytes:
    """Return a v2 batch with these header fields, and a matching checksum unless `crc` is false."""
    header = BATCH_HEADER.read(batch)._replace(**fields)
    patched = BATCH_HEADER.struct.pack(*header) + batch[HEADER:]
    return fix_crc(patched) if crc else patched


def rebase(batch: bytes, offset: int) -> bytes:
    """Return a batch or message at another offset, which no checksum covers."""
    return offset.to_bytes(8, "big", signed=True) + batch[8:]


def flip(data: bytes, bit: int) -> bytes:
    """Return `data` with one bit flipped; bit 0 is the highest of the first byte."""
    changed = bytearray(data)
    changed[bit // 8] ^= 0x80 >> bit % 8
    return bytes(changed)


def overwrite(data: bytes, position: int, new: bytes) -> bytes:
    return data[:position] + new + data[position + len(new) :]


def varint(number: int) -> bytes:
    """Return a varint in zigzag encoding, as in Protobuf."""
    number = number << 1 if number >= 0 else ~(number << 1)
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def record(
    delta: int = 0,
    key: bytes | None = None,
    value: bytes | None = b"",
    headers: Sequence[Header] = (),
    timestamp: int = 0,
    attributes: int = 0,
) -> bytes:
    """Return a record of a v2 batch, including its length. `delta` and `timestamp` are deltas."""
    body = struct.pack(">b", attributes) + varint(timestamp) + varint(delta) + sized(key) + sized(value)
    body += varint(len(headers)) + b"".join(sized(k) + sized(v) for k, v in headers)
    return varint(len(body)) + body


def xerial(*blocks: bytes) -> bytes:
    """Return Snappy blocks in snappy-java's framing."""
    framed = b"".join(struct.pack(">i", len(block)) + block for block in map(snappy.compress, blocks))
    return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + framed


def compress(codec: str, data: bytes) -> bytes:
    if codec == "gzip":
        return gzip.compress(data, 1)
    if codec == "snappy":
        return xerial(*(data[i : i + 32768] for i in range(0, len(data), 32768)))
    if codec == "lz4":
        framed: bytes = lz4.frame.compress(data, block_linked=False, block_size=4, store_size=False)
        return framed
    if codec == "zstd":
        return zstandard.compress(data, 1)
    return data


def batch(
    records: Iterable[bytes] | bytes,
    codec: str = "none",
    *,
    offset: int = 0,
    count: int | None = None,
    payload: bytes | None = None,
    **fields: int,
) -> bytes:
    """Return a v2 batch of these records (see `record`), or of a compressed `payload`. Other header fields are given by
    name."""
    parts = [records] if isinstance(records, bytes) else list(records)
    count = len(parts) if count is None else count
    payload = compress(codec, b"".join(parts)) if payload is None else payload
    header = BatchHeader(
        baseOffset=offset,
        batchLength=HEADER - 12 + len(payload),
        partitionLeaderEpoch=0,
        magic=2,
        crc=0,
        attributes=CODECS.index(codec),
        lastOffsetDelta=max(0, count - 1),
        baseTimestamp=1_700_000_000_000,
        maxTimestamp=1_700_000_000_000,
        producerId=-1,
        producerEpoch=-1,
        baseSequence=-1,
        recordCount=count,
    )._replace(**fields)
    return fix_crc(BATCH_HEADER.struct.pack(*header) + payload)


def one(value: bytes | None, offset: int = 0, codec: str = "none", **fields: Any) -> bytes:
    """Return a v2 batch with one record."""
    return batch([record(value=value)], codec, offset=offset, **fields)


def message(
    magic: int,
    value: bytes | None,
    *,
    offset: int = 0,
    key: bytes | None = None,
    attributes: int = 0,
    timestamp: int = 1_500_000_000_000,
) -> bytes:
    """Return a message of format v0 or v1."""

    def long(data: bytes | None) -> bytes:
        return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data

    body = struct.pack(">bb", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    body += long(key) + long(value)
    return struct.pack(">qiI", offset, 4 + len(body), zlib.crc32(body)) + body


def wrapper(
    magic: int, inner: Iterable[bytes] | bytes, codec: str = "gzip", *, offset: int = 0, **options: Any
) -> bytes:
    """Return a compressed message that contains the `inner` messages; `offset` should be that of the last one."""
    payload = inner if isinstance(inner, bytes) else b"".join(inner)
    attributes = CODECS.index(codec) | options.pop("attributes", 0)
    return message(magic, compress(codec, payload), offset=offset, attributes=attributes, **options)


def with_metadata_record(data: bytes, value: bytes) -> bytes:
    """Append a record to a metadata log, in the epoch of the last one."""
    last = split(data)[-1]
    offset = int.from_bytes(last[:8], "big") + int.from_bytes(last[23:27], "big") + 1
    return data + one(value, offset, partitionLeaderEpoch=int.from_bytes(last[12:16], "big"))
