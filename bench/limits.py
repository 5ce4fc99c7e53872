"""Lower bounds for any tool: the time that reading, checksums and codecs take by themselves, without kdump."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cramjam
import lz4.block
import zstandard
from crc32c import crc32c

from bench.measure import least
from bench.segments import batches

BLOCK = 1 << 20
HEADER = 61


def limits(path: Path, codec: str, runs: int) -> dict[str, float]:
    """Return the seconds that a file takes: to read, to read with CRC-32C, and to decompress with the codec alone
    (payloads in memory)."""
    found = {"read": least(lambda: _read(path), runs), "read + crc32c": least(lambda: _sum(path), runs)}
    unpack = CODECS.get(codec)
    if unpack is not None:
        payloads = [batch[HEADER:] for batch in batches(path.read_bytes())]
        found[codec] = least(lambda: [unpack(payload) for payload in payloads] and None, runs)
    return found


def _read(path: Path) -> None:
    buffer = bytearray(BLOCK)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def _sum(path: Path) -> None:
    buffer = bytearray(BLOCK)
    crc = 0
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            crc = crc32c(memoryview(buffer)[:count], crc)


def _gzip(payload: bytes) -> Any:
    return zlib.decompress(payload, 31)


def _snappy(payload: bytes) -> None:
    at = 16
    while at < len(payload):
        size = int.from_bytes(payload[at : at + 4], "big")
        cramjam.snappy.decompress_raw(payload[at + 4 : at + 4 + size])
        at += 4 + size


def _lz4(payload: bytes) -> None:
    at = 7
    while size := int.from_bytes(payload[at : at + 4], "little"):
        if not size >> 31:
            lz4.block.decompress(payload[at + 4 : at + 4 + size], uncompressed_size=65536)
        at += 4 + (size & 0x7FFFFFFF)


_ZSTD = zstandard.ZstdDecompressor()


def _zstd(payload: bytes) -> Any:
    return _ZSTD.decompress(payload, max_output_size=16 << 20)


CODECS: dict[str, Callable[[bytes], Any]] = {"gzip": _gzip, "snappy": _snappy, "lz4": _lz4, "zstd": _zstd}
