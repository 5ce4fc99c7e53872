"""Damaged byte ranges in the files of a copy."""

from __future__ import annotations

from typing import NamedTuple


class FilePosition(NamedTuple):
    """Bytes position..position+size-1 of a file."""

    file: str
    position: int
    size: int


class UnreadableSpan(NamedTuple):
    """Bytes that are not a valid batch. `digest`: hash of the bytes, to find equal damage in two copies; empty for
    padding."""

    place: FilePosition
    kind: str
    reason: str
    digest: bytes


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
        mine, theirs = ([(each.kind, each.place.size, each.digest) for each in hole.damages] for hole in (self, other))
        return mine == theirs and self.places == other.places == len(mine) and not (self.unread or other.unread)


class EpochInBatches(NamedTuple):
    """The first batch of a leader epoch."""

    epoch: int
    offset: int
    place: FilePosition
