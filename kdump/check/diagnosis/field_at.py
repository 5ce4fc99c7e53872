"""Locates a byte of a batch: the field of the header or of a record, and whether it is on a block boundary."""

from __future__ import annotations

from kdump.format import legacy_message as legacy
from kdump.format.batch_header import BATCH_HEADER
from kdump.format.errors import DecodeError
from kdump.format.layout import BYTES, VARLONG, Field, Layout
from kdump.format.record import RECORD
from kdump.format.varint import read_varint, read_varlong
from kdump.log.region import HEADER_SIZES, Batch, LegacyRecordBatch
from kdump.log.window import Window

MAX_RECORDS_SKIPPED = 1 << 16
"""Maximum number of records skipped to find one; for a byte after them, the record is not determined."""
MAX_VARLONG = 10
"""Maximum size of a varlong in bytes."""


def block_edge(position: int) -> str:
    """Return which block boundary of a disk or file system `position` in a file is on; empty if none."""
    if position % 4096 == 0:
        return "a 4 KiB boundary"
    return "a 512-byte boundary" if position % 512 == 0 else ""


def field_at(batch: Batch, at: int) -> str:
    """Return what contains the byte at position `at` of the file, by the names in the layouts: a field of the header;
    key or value of a message; a field of an uncompressed record, with the record's index and, if its offsetDelta is
    before the byte, its offset; or just "the records"."""
    inside = at - batch.position
    if isinstance(batch, LegacyRecordBatch):
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
    """Return the field and record that contain the byte at `at`. The fields before that byte are assumed to be
    undamaged, so that they lead to it. Raises DecodeError."""
    window = batch.window
    start = batch.position + HEADER_SIZES[2]
    index = 0
    while (end := _record_end(window, start, at)) <= at:
        start = end
        index += 1
        if index > MAX_RECORDS_SKIPPED:
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
    length, after = _varint(window, start, at, RECORD.fields[0])
    return after + max(0, length)


def _varint(window: Window, position: int, at: int, field: Field) -> tuple[int, int]:
    """Return the varint at `position`, and its end. If it is invalid and contains the damaged byte at `at`, returns
    0 and the position after that byte. Raises DecodeError if it is invalid without containing it."""
    data = window.view(position, MAX_VARLONG)
    read = read_varlong if field.wire is VARLONG else read_varint
    try:
        value, size = read(data, 0, len(data), RECORD.name, field.name)
    except DecodeError:
        if position <= at < position + len(data):
            return 0, at + 1
        raise
    return value, position + size
