"""The two checksums: CRC-32C (Castagnoli) over v2 batches, CRC-32 (as in zip) over v0 and v1 messages."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from crc32c import crc32c

from kdump.format.varint import Bytes


def checksum(magic: int, chunks: Iterable[Bytes]) -> int:
    """The checksum that format `magic` stores, over the chunks together."""
    crc = 0
    for chunk in chunks:
        crc = crc32c(chunk, crc) if magic > 1 else zlib.crc32(chunk, crc)
    return crc
