"""The records of a batch in a buffer as bytes, if they are few."""

from __future__ import annotations

from kdump.core.column_numbers import ATTRIBUTES, BATCH_END, BATCH_START
from kdump.core.header_columns import HeaderColumns
from kdump.format.batch_header import BATCH_HEADER, COMPRESSION
from kdump.format.codec.decompress_small import SMALL, decompress_small
from kdump.format.codec_table import codec_name


def payload_of(heads: HeaderColumns, row: int, limit: int) -> bytes | None:
    """Return the decompressed payload of a batch; None if it is invalid or too large for the fast path."""
    start, end = heads.of(row, BATCH_START) + BATCH_HEADER.size, heads.of(row, BATCH_END)
    number = COMPRESSION.of(heads.of(row, ATTRIBUTES))
    if not number:
        return bytes(memoryview(heads.data)[start:end]) if end - start <= SMALL else None
    return decompress_small(codec_name(number), memoryview(heads.data)[start:end], limit)
