"""The usual size of batches in the segments that a recovery reads: each batch costs it time of its own."""

from __future__ import annotations

from collections.abc import Iterable

from kdump.log.errors import SourceError
from kdump.log.source import open_source

SAMPLES = 32
SAMPLE_BYTES = 256 << 10
HEADER = 17
"""Bytes up to and with magic, in every format."""
DEFAULT = 16 << 10
"""Bytes of a batch if none can be read: batch.size of a producer."""


def mean_batch_size(paths: Iterable[str]) -> int:
    """Return the mean size in bytes of the batches at the beginning of SAMPLES files."""
    size = count = 0
    for number, path in enumerate(paths):
        if number >= SAMPLES:
            break
        try:
            source = open_source(path)
        except SourceError:
            continue
        try:
            data = source.read_at(0, SAMPLE_BYTES)
        except SourceError:
            continue
        finally:
            source.close()
        found = list(_batch_sizes(data))
        size, count = size + sum(found), count + len(found)
    return size // count if count else DEFAULT


def _batch_sizes(data: bytes) -> Iterable[int]:
    """Yield the sizes of batches as their headers state them, up to the first that is impossible."""
    position = 0
    while position + HEADER <= len(data):
        length = int.from_bytes(data[position + 8 : position + 12], "big", signed=True)
        if length < HEADER - 12 or data[position + HEADER - 1] > 2:
            return
        yield 12 + length
        position += 12 + length
