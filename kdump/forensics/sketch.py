"""The most frequent of very many things, in bounded memory and with the error that it makes.

A table of counters; when it is full, the median of them is taken from all, and those that come to nothing go. What was
taken is what any count may be too low by, and it is known: nothing, as long as all have fitted in. (Misra and Gries,
1982; with the median, as Apache DataSketches has it: Anderson et al., A High-Performance Algorithm for Identifying
Frequent Items in Data Streams, 2017. That library would bring numpy, and take an object a record.)
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable
from typing import NamedTuple

from kdump.log.skim import key_digest

ROOM = 1 << 14
LONGEST = 128
"""Bytes of a key that is kept whole."""
NEAR = 1 << 16
KEPT = 64
"""Bytes of a longer one that are kept, with a digest of all."""


class Counted(NamedTuple):
    """Something frequent. It was met at least `times`, and at most `times` + the sketch's error; `weight`, the
    bytes of what was met, is a least as well."""

    item: Hashable
    times: int
    weight: int


class LongKey(NamedTuple):
    """In place of a key that is too long to keep: how it begins, its size in bytes, and a digest to know it by."""

    start: bytes
    size: int
    digest: bytes


class Frequent:
    """Counts of things. `total` is how many were met; `error` by how much each count may be too low, at most
    2 * total / room. `slots` gives each thing that is counted its place in `counts` and `weights`."""

    __slots__ = ("counts", "error", "near", "room", "sizes", "slots", "texts", "total", "weights")

    def __init__(self, room: int = ROOM) -> None:
        self.room = room
        self.slots: dict[Hashable, int] = {}
        self.counts = array("q", bytes(8 * room))
        self.weights = array("q", bytes(8 * room))
        self.total = 0
        self.error = 0
        # For who counts keys by the million: where a key was found last, by a hash of it, and the keys themselves.
        self.near = array("q", bytes(8 * NEAR))
        """A slot + 1, or 0 for none."""
        self.texts = bytearray(LONGEST * room)
        self.sizes = array("q", bytes(8 * room))

    def add(self, item: Hashable, count: int = 1, weight: int = 0) -> None:
        """`item` was met so many times."""
        self.total += count
        self._put(item, count, weight)

    def _put(self, item: Hashable, count: int, weight: int) -> None:
        slot = self.slots.get(item)
        if slot is None:
            slot = self.new(item)
        self.counts[slot] += count
        self.weights[slot] += weight

    def new(self, item: Hashable) -> int:
        """A place for what has none; its count is 0."""
        if len(self.slots) >= self.room:
            self.purge()
        slot = self.slots[item] = len(self.slots)
        self.counts[slot] = self.weights[slot] = 0
        return slot

    def purge(self) -> None:
        """Room for others. The arrays stay the same objects, and so does the table."""
        counts, weights = self.counts, self.weights
        median = sorted(counts[: len(self.slots)])[len(self.slots) // 2]
        self.error += median
        kept = [(item, counts[slot] - median, weights[slot]) for item, slot in self.slots.items()]
        self.slots.clear()
        self.near[:] = array("q", bytes(8 * NEAR))
        for item, count, weight in kept:
            if count > 0:
                slot = self.slots[item] = len(self.slots)
                counts[slot], weights[slot] = count, weight

    def top(self, most: int) -> list[Counted]:
        """Those with the highest counts, the highest first. One that is not among them, or not in the table at all, was
        met at most `error` times more than the last."""
        found = [Counted(item, self.counts[slot], self.weights[slot]) for item, slot in self.slots.items()]
        return sorted(found, key=lambda each: (-each.times, -each.weight, repr(each.item)))[:most]

    def shed(self) -> None:
        """Give back what only who goes on counting keys needs. It can still be merged into another, and shown."""
        self.near, self.texts, self.sizes = array("q"), bytearray(), array("q")

    def merge(self, other: Frequent, name: Callable[[Hashable], Hashable] = lambda item: item) -> None:
        """Take in what another has counted; `name` says what its things are called here."""
        for item, slot in other.slots.items():
            self._put(name(item), other.counts[slot], other.weights[slot])
        self.total += other.total
        self.error += other.error


def known_by(key: bytes, size: int | None = None, digest: bytes = b"") -> bytes | LongKey:
    """What stands for a key in a table. Of a very large one, `key` is the beginning, with the size and the digest of
    all (log.skim.key_digest)."""
    size = len(key) if size is None else size
    return key if size <= LONGEST else LongKey(key[:KEPT], size, digest or key_digest(key))
