"""gzip: one or more members, as the JDK's GZIPInputStream reads them.

Source: RFC 1951, RFC 1952 and java.util.zip.GZIPInputStream. Bytes after a member are ignored unless they are the
complete header of another. A member with a complete header must be complete, as in JDK 25 (JDK 17 also ignores one
that is truncated within 18 bytes). This module parses the header itself, because Java's reader ignores the reserved
flags and zlib's does not."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator

from kdump.format.codec.source import CompressedInput, PieceOptions, failed
from kdump.format.errors import DecodeError

STRUCT = "GzipMember"
MAGIC = b"\x1f\x8b"
DEFLATE = 8
FHCRC, FEXTRA, FNAME, FCOMMENT = 2, 4, 8, 16
LEAST = 10
"""Bytes of a header without the optional fields, which no reader of the contents looks into."""
FEED = 1 << 17
"""Bytes passed to zlib at a time: it copies the unused input with every piece of output."""


def pieces(source: CompressedInput, options: PieceOptions) -> Iterator[bytes]:
    """Yield the contents of the members in pieces of at most `options.chunk_size` bytes. Raises DecodeError."""
    _read_header(source)
    while True:
        yield from _read_member(source, options.chunk_size)
        end = source.position
        try:
            _read_header(source)
        except DecodeError:
            source.ignored += source.position - end
            return


def _read_header(source: CompressedInput) -> None:
    """Read and check a member's header. Raises DecodeError."""
    start = source.position
    crc = 0

    def read(count: int, field: str) -> bytes | bytearray:
        nonlocal crc
        data = source.take(count)
        if len(data) < count:
            raise failed(STRUCT, field, source.position, "the payload ends inside the header of a gzip member")
        crc = zlib.crc32(data, crc)
        return data

    magic = read(2, "magic")
    if magic != MAGIC:
        raise failed(STRUCT, "magic", start, f"not gzip: it starts with {magic.hex()}, not {MAGIC.hex()}")
    method, flags = read(2, "method")
    if method != DEFLATE:
        raise failed(STRUCT, "method", start + 2, f"compression method {method}, not {DEFLATE} (deflate)")
    read(6, "mtime")
    if flags & FEXTRA:
        read(int.from_bytes(read(2, "extra"), "little"), "extra")
    for flag, field in ((FNAME, "name"), (FCOMMENT, "comment")):
        # Zero-terminated and of any length.
        while flags & flag:
            at_hand = source.peek(FEED)
            end = at_hand.find(0)
            read(end + 1 or max(1, len(at_hand)), field)
            if end >= 0:
                break
    if flags & FHCRC:
        expected = crc & 0xFFFF
        stored = int.from_bytes(read(2, "headerCrc"), "little")
        if stored != expected:
            reason = f"header CRC 0x{stored:04x}, computed 0x{expected:04x}"
            raise failed(STRUCT, "headerCrc", source.position - 2, reason)
    source.ignored += source.position - start - LEAST


def _read_member(source: CompressedInput, chunk_size: int) -> Iterator[bytes]:
    """Yield the contents of a member, whose header has been read, and check its trailer. Raises DecodeError."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    crc = length = 0
    while not inflater.eof:
        data = source.peek(FEED)
        before = inflater.copy()
        try:
            piece = inflater.decompress(data, chunk_size)
        except zlib.error as error:
            reason = str(error).partition(": ")[2] or str(error)
            yield from _inflate_to_error(before, source, len(data), chunk_size, reason)
        if not data and not piece:
            raise failed(STRUCT, "data", source.position, "the payload ends inside a gzip member")
        source.skip(len(data) - len(inflater.unused_data if inflater.eof else inflater.unconsumed_tail))
        crc = zlib.crc32(piece, crc)
        length += len(piece)
        yield piece
    start = source.position
    trailer = source.take(8)
    if len(trailer) < 8:
        raise failed(STRUCT, "crc32", source.position, "the payload ends inside the trailer of a gzip member")
    stored = int.from_bytes(trailer[:4], "little")
    if stored != crc:
        raise failed(STRUCT, "crc32", start, f"CRC-32 0x{stored:08x}, computed 0x{crc:08x}")
    stored = int.from_bytes(trailer[4:], "little")
    if stored != length & 0xFFFFFFFF:
        raise failed(STRUCT, "isize", start + 4, f"size {stored} (modulo 2**32), but decompressed to {length} bytes")


def _inflate_to_error(
    inflater: zlib._Decompress, source: CompressedInput, count: int, chunk_size: int, reason: str
) -> Iterator[bytes]:
    """Yield everything before the error in the next `count` bytes, then raise DecodeError at the byte that causes it.

    zlib returns no output from a call that fails. So this feeds it byte by byte, and also takes the last byte's output
    byte by byte: the result does not depend on how the payload is split."""
    output = bytearray()
    # Feed nothing at first: bits of the previous byte may still be pending.
    byte, position = b"", source.position - 1
    for _ in range(count + 1):
        before = inflater.copy()
        try:
            output += inflater.decompress(byte)
        except zlib.error:
            with contextlib.suppress(zlib.error):
                while more := before.decompress(byte, 1):
                    output += more
                    byte = before.unconsumed_tail
            break
        source.skip(len(byte))
        if len(output) >= chunk_size:
            yield bytes(output)
            output.clear()
        byte, position = source.peek(1), source.position
    yield bytes(output)
    raise failed(STRUCT, "data", position, reason)
