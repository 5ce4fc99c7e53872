"""Snappy: blocks in snappy-java's framing, as Java's clients write them, or one raw block, as others do.

Source: https://github.com/google/snappy/blob/main/format_description.txt and org.xerial.snappy.SnappyInputStream.
The framing is a magic of 8 bytes, version and compatible version (INT32), then chunks: size (INT32) and a raw block.
It has no end mark: a payload cut between two chunks is a payload, and 1 to 3 bytes behind the last are ignored.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

from kdump.format.codec.source import Source, failed, library, over_limit
from kdump.format.errors import DecodeError
from kdump.format.varint import Bytes, read_unsigned

STREAM, BLOCK = "SnappyStream", "SnappyBlock"
MAGIC = b"\x82SNAPPY\0"
HEADER_SIZE = 16
MIN_VERSION = 1
MAX_CHUNK_SIZE = 512 << 20
"""What SnappyInputStream allows."""
SMALL = 8 << 20
"""Bytes of a block, and of its output, up to which it is decompressed whole."""
LONGEST_LENGTH = 5
"""Bytes that the length in front of a block takes at most."""
COPY_OUT, COPY_IN = 64, 3
"""The most that an element can expand: a copy with a two-byte offset takes 3 bytes and makes up to 64 of them."""


def pieces(source: Source, limit: int, chunk_size: int) -> Iterator[bytes]:
    """The blocks' contents, in pieces of at most `chunk_size` bytes. Raises DecodeError.

    The library needs a block's output whole; so a block is refused before it is decompressed if the size that it claims
    exceeds what is left of `limit`, or what its bytes could expand to. A large one goes through snappy_stream.
    """
    cramjam = library("cramjam", "python-snappy", STREAM)
    left = limit
    for block in _blocks(source, limit):
        length = stated_length(block.head, block.size, block.position, left, limit)
        left -= length
        found: Iterator[Bytes]
        if max(block.size, length) > SMALL:
            found = _streamed(block, length, cramjam)
        else:
            found = iter([_at_once(block, length, cramjam)])
        for piece in found:
            for start in range(0, len(piece), chunk_size):
                yield bytes(piece[start : start + chunk_size])


class _Block(NamedTuple):
    """A raw block of `size` bytes, at `position` of the payload: `head`, the first of them, and those that follow."""

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
        # It also refuses a short literal at the end whose length takes three bytes.
        with suppress(DecodeError):
            return memoryview(b"".join(_streamed(block._replace(head=data, rest=iter(())), length, cramjam)))
        raise failed(BLOCK, "data", block.position, str(error)) from None
    if written != length:
        raise failed(BLOCK, "length", block.position, f"length {length}, but {written} bytes came out")
    return memoryview(output)


def _streamed(block: _Block, length: int, cramjam: Any) -> Iterator[bytes]:
    from kdump.format.codec import snappy_stream

    start = next(at + 1 for at, byte in enumerate(block.head) if byte < 0x80)
    parts = chain((bytes(block.head[start:]),), block.rest)
    return snappy_stream.pieces(parts, block.position + start, length, cramjam)


def _blocks(source: Source, limit: int) -> Iterator[_Block]:
    """Each raw block, to be read before the next is asked for. Raises DecodeError."""
    head = source.take(HEADER_SIZE)
    if not head:
        raise failed(STREAM, "magic", 0, "the payload is empty")
    if len(head) < HEADER_SIZE or not head.startswith(MAGIC):
        # Everything is one block.
        size = max(source.size, len(head))
        yield _Block(0, size, head, _rest(source, sys.maxsize))
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
        if size > SMALL and size <= source.size - source.position:
            yield _Block(start + 4, size, source.take(LONGEST_LENGTH), _rest(source, size - LONGEST_LENGTH))
            continue
        chunk = source.take(size)
        if len(chunk) < size:
            raise failed(STREAM, "chunkSize", start, f"chunkSize {size}, {len(chunk)} bytes left")
        yield _Block(start + 4, size, chunk, iter(()))


def _rest(source: Source, count: int) -> Iterator[bytes]:
    """The next `count` bytes of the source, or what there is of them."""
    while count > 0 and (part := source.peek(min(count, 1 << 20))):
        count -= source.skip(len(part))
        yield part


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
