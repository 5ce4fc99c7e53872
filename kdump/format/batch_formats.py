"""What distinguishes the formats of batches, by their magic. Everything else asks here, or has a class of its own."""

from typing import Any, NamedTuple

from kdump.format import batch_header as v2
from kdump.format import legacy_message as legacy
from kdump.format.layout import Layout
from kdump.format.varint import Bytes


class BatchFormat(NamedTuple):
    """`header`: layout of the header (of a message: also its key and value); `crc_start`: position, relative to the
    batch, of the first byte that the checksum covers; `crc_name`: kind of checksum; `is_message`: a message of v0 or
    v1, alone or a wrapper, which has neither a producer nor headers; `has_timestamp`: v0 has none, and the offsets in
    its wrappers are absolute; `in_core`: the compiled core reads many batches of it at a time."""

    header: Layout[Any]
    crc_start: int
    crc_name: str
    is_message: bool
    has_timestamp: bool
    in_core: bool = False


V2 = 2
FORMATS: dict[int, BatchFormat] = {
    0: BatchFormat(legacy.MESSAGE_V0, legacy.CRC_START, "CRC-32", True, False),
    1: BatchFormat(legacy.MESSAGE_V1, legacy.CRC_START, "CRC-32", True, True),
    V2: BatchFormat(v2.BATCH_HEADER, v2.CRC_START, "CRC-32C", False, True, in_core=True),
}
NEWEST = max(FORMATS)
CORE_MAGICS = frozenset(magic for magic, known in FORMATS.items() if known.in_core)
"""Magics of the formats that the core reads."""
LARGEST_HEADER = max(each.header.size for each in FORMATS.values())
"""Bytes that contain the header of any format."""


def format_of(magic: int) -> BatchFormat:
    """Return the format as which Kafka reads a batch with any magic: one below 2 as a message, any other as v2
    (FileLogInputStream.nextBatch)."""
    return FORMATS.get(magic) or FORMATS[min(max(magic, 0), NEWEST)]


def format_at(data: Bytes) -> BatchFormat | None:
    """Return the format of the batch that begins with `data`; None for an unknown magic, or less than the header."""
    batch_format = FORMATS.get(data[v2.MAGIC_POSITION]) if len(data) > v2.MAGIC_POSITION else None
    return None if batch_format is None or len(data) < batch_format.header.size else batch_format
