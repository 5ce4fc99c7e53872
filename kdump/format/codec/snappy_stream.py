"""Decompresses a large raw Snappy block in pieces: neither the block nor its output is ever in memory as a whole.

Encoders (in C++, Java, Go, Rust) compress each 64 KiB separately, so that no copy reaches further back; the format
allows 4 GiB. The last HISTORY bytes of the output are kept for copies. The library produces each piece from some of the
block's elements, after a literal with the bytes that they refer back to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kdump.format.codec.snappy_tags import LONG_LITERAL, ZERO_OFFSET, literal, walk
from kdump.format.codec.source import failed
from kdump.format.errors import DECOMPRESSION_FAILED, OurLimitError

BLOCK = "SnappyBlock"
HISTORY = 8 << 20
"""Number of output bytes that a copy can refer back to."""
STEP = 1 << 20
"""Approximate number of output bytes that the library produces per call."""
LITERAL = 63 << 2
"""The tag of a literal whose length, minus one, is in the next four bytes."""

END = bytes([3 << 2, 0, 0, 0, 0])
"""A literal of four bytes, appended to each piece: at the end, the library rejects a literal whose length takes three
bytes, because it reads four."""


def pieces(parts: Iterator[bytes], position: int, length: int, library: Any) -> Iterator[bytes]:
    """Yield the output in pieces of about STEP bytes. Raises DecodeError, after yielding what precedes the damage.

    `length`: the length that the block states; `parts`: its bytes after that, starting at `position` of the payload;
    `library`: cramjam."""
    output = _Output(length, library)
    copied = 0
    """Bytes of a long literal that are still to come."""
    rest = b""
    for part in parts:
        data, at = rest + part, 0
        while at < len(data):
            if copied:
                stop = min(len(data), at + min(copied, STEP))
                copied -= stop - at
                yield output.keep(data[at:stop], position + at)
            else:
                stop, made, reach = walk(data, at, STEP)
                if stop > at:
                    yield output.expand(data[at:stop], made, reach, position + at)
                else:
                    begun = literal(data, at)
                    if begun is None or begun[1] <= LONG_LITERAL:
                        break  # the rest of it is in the next part
                    stop, copied = begun
            at = stop
        rest = data[at:]
        position += at
    if rest or copied:
        raise failed(BLOCK, "data", position, "the block ends inside an element")
    if output.size != length:
        raise failed(BLOCK, "length", position, f"length {length}, but decompressed to {output.size} bytes")


class _Output:
    """The output so far: its size, and its last bytes."""

    def __init__(self, length: int, library: Any) -> None:
        self.length, self.library = length, library
        self.size = 0
        self.last = bytearray()

    def keep(self, piece: bytes, position: int) -> bytes:
        """Add a piece, decompressed from the bytes at `position`, and return it. Raises DecodeError if the output
        exceeds its stated length."""
        self._check(len(piece), position)
        self.size += len(piece)
        self.last += piece
        if len(self.last) > 2 * HISTORY:
            del self.last[:-HISTORY]
        return piece

    def expand(self, elements: bytes, made: int, reach: int, position: int) -> bytes:
        """Add the `made` bytes that these elements produce, and return them. Raises DecodeError."""
        if reach > self.size:
            offset = "an offset of 0" if reach >= ZERO_OFFSET else "an offset before the block's first byte"
            raise failed(BLOCK, "data", position, f"a copy with {offset}")
        if reach > len(self.last):
            reason = f"a copy reaches back more than the {HISTORY} bytes that kdump keeps"
            raise OurLimitError(BLOCK, "data", position, reason, DECOMPRESSION_FAILED)
        self._check(made, position)
        head = self.last[len(self.last) - reach :] if reach else b""
        block = bytearray()
        size = reach + made + len(END) - 1
        while size >= 0x80:
            block.append(size & 0x7F | 0x80)
            size >>= 7
        block.append(size)
        if reach:
            block.append(LITERAL)
            block += (reach - 1).to_bytes(4, "little") + head
        block += elements + END
        found = bytearray(reach + made + len(END) - 1)
        try:
            self.library.snappy.decompress_raw_into(block, found)
        except self.library.DecompressionError as error:
            raise failed(BLOCK, "data", position, str(error)) from None
        return self.keep(bytes(memoryview(found)[reach : reach + made]), position)

    def _check(self, more: int, position: int) -> None:
        if self.size + more > self.length:
            raise failed(BLOCK, "length", position, f"length {self.length}, but decompresses to more bytes")
