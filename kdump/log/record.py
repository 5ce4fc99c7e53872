"""A record of any format, combining the values of its batch and its own bytes."""

from __future__ import annotations

import zlib
from copy import copy
from typing import TYPE_CHECKING

from kdump.core.record_columns import headers
from kdump.format.varint import Bytes

if TYPE_CHECKING:
    from kdump.log.region import Batch

__all__ = ["Record"]


class Record:
    """A record of a v2 batch, or an inner or single message of v0 or v1. Key and value are extracted on access.

    `data[start:end]` are its own bytes; `space_position` is where they start in the file or, in a compressed batch, in
    the decompressed payload. offset is None if damage to the wrapper makes it unknown; timestamp is in epoch ms, None
    in v0; sequence, offsetDelta and timestampDelta are None in v0 and v1."""

    __slots__ = (
        *("_crc_valid", "attributes", "batch", "crc", "data", "end", "header_count", "header_start", "index"),
        *("keySize", "key_start", "magic", "offset", "offsetDelta", "sequence", "space_position", "start"),
        *("timestamp", "timestampDelta", "timestampType", "valueSize", "value_start"),
    )

    _crc_valid: bool
    batch: Batch
    """The batch that contains it."""
    index: int
    """Its index in the batch, from 0."""
    magic: int
    offset: int | None
    timestamp: int | None
    timestampType: str
    attributes: int
    offsetDelta: int | None
    timestampDelta: int | None
    sequence: int | None
    crc: int | None
    """The stored CRC-32 of a message of v0 or v1; None in v2, where only the batch has one."""
    data: Bytes
    start: int
    end: int
    space_position: int
    key_start: int
    keySize: int
    value_start: int
    valueSize: int
    header_start: int
    header_count: int

    @property
    def is_cut(self) -> bool:
        """Whether this is a large record read without its value: key and value are incomplete, and there are no
        headers."""
        return self.end > len(self.data)

    @property
    def key(self) -> bytes | None:
        if self.keySize < 0:
            return None
        return bytes(self.data[self.key_start : self.key_start + self.keySize])

    @property
    def value(self) -> bytes | None:
        if self.valueSize < 0:
            return None
        return bytes(self.data[self.value_start : self.value_start + self.valueSize])

    @property
    def headers(self) -> list[tuple[bytes, bytes | None]]:
        """Keys and values, in order; keys may be repeated."""
        if not self.header_count:
            return []
        return headers(self.data, self.header_start, self.header_count, self.end)

    @property
    def raw(self) -> bytes:
        """The record's own bytes, including its length field (or offset)."""
        return bytes(self.data[self.start : self.end])

    def alone(self) -> Record:
        """Return the record with a copy of its own bytes, in place of all those that were decoded together, and its
        batch without any."""
        made, shift = copy(self), self.start
        made.batch = self.batch.alone()
        if self.is_cut:
            return made
        made.data, made.start, made.end = self.raw, 0, self.end - shift
        made.key_start, made.value_start = self.key_start - shift, self.value_start - shift
        made.header_start = self.header_start - shift
        return made

    @property
    def is_damaged(self) -> bool:
        """Whether a checksum of its bytes does not match: its batch's, or its own (magic 0 and 1)."""
        return not self.batch.crcValid or self.crcValid is False

    @property
    def crcValid(self) -> bool | None:
        """Whether the message's own CRC-32 matches; None in v2."""
        if self.crc is None:
            return None
        try:
            return self._crc_valid
        except AttributeError:  # first access: a row, its style and its finding all use it
            covered = memoryview(self.data)[self.start + 16 : self.end]
            self._crc_valid = zlib.crc32(covered) == self.crc
            return self._crc_valid

    @property
    def position(self) -> int:
        """Position in the file of the batch that contains it."""
        return self.batch.position

    @property
    def is_control(self) -> bool:
        return bool(self.batch.isControlBatch)


def damage_text(record: Record) -> str:
    """Return why the bytes of a record may be damaged; empty if they are not."""
    batch = f"the batch at byte {record.position}"
    if record.batch.crcValid:
        what = f"the message at offset {record.offset} in {batch}"
        return f"{what} does not match its checksum" if record.is_damaged else ""
    return f"{batch} is incomplete" if record.batch.is_torn else f"{batch} does not match its checksum"
