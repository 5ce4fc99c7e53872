"""LZ4 frames, block by block, by the rules of Kafka's own reader: other readers accept some frames that it rejects,
and reject some that it accepts.

Source: https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md and
org.apache.kafka.common.compress.Lz4BlockInputStream. Blocks must be independent; the reserved bits and the dictionary
ID flag must be unset. The first end mark ends the payload, whatever follows. A content checksum is read but not
verified."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kdump.format.codec.source import CompressedInput, PieceOptions, failed, library
from kdump.format.errors import LZ4_FRAME_UNSUPPORTED, DecodeError

STRUCT = "Lz4Frame"
MAGIC = 0x184D2204
LEGACY_MAGIC = 0x184C2102
SKIPPABLE_MAGIC = 0x184D2A50
"""Magic of a skippable frame; its last four bits may have any value."""
DICTIONARY_ID, RESERVED, CONTENT_CHECKSUM, CONTENT_SIZE, BLOCK_CHECKSUM, INDEPENDENT = (1 << bit for bit in range(6))
VERSION = 1
STORED = 1 << 31
"""Bit of the block size field that marks an uncompressed block."""


def pieces(source: CompressedInput, options: PieceOptions) -> Iterator[bytes]:
    """Yield the contents of the blocks, at most 4 MiB each. Raises DecodeError."""
    block_api = library("lz4.block", "lz4", STRUCT)
    flags, descriptor = _read_header(source, options.ignore_header_checksum)
    largest = largest_block(descriptor)
    while True:
        start = source.position
        word = int.from_bytes(_read(source, 4, "blockSize"), "little")
        size = word & ~STORED
        if size == 0:
            if flags & CONTENT_CHECKSUM:
                _read(source, 4, "contentChecksum")
            return
        if size > largest:
            raise failed(STRUCT, "blockSize", start, f"block size {size} exceeds the frame's {largest}")
        block = _read(source, size, "block")
        if flags & BLOCK_CHECKSUM:
            stored = _read(source, 4, "blockChecksum")
            if not _block_checksum_holds(block, stored, descriptor):
                position = source.position - 4
                raise failed(STRUCT, "blockChecksum", position, f"block checksum 0x{stored[::-1].hex()} does not match")
        if word & STORED:
            yield bytes(block)
            continue
        try:
            piece: bytes = block_api.decompress(block, uncompressed_size=largest)
        except block_api.LZ4BlockError:
            # The library's message is about its output buffer, which is as large as a block may be.
            reason = f"the block of {size} bytes is damaged, or decompresses to more than {largest}"
            raise failed(STRUCT, "block", start + 4, reason) from None
        yield piece


def _read(source: CompressedInput, count: int, field: str) -> bytes | bytearray:
    start = source.position
    data = source.take(count)
    if len(data) < count:
        reason = f"the payload ends before the end mark: {count} bytes needed, {len(data)} left"
        raise failed(STRUCT, field, start, reason)
    return data


def _unsupported(field: str, position: int, reason: str) -> DecodeError:
    return DecodeError(STRUCT, field, position, f"{reason}; the Java client rejects it", LZ4_FRAME_UNSUPPORTED)


def _read_header(source: CompressedInput, ignore_header_checksum: bool) -> tuple[int, bytes]:
    """Read the frame header; return the flags, and the descriptor bytes FLG and BD. Raises DecodeError."""
    head = _read(source, 6, "magic")
    magic = int.from_bytes(head[:4], "little")
    if magic == LEGACY_MAGIC or magic & ~0xF == SKIPPABLE_MAGIC:
        raise _unsupported("magic", 0, f"a legacy or skippable frame, magic 0x{magic:08x}")
    if magic != MAGIC:
        raise failed(STRUCT, "magic", 0, f"not an LZ4 frame: magic 0x{magic:08x}, not 0x{MAGIC:08x}")
    flags, bd = head[4:]
    if flags & DICTIONARY_ID:
        raise _unsupported("FLG", 4, "a dictionary ID")
    if flags & RESERVED:
        raise _unsupported("FLG", 4, "a reserved bit is set")
    if not flags & INDEPENDENT:
        raise _unsupported("FLG", 4, "linked blocks: each depends on those before it")
    if flags >> 6 != VERSION:
        raise _unsupported("FLG", 4, f"version {flags >> 6} is unknown")
    if bd & 0x8F:
        raise _unsupported("BD", 5, "a reserved bit is set")
    if bd >> 4 < 4:
        raise failed(STRUCT, "BD", 5, f"block size {bd >> 4} is not within 4..7")
    described = bytes(head[4:])
    if flags & CONTENT_SIZE:
        described += _read(source, 8, "contentSize")
    position = source.position
    (stored,) = _read(source, 1, "headerChecksum")
    expected = header_checksum(described)
    if stored != expected and not ignore_header_checksum:
        reason = f"header checksum 0x{stored:02x}, computed 0x{expected:02x}"
        if stored == header_checksum(bytes(head[:4]) + described):
            reason += "; it also covers the magic, as old clients wrote it, which is legal only in magic 0"
        raise failed(STRUCT, "headerChecksum", position, reason)
    return flags, bytes(head[4:])


def largest_block(descriptor: bytes) -> int:
    """Return the maximum bytes of a block, compressed or not: 64 KiB, 256 KiB, 1 MiB or 4 MiB."""
    return 1 << (8 + 2 * (descriptor[1] >> 4))


def header_checksum(descriptor: bytes) -> int:
    """Return the header checksum: the second byte of the descriptor's xxHash32."""
    return xxh32_short(descriptor) >> 8 & 0xFF


def xxh32_short(data: bytes) -> int:
    """Return the xxHash32, seed 0, of fewer than 16 bytes, which needs none of the rounds for longer input.

    Source: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md"""
    assert len(data) < 16
    prime1, prime2, prime3, prime4, prime5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
    whole = len(data) & ~3
    total = prime5 + len(data)
    for start in range(0, whole, 4):
        total = total + int.from_bytes(data[start : start + 4], "little") * prime3 & 0xFFFFFFFF
        total = (total << 17 | total >> 15) * prime4 & 0xFFFFFFFF
    for byte in data[whole:]:
        total = total + byte * prime5 & 0xFFFFFFFF
        total = (total << 11 | total >> 21) * prime1 & 0xFFFFFFFF
    total = (total ^ total >> 15) * prime2 & 0xFFFFFFFF
    total = (total ^ total >> 13) * prime3 & 0xFFFFFFFF
    return total ^ total >> 16


def _block_checksum_holds(block: bytes | bytearray, stored: bytes | bytearray, descriptor: bytes) -> bool:
    """Return True if `stored` is the xxHash32 of `block`.

    Python is too slow to compute it, and no library that kdump uses exports it. But liblz4 verifies it in a frame, so
    this decompresses a frame that contains these bytes as a stored block."""
    frame_api: Any = library("lz4.frame", "lz4", STRUCT)
    described = bytes((VERSION << 6 | INDEPENDENT | BLOCK_CHECKSUM, descriptor[1]))
    frame = bytearray(MAGIC.to_bytes(4, "little") + described)
    frame.append(header_checksum(described))
    frame += (len(block) | STORED).to_bytes(4, "little")
    frame += block
    frame += stored
    frame += bytes(4)
    try:
        frame_api.decompress(frame)
    except RuntimeError:
        return False
    return True
