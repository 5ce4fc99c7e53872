"""Lower bounds for any tool: the time that reading, checksums and codecs take by themselves, without kdump."""

from __future__ import annotations

from pathlib import Path

from crc32c import crc32c

from bench.measure import least
from bench.segments import batches
from kdump.format.codec.decompress_small import decompress_small

BLOCK = 1 << 20
HEADER = 61


CODECS = ("gzip", "snappy", "lz4", "zstd")
LIMIT = 256 << 20


def limits(path: Path, codec: str, runs: int) -> dict[str, float]:
    """Return the seconds that a file takes: to read, to read with CRC-32C, and to decompress batch by batch with the
    library that kdump uses, as kdump calls it (payloads in memory)."""
    found = {"read": least(lambda: _read(path), runs), "read + crc32c": least(lambda: _sum(path), runs)}
    if codec in CODECS:
        payloads = [memoryview(batch)[HEADER:] for batch in batches(path.read_bytes())]
        assert decompress_small(codec, payloads[0], LIMIT) is not None
        found[codec] = least(lambda: [decompress_small(codec, payload, LIMIT) for payload in payloads] and None, runs)
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
