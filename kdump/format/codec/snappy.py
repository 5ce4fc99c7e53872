"""Snappy: blocks in snappy-java's framing, as Java clients write them, or a single raw block, as other clients do.

Source: https://github.com/google/snappy/blob/main/format_description.txt and org.xerial.snappy.SnappyInputStream. The
framing is a magic of 8 bytes, version and compatible version (INT32), then chunks: size (INT32) and a raw block. It has
no end mark: a payload truncated between two chunks is valid, and 1 to 3 bytes after the last chunk are ignored."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

from kdump.format.codec.source import CompressedInput, PieceOptions, failed, library, over_limit
from kdump.format.errors import DecodeError
from kdump.format.varint import Bytes, read_unsigned

STRUCT, BLOCK = "SnappyStream", "SnappyBlock"
MAGIC = b"\x82SNAPPY\0"
HEADER_SIZE = 16
MIN_VERSION = 1
MAX_CHUNK_SIZE = 512 << 20
"""Maximum chunk size of SnappyInputStream."""
SMALL = 8 << 20
"""Maximum size in bytes of a block, and of its output, for decompressing it in one call."""
LONGEST_LENGTH = 5
"""Maximum number of bytes of the length at the start of a block."""
COPY_OUT, COPY_IN = 64, 3
"""Maximum expansion of an element: a copy with a two-byte offset takes 3 bytes and produces up to 64."""


def pieces(source: CompressedInput, options: PieceOptions) -> Iterator[bytes]:
    """Yield the contents of the blocks in pieces of at most `options.chunk_size` bytes. Raises DecodeError.

    The library needs the whole output of a block in memory. A block is therefore rejected before it is decompressed if
    the size that it states exceeds the rest of the limit, or what its bytes could expand to. A large one goes through
    snappy_stream."""
    cramjam = library("cramjam", "python-snappy", STRUCT)
    limit = left = options.limit
    for block in _blocks(source, limit):
        length = stated_length(block.head, block.size, block.position, left, limit)
        left -= length
        unpacked: Iterator[Bytes]
        if max(block.size, length) > SMALL:
            unpacked = _streamed(block, length, cramjam)
        else:
            unpacked = iter([_at_once(block, length, cramjam)])
        for piece in unpacked:
            for start in range(0, len(piece), options.chunk_size):
                yield bytes(piece[start : start + options.chunk_size])


class _Block(NamedTuple):
    """A raw block of `size` bytes, at `position` of the payload: its first bytes, `head`, and those that follow."""

    position: int
    size: int
    head: Bytes
    rest: Iterator[bytes]


def _at_once(block: _Block, length: int, cramjam: Any) -> memoryview:
    data = bytearray(block.head)
    for part in block.rest:
        data += part
    output = bytearray(length)
    try:
        written = cramjam.snappy.decompress_raw_into(data, output)
    except cramjam.DecompressionError as error:
        # It also rejects a short literal at the end whose length takes three bytes.
        with suppress(DecodeError):
            return memoryview(b"".join(_streamed(block._replace(head=data, rest=iter(())), length, cramjam)))
        raise failed(BLOCK, "data", block.position, str(error)) from None
    if written != length:
        raise failed(BLOCK, "length", block.position, f"length {length}, but decompressed to {written} bytes")
    return memoryview(output)


def _streamed(block: _Block, length: int, cramjam: Any) -> Iterator[bytes]:
    from kdump.format.codec import snappy_stream

    start = next(at + 1 for at, byte in enumerate(block.head) if byte < 0x80)
    parts = chain((bytes(block.head[start:]),), block.rest)
    return snappy_stream.pieces(parts, block.position + start, length, cramjam)


def _blocks(source: CompressedInput, limit: int) -> Iterator[_Block]:
    """Yield each raw block; the caller must read it before requesting the next. Raises DecodeError."""
    head = source.take(HEADER_SIZE)
    if not head:
        raise failed(STRUCT, "magic", 0, "the payload is empty")
    if len(head) < HEADER_SIZE or not head.startswith(MAGIC):
        # The whole payload is one block.
        size = max(source.size, len(head))
        yield _Block(0, size, head, _rest(source, sys.maxsize))
        return
    # Java does not check the versions of the first header.
    while True:
        start = source.position
        head = source.take(4)
        if len(head) < 4:
            source.ignored += len(head)
            return
        if head == MAGIC[:4]:
            # Another stream, appended.
            head += source.take(HEADER_SIZE - 4)
            if len(head) < HEADER_SIZE:
                raise failed(
                    STRUCT, "magic", start, f"the payload ends inside a header, after {len(head)} of its bytes"
                )
            if not head.startswith(MAGIC):
                # Java fails here or skips these 16 bytes, depending on how full its caller's buffer is.
                raise failed(STRUCT, "magic", start, f"incomplete magic: {head[:8].hex()}, not {MAGIC.hex()}")
            version = int.from_bytes(head[8:12], "big", signed=True)
            if version < MIN_VERSION:
                raise failed(STRUCT, "version", start + 8, f"version {version} is below {MIN_VERSION}")
            continue
        size = int.from_bytes(head, "big", signed=True)
        if not 0 < size <= MAX_CHUNK_SIZE:
            raise failed(STRUCT, "chunkSize", start, f"chunkSize {size} is not within 1..{MAX_CHUNK_SIZE}")
        if size > SMALL and size <= source.size - source.position:
            yield _Block(start + 4, size, source.take(LONGEST_LENGTH), _rest(source, size - LONGEST_LENGTH))
            continue
        chunk = source.take(size)
        if len(chunk) < size:
            raise failed(STRUCT, "chunkSize", start, f"chunkSize {size}, {len(chunk)} bytes left")
        yield _Block(start + 4, size, chunk, iter(()))


def _rest(source: CompressedInput, count: int) -> Iterator[bytes]:
    """Yield the next `count` bytes of the source, or as many as there are."""
    while count > 0 and (part := source.peek(min(count, 1 << 20))):
        count -= source.skip(len(part))
        yield part


def stated_length(block: Bytes, size: int, position: int, left: int, limit: int) -> int:
    """Return the uncompressed length stated at the start of a block of `size` bytes. Raises DecodeError if it is
    impossible, or above `left`."""
    try:
        # 35 bits: a value that does not fit into 32 is then too large, instead of truncated to one that might fit.
        length, start = read_unsigned(block, 0, len(block), 35, BLOCK, "length")
    except DecodeError as error:
        raise failed(BLOCK, "length", position, error.reason) from None
    if length * COPY_IN > (size - start) * COPY_OUT:
        reason = f"length {length}, but {size - start} compressed bytes cannot expand to that"
        raise failed(BLOCK, "length", position, reason)
    if length > left:
        raise over_limit(BLOCK, position, limit)
    return length
