"""Damaged byte ranges in the files of a copy."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kdump.answer import INLINE, Doc
from kdump.format.checksum import castagnoli
from kdump.io.source import BYTES
from kdump.io.window import Window
from kdump.log.paths import FilePosition
from kdump.log.region import PADDING, Batch, BatchRun, DefaultRecordBatch, LegacyRecordBatch, Region


class UnreadableSpan(NamedTuple):
    """Bytes that are not a valid batch. `digest`: to find equal damage in two copies (damage_digest)."""

    kind: Annotated[str, Doc()]
    place: Annotated[FilePosition, INLINE]
    reason: Annotated[str, Doc()]
    digest: bytes | None


class Undecoded(NamedTuple):
    """A batch of offsets first..last that consumers cannot read, although no record of it is missing."""

    first: int
    last: int
    damage: UnreadableSpan


class OffsetGap(NamedTuple):
    """Offsets first..last (None: to the end of the log) whose records are unknown in a copy. `places`: number of
    damaged places, the first of which are in `damages`. `unread`: whether a file could not be read."""

    first: int
    last: int | None
    damages: tuple[UnreadableSpan, ...]
    places: int
    unread: bool

    def contains(self, offset: int) -> bool:
        return self.first <= offset and (self.last is None or offset <= self.last)

    def is_as(self, other: OffsetGap) -> bool:
        """Return True if both are damaged in the same way, byte for byte."""
        mine, theirs = (
            [(damage.kind, damage.place.size, damage.digest) for damage in hole.damages] for hole in (self, other)
        )
        return mine == theirs and self.places == other.places == len(mine) and not (self.unread or other.unread)

    @property
    def is_known(self) -> bool:
        """Whether all of its damage can be compared with that of another copy."""
        return all(damage.digest is not None for damage in self.damages)


class EpochInBatches(NamedTuple):
    """The first batch of a leader epoch."""

    epoch: int
    offset: int
    place: FilePosition


def header_bytes(batch: Batch) -> bytes:
    """Return the fields of a batch's header that are the same in all copies, with the checksum: not the base offset
    and, in v2, not the leader epoch, which it does not cover."""
    if isinstance(batch, DefaultRecordBatch):
        return batch.header.packed()[batch.layout.positions["magic"] :]
    assert isinstance(batch, LegacyRecordBatch)
    return repr(batch.header[2:]).encode()


def damage_digest(region: Region, window: Window | None) -> bytes | None:
    """Return what tells damage apart in two copies: of batches the headers, with the checksum of the actual bytes; of
    other regions a CRC-32C; nothing for padding; None if it is not in the bundle."""
    if region.kind == PADDING:
        return b""
    if isinstance(region, BatchRun):
        return repr([batch.header for batch in region.batches()]).encode()
    if isinstance(region, (DefaultRecordBatch, LegacyRecordBatch)):
        return repr((region.header, region.computedCrc)).encode()
    if region.known_crc is None and window is not None and BYTES not in window.source.lacks:
        crc = 0
        for chunk in window.peeks(region.position, region.size):
            crc = castagnoli(chunk, crc)
        region.known_crc = crc
    return None if region.known_crc is None else region.known_crc.to_bytes(4, "big")
