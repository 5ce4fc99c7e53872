"""Keeps many similar texts in little memory: compressed in chunks, of which a few stay decompressed."""

from __future__ import annotations

import struct
import zlib
from functools import lru_cache

CHUNK_BYTES = 4 * 1024
LENGTH = struct.Struct(">I")
LEVEL = 1


class PackedTexts:
    """Byte strings, each found again by the number that `add` returned for it."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._packed = 0
        self._open = bytearray()
        self._read = lru_cache(maxsize=256)(self._decompress)

    def add(self, data: bytes) -> int:
        place = len(self._chunks) << 32 | len(self._open)
        self._open += LENGTH.pack(len(data)) + data
        if len(self._open) >= CHUNK_BYTES:
            self._chunks.append(zlib.compress(bytes(self._open), LEVEL))
            self._packed += len(self._chunks[-1])
            self._open.clear()
        return place

    def get(self, place: int) -> bytes:
        number, start = place >> 32, place & 0xFFFFFFFF
        chunk = self._read(number) if number < len(self._chunks) else bytes(self._open[start:])
        start = start if number < len(self._chunks) else 0
        (length,) = LENGTH.unpack_from(chunk, start)
        return chunk[start + LENGTH.size : start + LENGTH.size + length]

    @property
    def memory(self) -> int:
        """Bytes that they take."""
        return self._packed + len(self._open)

    def _decompress(self, number: int) -> bytes:
        return zlib.decompress(self._chunks[number])
