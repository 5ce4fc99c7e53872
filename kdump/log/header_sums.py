"""What the headers of a segment, or of several, say together."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Headers:
    """What the headers say of a segment, or of several that were added up. Offsets are both included, times epoch ms;
    None where nothing says it. `records` is None where the count is inside of compressed messages of magic 0 and 1.

    `oldest` is the smallest first timestamp of a batch and `newest` the largest maxTimestamp: a record inside of a
    batch may be older, none is newer. `partial`: not all headers were read, so that there may be more formats and
    codecs. `damage` says where the first bytes are that are no batch and should be, empty if there are none.
    """

    batches: int = 0
    records: int | None = 0
    first: int | None = None
    last: int | None = None
    oldest: int | None = None
    newest: int | None = None
    formats: set[int] = field(default_factory=set)
    codecs: set[str] = field(default_factory=set)
    partial: bool = False
    torn: int = 0
    junk: int = 0
    padding: int = 0
    damage: str = ""
    tail: str = ""
    """torn or padding, if the last segment ends with that: as a crash, a copy or preallocation leaves it."""

    def add(self, other: Headers) -> None:
        """Take in those of another segment."""
        self.batches += other.batches
        self.records = None if self.records is None or other.records is None else self.records + other.records
        self.first = _least(self.first, other.first)
        self.last = _most(self.last, other.last)
        self.oldest = _least(self.oldest, other.oldest)
        self.newest = _most(self.newest, other.newest)
        self.formats |= other.formats
        self.codecs |= other.codecs
        self.partial = self.partial or other.partial
        self.torn += other.torn
        self.junk += other.junk
        self.padding += other.padding
        self.damage = self.damage or other.damage
        self.tail = other.tail

    def times(self, oldest: int, newest: int) -> None:
        """Two more timestamps; negative ones say nothing."""
        if oldest >= 0 and (self.oldest is None or oldest < self.oldest):
            self.oldest = oldest
        if newest >= 0 and (self.newest is None or newest > self.newest):
            self.newest = newest


def _least(one: int | None, other: int | None) -> int | None:
    return one if other is None else other if one is None else min(one, other)


def _most(one: int | None, other: int | None) -> int | None:
    return one if other is None else other if one is None else max(one, other)
