"""Snappy: blocks in snappy-java's framing, as Java's clients write them, or one raw block, as others do.

Source: https://github.com/google/snappy/blob/main/format_description.txt and org.xerial.snappy.SnappyInputStream.
The framing is a magic of 8 bytes, version and compatible version (INT32), then chunks: size (INT32) and a raw block.
It has no end mark: a payload cut between two chunks is a payload, and 1 to 3 bytes behind the last are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator

from kdump.format.codec.source import Source, failed, library, over_limit
from kdump.format.errors import DecodeError
from kdump.format.varint import Bytes, read_unsigned

STREAM, BLOCK = "SnappyStream", "SnappyBlock"
MAGIC = b"\x82SNAPPY\0"
HEADER_SIZE = 16
MIN_VERSION = 1
MAX_CHUNK_SIZE = 512 << 20
"""What SnappyInputStream allows."""
COPY_OUT, COPY_IN = 64, 3
"""The most that an element can expand: a copy with a two-byte offset takes 3 bytes and makes up to 64 of them."""


def pieces(source: Source, limit: int, chunk_size: int) -> Iterator[bytes]:
    """The blocks' contents, in pieces of at most `chunk_size` bytes. Raises DecodeError.

    Snappy needs a block's output whole; so a block is refused before it is decompressed if the size that it claims
    exceeds what is left of `limit`, or what its bytes could expand to.
    """
    cramjam = library("cramjam", "python-snappy", STREAM)
    left = limit
    for position, block in _blocks(source, limit):
        length = stated_length(block, len(block), position, left, limit)
        output = bytearray(length)
        try:
            written = cramjam.snappy.decompress_raw_into(block, output)
        except cramjam.DecompressionError as error:
            raise failed(BLOCK, "data", position, str(error)) from None
        if written != length:
            raise failed(BLOCK, "length", position, f"length {length}, but {written} bytes came out")
        del block
        left -= length
        with memoryview(output) as view:
            for start in range(0, length, chunk_size):
                yield bytes(view[start : start + chunk_size])


def _blocks(source: Source, limit: int) -> Iterator[tuple[int, Bytes]]:
    """Each raw block with its position. Raises DecodeError."""
    head = source.take(HEADER_SIZE)
    if not head:
        raise failed(STREAM, "magic", 0, "the payload is empty")
    if len(head) < HEADER_SIZE or not head.startswith(MAGIC):
        # Everything is one block. Do not gather it for a length that is a lie.
        stated_length(head, max(source.size, len(head)), 0, limit, limit)
        block = bytearray(head)
        while more := source.take(1 << 20):
            block += more
        yield 0, block
        return
    # Java does not look at the versions of the first header.
    while True:
        start = source.position
        head = source.take(4)
        if len(head) < 4:
            return
        if head == MAGIC[:4]:
            # Another stream, appended.
            head += source.take(HEADER_SIZE - 4)
            if len(head) < HEADER_SIZE:
                raise failed(STREAM, "magic", start, f"the payload ends inside a header, {len(head)} bytes of it left")
            if not head.startswith(MAGIC):
                # Java stops here or skips these 16 bytes, as its caller's buffer happens to be full.
                raise failed(STREAM, "magic", start, f"half a magic: {head[:8].hex()}, not {MAGIC.hex()}")
            version = int.from_bytes(head[8:12], "big", signed=True)
            if version < MIN_VERSION:
                raise failed(STREAM, "version", start + 8, f"version {version} is below {MIN_VERSION}")
            continue
        size = int.from_bytes(head, "big", signed=True)
        if not 0 < size <= MAX_CHUNK_SIZE:
            raise failed(STREAM, "chunkSize", start, f"chunkSize {size} is not within 1..{MAX_CHUNK_SIZE}")
        chunk = source.take(size)
        if len(chunk) < size:
            raise failed(STREAM, "chunkSize", start, f"chunkSize {size}, {len(chunk)} bytes left")
        yield start + 4, chunk


def stated_length(block: Bytes, size: int, position: int, left: int, limit: int) -> int:
    """The uncompressed length that a block of `size` bytes states in front. Raises DecodeError if it cannot be true."""
    try:
        # 35 bits: what does not fit into 32 is then too large, and not cut to something that might fit.
        length, start = read_unsigned(block, 0, len(block), 35, BLOCK, "length")
    except DecodeError as error:
        raise failed(BLOCK, "length", position, error.reason) from None
    if length * COPY_IN > (size - start) * COPY_OUT:
        reason = f"length {length}, which {size - start} bytes of Snappy cannot expand to"
        raise failed(BLOCK, "length", position, reason)
    if length > left:
        raise over_limit(BLOCK, position, limit)
    return length
