"""Where a byte of a batch is: which field of its header or of which record; and whether it begins a block of a disk."""

from __future__ import annotations

from kdump.format import message as legacy
from kdump.format.batch import BATCH_HEADER
from kdump.format.errors import DecodeError
from kdump.format.layout import BYTES, VARLONG, Field, Layout
from kdump.format.record import RECORD
from kdump.format.varint import read_varint, read_varlong
from kdump.log.region import HEADER_SIZES, Batch, BatchLegacy
from kdump.log.window import Window

MOST_RECORDS = 1 << 16
"""Records that are walked over to find one; a byte behind them is just in the records."""
LONGEST = 10
"""Bytes of a varlong."""


def block_edge(position: int) -> str:
    """Which boundary of a disk's or a file system's blocks `position` of a file is; empty if none."""
    if position % 4096 == 0:
        return "a 4 KiB boundary"
    return "a 512-byte boundary" if position % 512 == 0 else ""


def field_at(batch: Batch, at: int) -> str:
    """What holds the byte at `at` of the file, by the layouts' names: a field of the header; key or value of a message;
    a field of an uncompressed record, with its index and, if that comes before the byte, its offset; or the records."""
    inside = at - batch.position
    if isinstance(batch, BatchLegacy):
        layout: Layout[legacy.MessageV0] | Layout[legacy.MessageV1] = legacy.MESSAGES[batch.magic]
        if inside < layout.size:
            return _header_field(layout.positions, inside)
        size_at = layout.size + max(0, batch.header.keySize)
        return "key" if inside < size_at else "valueSize" if inside < size_at + legacy.VALUE_SIZE.size else "value"
    if inside < HEADER_SIZES[2]:
        return _header_field(BATCH_HEADER.positions, inside)
    if batch.is_compressed:
        return f"the records, compressed with {batch.compression}"
    try:
        return _record_field(batch, at)
    except DecodeError:
        return "the records"


def _header_field(positions: dict[str, int], inside: int) -> str:
    return max((position, name) for name, position in positions.items() if position <= inside)[1]


def _record_field(batch: Batch, at: int) -> str:
    """All fields before the byte at `at` are as they were written, so they lead to it. Raises DecodeError."""
    window = batch.window
    start = batch.position + HEADER_SIZES[2]
    index = 0
    while (end := _record_end(window, start, at)) <= at:
        start = end
        index += 1
        if index > MOST_RECORDS:
            return "the records"
    offset = None
    values: dict[str, int] = {}
    position = start
    for field in RECORD.fields[: RECORD.names.index("headers")]:
        if field.wire is BYTES:
            position += max(0, values[field.sized_by])
        elif field.wire.size:
            position += field.wire.size
        else:
            values[field.name], position = _varint(window, position, at, field)
        if at < position:
            name = field.name
            break
        if field.name == "offsetDelta":
            offset = (batch.baseOffset or 0) + values[field.name]
    else:
        name = "headers"
    return f"{name} of record {index}" + ("" if offset is None else f", offset {offset}")


def _record_end(window: Window, start: int, at: int) -> int:
    length, behind = _varint(window, start, at, RECORD.fields[0])
    return behind + max(0, length)


def _varint(window: Window, position: int, at: int, field: Field) -> tuple[int, int]:
    """A varint at `position`, and where it ends; a flipped bit at `at` may make it too long. Raises DecodeError."""
    data = window.view(position, LONGEST)
    read = read_varlong if field.wire is VARLONG else read_varint
    try:
        value, size = read(data, 0, len(data), RECORD.name, field.name)
    except DecodeError:
        if position <= at < position + len(data):
            return 0, at + 1
        raise
    return value, position + size
