"""Decompresses a small payload in one call, if nothing about it is unusual; otherwise the streaming codecs decide.

The output is the same as theirs. Anything that they might reject, or read differently, is left to them: each codec's
framing is checked here first, and an error of a library only means that the stream has to try."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from kdump.format.codec import lz4, snappy, zstd
from kdump.format.codec.source import library
from kdump.format.errors import DecodeError

GZIP_HEADER, GZIP_TRAILER = 10, 8
LZ4_FLAGS = (0x60, 0x64)
"""Version 1, independent blocks, without and with a content checksum."""
SMALL, SMALL_UNPACKED = 1 << 20, 4 << 20
"""Maximum size in bytes of a payload that is decompressed in one call, and of its output."""
ZSTD_BLOCKS = 32
"""Maximum number of blocks; payloads with more are left to the stream, whose memory does not grow with them."""


def decompress_small(codec: str, payload: memoryview, limit: int) -> bytes | None:
    """Return the decompressed payload, if it is small, usual, not empty and at most `limit` bytes; else None."""
    unpack = _CODECS.get(codec)
    if unpack is None or not 0 < len(payload) <= SMALL:
        return None
    max_size = min(limit, SMALL_UNPACKED)
    try:
        errors = _errors(codec)
    except DecodeError:  # the library is missing: the stream reports it
        return None
    try:
        unpacked = unpack(payload, max_size)
    except errors:
        return None
    return unpacked if unpacked and len(unpacked) <= max_size else None


def _errors(codec: str) -> tuple[type[Exception], ...]:
    """Return the exceptions of the codec's library, and those that truncated input causes in this module."""
    library_error: type[Exception] = ValueError
    if codec == "zstd":
        library_error = library("zstandard", "zstandard", zstd.STRUCT).ZstdError
    elif codec == "lz4":
        library_error = library("lz4.block", "lz4", lz4.STRUCT).LZ4BlockError
    elif codec == "snappy":
        library_error = library("cramjam", "python-snappy", snappy.STRUCT).DecompressionError
    elif codec == "gzip":
        library_error = _inflate().error
    return (library_error, DecodeError, LookupError, ValueError, RuntimeError, MemoryError)


@lru_cache
def _inflate() -> Any:
    """isal, which is twice as fast, or zlib."""
    try:
        from isal import isal_zlib
    except ImportError:
        import zlib

        return zlib
    return isal_zlib


def _gzip(payload: memoryview, max_size: int) -> bytes | None:
    end = len(payload) - GZIP_TRAILER
    size = int.from_bytes(payload[end + 4 :], "little")
    if end <= GZIP_HEADER or bytes(payload[:4]) != b"\x1f\x8b\x08\0" or size > max_size:
        return None
    zlib = _inflate()
    inflater = zlib.decompressobj(-15)
    unpacked: bytes = inflater.decompress(payload[GZIP_HEADER:end], size + 1)
    if not inflater.eof or inflater.unused_data or len(unpacked) != size:
        return None
    return unpacked if zlib.crc32(unpacked) == int.from_bytes(payload[end : end + 4], "little") else None


def _snappy(payload: memoryview, max_size: int) -> bytes | None:
    unpack = library("cramjam", "python-snappy", snappy.STRUCT).snappy.decompress_raw
    if bytes(payload[:8]) != snappy.MAGIC:
        stated = snappy.stated_length(payload, len(payload), 0, max_size, max_size)
        raw = bytes(unpack(payload))  # the library returns its own type
        return raw if len(raw) == stated else None
    blocks: list[bytes] = []
    position, end, left = snappy.HEADER_SIZE, len(payload), max_size
    while position + 4 < end:
        start = position + 4
        position = start + int.from_bytes(payload[position:start], "big", signed=True)
        if position <= start or position > end:
            return None
        block = payload[start:position]
        size = snappy.stated_length(block, len(block), start, left, max_size)
        piece = unpack(block)
        if len(piece) != size:
            return None
        left -= size
        blocks.append(piece)
    return b"".join(blocks) if position == end else None


def _lz4(payload: memoryview, max_size: int) -> bytes | None:
    flags, descriptor = payload[4], bytes(payload[4:6])
    if bytes(payload[:4]) != b"\x04\x22\x4d\x18" or flags not in LZ4_FLAGS or descriptor[1] & 0xCF != 0x40:
        return None
    if payload[6] != _lz4_checksum(descriptor):
        return None
    unpack: Callable[..., bytes] = library("lz4.block", "lz4", lz4.STRUCT).decompress
    largest = lz4.largest_block(descriptor)
    blocks: list[bytes] = []
    position, end, left = 7, len(payload), max_size
    while position + 4 <= end:
        word = int.from_bytes(payload[position : position + 4], "little")
        size = word & ~lz4.STORED
        if size == 0:
            block_end = position + (8 if flags & lz4.CONTENT_CHECKSUM else 4)
            return b"".join(blocks) if block_end == end else None
        start = position + 4
        position = start + size
        if size > largest or position > end or left < 0:
            return None
        block = payload[start:position]
        piece = bytes(block) if word & lz4.STORED else unpack(block, uncompressed_size=largest)
        left -= len(piece)
        blocks.append(piece)
    return None


@lru_cache(64)
def _lz4_checksum(descriptor: bytes) -> int:
    return lz4.header_checksum(descriptor)


def _zstd(payload: memoryview, max_size: int) -> bytes | None:
    descriptor = payload[4]
    if bytes(payload[:4]) != b"\x28\xb5\x2f\xfd" or descriptor & 0x0B:  # unused and reserved bits, a dictionary
        return None
    position = 5 + zstd.header_size(descriptor)
    if not descriptor & zstd.SINGLE_SEGMENT and payload[5] >> 3 > 16:  # a window of 128 MiB or more
        return None
    content_size = zstd.stated_size(descriptor, bytes(payload[:position]))
    end = len(payload) - (4 if descriptor & zstd.CHECKSUM else 0)
    last = blocks = 0
    while not last:
        number = int.from_bytes(payload[position : position + 3], "little")
        last, kind, size = number & 1, number >> 1 & 3, number >> 3
        position += 3 + (1 if kind == zstd.RLE else size)
        blocks += 1
        is_invalid = kind == zstd.RESERVED or size > zstd.MAX_BLOCK or (kind == zstd.COMPRESSED and size == 0)
        if is_invalid or position > end or blocks > ZSTD_BLOCKS:
            return None
    max_content = blocks * zstd.MAX_BLOCK if content_size is None else content_size
    if position != end or max_content > max(max_size, zstd.MAX_BLOCK * ZSTD_BLOCKS) or not max_content:
        return None
    decompressor = zstd.take()
    try:
        return decompressor.decompress(payload, max_output_size=max_content)  # type: ignore[no-any-return]
    finally:
        zstd.give_back(decompressor)


_CODECS: dict[str, Callable[[memoryview, int], bytes | None]] = {
    "gzip": _gzip,
    "snappy": _snappy,
    "lz4": _lz4,
    "zstd": _zstd,
}
