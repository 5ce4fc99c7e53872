"""Zstandard: any number of frames, block by block, as zstd-jni's stream reads them.

Source: RFC 8878 and com.github.luben.zstd.ZstdInputStream. This module parses the structure of a frame itself, so that
each call of the library produces at most one block and the position of a truncation or an error is known; the library
checks everything else. (zstd-jni does not detect truncation of a second frame in the same buffer as the first; here it
is an error.)"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kdump.format.codec.source import CompressedInput, PieceOptions, failed, library

STRUCT = "ZstdFrame"
MAGIC = 0xFD2FB528
SKIPPABLE_MAGIC = 0x184D2A50
"""Magic of a skippable frame; its last four bits may have any value."""
MAX_WINDOW = (1 << 27) + 1
"""Maximum window size of a frame in bytes: libzstd's default, which zstd-jni keeps."""
MAX_BLOCK = 128 << 10
"""Maximum bytes of a block, compressed or not."""
RLE, COMPRESSED, RESERVED = 1, 2, 3
SINGLE_SEGMENT, CHECKSUM = 0x20, 0x04
KEEP = 16 << 20
"""Maximum memory, in bytes, of a decompressor that is kept for the next stream."""

_idle: list[Any] = []
"""Decompressors not in use: creating one takes longer than decompressing a small batch. Streams cannot share one."""


def pieces(source: CompressedInput, options: PieceOptions) -> Iterator[bytes]:
    """Yield the contents of the blocks, at most 128 KiB each. Raises DecodeError."""
    error = library("zstandard", "zstandard", STRUCT).ZstdError
    decompressor = take()
    try:
        yield from _frames(source, decompressor, error)
    finally:
        give_back(decompressor)


def take() -> Any:
    """Return a decompressor for one stream. Raises DecodeError if the library is missing."""
    try:
        return _idle.pop()
    except IndexError:
        return library("zstandard", "zstandard", STRUCT).ZstdDecompressor(max_window_size=MAX_WINDOW)


def give_back(decompressor: Any) -> None:
    """Make a decompressor available to other streams."""
    # One that has grown for a large window would waste memory.
    if decompressor.memory_size() <= KEEP:
        _idle.append(decompressor)


def _read(source: CompressedInput, count: int, field: str) -> bytes | bytearray:
    start = source.position
    data = source.take(count)
    if len(data) < count:
        raise failed(STRUCT, field, start, f"the payload ends inside a frame: {count} bytes needed, {len(data)} left")
    return data


def _frames(source: CompressedInput, decompressor: Any, error: type[Exception]) -> Iterator[bytes]:
    while True:
        start = source.position
        magic = _read(source, 4, "magic")
        number = int.from_bytes(magic, "little")
        if number == MAGIC:
            yield from _frame(source, bytes(magic), decompressor, error)
        elif number & ~0xF == SKIPPABLE_MAGIC:
            size = int.from_bytes(_read(source, 4, "frameSize"), "little")
            left = source.skip(size)
            source.ignored += left
            if left < size:
                raise failed(STRUCT, "frameSize", start + 4, f"a skippable frame of {size} bytes, {left} left")
        else:
            raise failed(STRUCT, "magic", start, f"not a Zstandard frame: magic 0x{number:08x}, not 0x{MAGIC:08x}")
        if not source.peek(1):
            return


def _frame(source: CompressedInput, magic: bytes, decompressor: Any, error: type[Exception]) -> Iterator[bytes]:
    """Yield the contents of a frame whose `magic` has been read; the library needs it, too. Raises DecodeError."""
    stream = decompressor.decompressobj()

    def feed(data: bytes | bytearray, field: str, position: int) -> bytes:
        try:
            piece: bytes = stream.decompress(data)
        except error as problem:
            # For a block, the library's message depends on the state of its buffers.
            reason = str(problem).partition("error: ")[2] if field != "block" else "the block is damaged"
            raise failed(STRUCT, field, position, reason or str(problem)) from None
        return piece

    start = source.position
    (descriptor,) = _read(source, 1, "frameHeader")
    header = magic + bytes((descriptor,)) + _read(source, header_size(descriptor), "frameHeader")
    feed(header, "frameHeader", start)
    content_size = stated_size(descriptor, header)
    made = last = 0
    while not last:
        start = source.position
        head = _read(source, 3, "blockHeader")
        number = int.from_bytes(head, "little")
        last, kind, size = number & 1, number >> 1 & 3, number >> 3
        # When streaming, libzstd ignores an empty compressed block, but rejects it if the content size is known.
        empty = kind == COMPRESSED and size == 0 and content_size is not None
        if kind == RESERVED or size > MAX_BLOCK or empty:
            raise failed(STRUCT, "blockHeader", start, f"a block cannot be of type {kind} with {size} bytes")
        block = head + _read(source, 1 if kind == RLE else size, "block")
        piece = feed(block, "block", start)
        made += len(piece)
        # The library compares these only in some modes, depending on the state of its buffers.
        if content_size is not None and (made > content_size or (last and made < content_size)):
            reason = f"content size {content_size}, but decompressed to {made} bytes{'' if last else ' so far'}"
            raise failed(STRUCT, "contentSize", start, reason)
        yield piece
    if descriptor & CHECKSUM:
        start = source.position
        feed(_read(source, 4, "contentChecksum"), "contentChecksum", start)
    if not stream.eof:
        raise failed(STRUCT, "block", source.position, "the frame is incomplete")


def header_size(descriptor: int) -> int:
    """Return the bytes of the header after the descriptor: window, dictionary ID, content size."""
    return (not descriptor & SINGLE_SEGMENT) + (0, 1, 2, 4)[descriptor & 3] + _content_size_size(descriptor)


def _content_size_size(descriptor: int) -> int:
    return (1 if descriptor & SINGLE_SEGMENT else 0, 2, 4, 8)[descriptor >> 6]


def stated_size(descriptor: int, header: bytes | bytearray) -> int | None:
    """Return the content size in bytes that a frame's complete header states, None if it states none."""
    size = _content_size_size(descriptor)
    # A size in two bytes is stored less 256, because smaller sizes fit into one byte.
    return int.from_bytes(header[-size:], "little") + (256 if size == 2 else 0) if size else None
