"""Places in the files of a copy, and what is damaged there."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """Bytes position..position+size-1 of a file."""

    file: str
    position: int
    size: int


class Damage(NamedTuple):
    """Bytes that are no sound batch. `digest` tells whether two such places hold the same; empty: not read."""

    place: Place
    kind: str
    reason: str
    digest: bytes


class Hole(NamedTuple):
    """Offsets first..last (None: to the end of the log) of which a copy cannot say what they were. `places` are
    damaged; the first of them are in `damages`."""

    first: int
    last: int | None
    damages: tuple[Damage, ...]
    places: int
    unread: bool

    def holds(self, offset: int) -> bool:
        return self.first <= offset and (self.last is None or offset <= self.last)

    def is_as(self, other: Hole) -> bool:
        """Whether both are damaged alike, byte for byte."""
        mine, theirs = ([(each.kind, each.place.size, each.digest) for each in hole.damages] for hole in (self, other))
        return mine == theirs and self.places == other.places == len(mine) and not (self.unread or other.unread)


class EpochSeen(NamedTuple):
    """The first batch of a leader epoch."""

    epoch: int
    offset: int
    place: Place
