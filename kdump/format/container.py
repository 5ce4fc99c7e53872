"""A container: compressed frames, and at its end a head that says where the first of them are. A bundle has one for
each directory (docs/bundle.md).

It comes from another host, so nothing in it is believed: no frame expands to more than 100 times its size, nor to more
than a few MiB, and each has a checksum.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from struct import Struct
from typing import Any, NamedTuple, Protocol

from kdump.format.checksum import castagnoli
from kdump.format.codec.source import library
from kdump.format.errors import DecodeError

STRUCT = "Container"
MAGIC = b"KDUMPBN1"
"""The last character is the version of the format."""
FOOTER = Struct("<QIII8s")
"""Position, size and expanded size of the head, its CRC-32C, and the magic again."""
MAX_FRAME = 8 << 20
"""Maximum bytes of a frame, expanded."""
MAX_HEAD = 64 << 10
"""Maximum bytes of the head, expanded."""
MAX_EXPANSION = 100
SKIPPABLE = Struct("<II")
"""Head of a frame of zstd's that a reader skips, with the size of the rest: what expands more is padded with one."""
SKIPPABLE_MAGIC = 0x184D2A50
LEVEL = 3
"""zstd's default level: higher ones take several times as long for a few percent."""

ReadAt = Callable[[int, int], bytes]


class Writable(Protocol):
    """What a container is written to, from its beginning to its end."""

    def write(self, data: bytes, /) -> int: ...


class Frame(NamedTuple):
    """Where a frame is: position, size and expanded size in bytes, and CRC-32C of the bytes as stored. It is compressed
    if the sizes differ."""

    position: int
    stored: int
    size: int
    crc: int


class ContainerWriter:
    """Writes frames to a file, and the head at the end."""

    def __init__(self, file: Writable) -> None:
        self._file = file
        self._compressor = library("zstandard", "zstandard", STRUCT).ZstdCompressor(level=LEVEL)
        self._position = file.write(MAGIC)

    def add(self, data: bytes | bytearray | memoryview, limit: int = MAX_FRAME) -> Frame:
        """Write a frame of at most MAX_FRAME bytes."""
        size = len(data)
        assert size <= limit
        stored = self._compressor.compress(data)
        missing = -(-size // MAX_EXPANSION) - len(stored)
        if missing > 0:
            stored += SKIPPABLE.pack(SKIPPABLE_MAGIC, max(0, missing - SKIPPABLE.size)).ljust(missing, b"\0")
        if len(stored) >= size:
            stored = bytes(data)
        return self._write(stored, size)

    def copy(self, stored: bytes, size: int) -> Frame:
        """Write a frame of another container as it is there. `size`: its expanded size."""
        return self._write(stored, size)

    def _write(self, stored: bytes, size: int) -> Frame:
        frame = Frame(self._position, len(stored), size, castagnoli(stored))
        self._file.write(stored)
        self._position += len(stored)
        return frame

    def finish(self, head: Any) -> None:
        """Write the head: an object of JSON's types."""
        data = json.dumps(head, separators=(",", ":")).encode()
        position, stored, size, crc = self.add(data, MAX_HEAD)
        self._file.write(FOOTER.pack(position, stored, size, crc, MAGIC))


class ContainerReader:
    """Reads a container of `size` bytes through `read_at` (position, count), which may raise any error of its own.
    Raises DecodeError for everything that no ContainerWriter writes."""

    def __init__(self, read_at: ReadAt, size: int) -> None:
        self._read_at = read_at
        self._size = size
        if size < len(MAGIC) + FOOTER.size:
            raise DecodeError(STRUCT, "magic", 0, f"{size} bytes are no container")
        if read_at(0, len(MAGIC)) != MAGIC:
            raise DecodeError(STRUCT, "magic", 0, "not a container of this version of the format")
        position, stored, expanded, crc, magic = FOOTER.unpack(read_at(size - FOOTER.size, FOOTER.size))
        if magic != MAGIC:
            raise DecodeError(STRUCT, "magic", size - len(MAGIC), "the container is not complete")
        data = self.read(Frame(position, stored, expanded, crc), MAX_HEAD)
        try:
            self.head: Any = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise DecodeError(STRUCT, "head", position, str(error)) from error

    def stored(self, frame: Frame, limit: int = MAX_FRAME) -> bytes:
        """Return a frame as it is stored. Raises DecodeError."""
        position, stored, size, crc = frame
        if not (position >= 0 and 0 <= stored <= size <= limit and position + stored <= self._size):
            raise DecodeError(STRUCT, "frame", position, f"a frame of {stored} bytes for {size} is impossible here")
        if size > MAX_EXPANSION * stored:
            raise DecodeError(STRUCT, "frame", position, f"{stored} bytes expand to {size}, more than 100 to 1")
        data = self._read_at(position, stored)
        if len(data) < stored or castagnoli(data) != crc:
            raise DecodeError(STRUCT, "crc", position, "the checksum of a frame does not match")
        return data

    def read(self, frame: Frame, limit: int = MAX_FRAME) -> bytes:
        """Return the bytes of a frame. Raises DecodeError."""
        data = self.stored(frame, limit)
        if frame.stored == frame.size:
            return data
        zstd = library("zstandard", "zstandard", STRUCT)
        try:
            # The library allocates what the frame's own header states.
            if zstd.frame_content_size(data) != frame.size:
                raise DecodeError(STRUCT, "frame", frame.position, "its size differs from that in the container")
            return bytes(zstd.ZstdDecompressor().decompress(data, max_output_size=frame.size))
        except zstd.ZstdError as error:
            raise DecodeError(STRUCT, "frame", frame.position, str(error)) from error
