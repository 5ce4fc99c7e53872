"""Follows v2 batches by the lengths in their headers, without reading their records: to start reading near an offset in
a segment that has no index."""

from __future__ import annotations

from kdump.format.batch_header import BATCH_HEADER, LOG_OVERHEAD, MIN_BATCH_LENGTH
from kdump.log.source import Source

SMALL = 64 * 1024
"""Batches with fewer bytes than this are read completely: that is faster than seeking."""
BLOCK, HEADER_BLOCK = 256 * 1024, 4096


def walk_to(source: Source, position: int, offset: int) -> tuple[int, int] | None:
    """Return position and base offset of the first batch that ends after byte `position` and at or above `offset`, or
    of the last batch before lengths lead nowhere; None if there is no batch. Only a hint: nothing is verified but
    headers. Raises SourceError."""
    at, last = 0, -1
    found: tuple[int, int] | None = None
    buffer, start, block = b"", 0, BLOCK
    unpack, header_size, size = BATCH_HEADER.struct.unpack_from, BATCH_HEADER.size, source.size or 0
    while at + header_size <= size:
        inside = at - start
        if inside + header_size > len(buffer):
            buffer, start, inside = source.read_at(at, block), at, 0
            if len(buffer) < header_size:
                break
        base, length, _, magic, _, _, delta, *_ = unpack(buffer, inside)
        end = at + LOG_OVERHEAD + length
        if magic != 2 or length < MIN_BATCH_LENGTH or end > size or delta < 0 or base <= last:
            break
        found, last = (at, base), base + delta
        if end > position and last >= offset:
            break
        at = end
        block = BLOCK if length < SMALL else HEADER_BLOCK
    return found
