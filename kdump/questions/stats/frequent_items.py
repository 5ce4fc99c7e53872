"""Finds the most frequent of very many items, in bounded memory and with a known error.

A table of counters. When it is full, the median of the counters is subtracted from all, and those that reach zero are
removed. The sum of these medians is the most by which a count may be too low; it is 0 as long as all items fit. (Misra
and Gries, 1982; with the median, as Apache DataSketches does it: Anderson et al., A High-Performance Algorithm for
Identifying Frequent Items in Data Streams, 2017. That library would require numpy, and one object per record.)"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import Any, NamedTuple

from kdump.core.record_counts import LONGEST, NEAR
from kdump.log.skim import key_digest

ROOM = 1 << 14
ZERO = array("q", [0])
"""To be multiplied: arrays made of bytes take ten times as long, which is most of the work for a small partition."""
KEPT = 64
"""Bytes that are kept of a longer key, with a digest of all of it."""


class FrequentItem(NamedTuple):
    """A frequent item. It occurred at least `times`, and at most `times` + the sketch's error; `weight`, the bytes of
    its occurrences, is a lower bound, too."""

    item: Hashable
    times: int
    weight: int


class LongKey(NamedTuple):
    """Replaces a key that is too long to keep: its first bytes, its size in bytes, and a digest that identifies it."""

    start: bytes
    size: int
    digest: bytes


class SpaceSaving:
    """Counts items. `total`: number of occurrences; `error`: by how much each count may be too low, at most 2 * total /
    room. `slots`: index of each counted item in `counts` and `weights`."""

    __slots__ = ("counts", "error", "near", "room", "sizes", "slots", "texts", "total", "weights")

    def __init__(self, room: int = ROOM) -> None:
        self.room = room
        self.slots: dict[Hashable, int] = {}
        self.counts = ZERO * room
        self.weights = ZERO * room
        self.total = 0
        self.error = 0
        # For keys counted by the million: the slot where a key was found last, by a hash of it, and the keys
        # themselves.
        self.near = ZERO * NEAR
        """Slot + 1, or 0 for none."""
        self.texts: bytearray | mmap = mmap(-1, max(1, LONGEST * room), MAP_PRIVATE | MAP_ANONYMOUS)
        """Only what is used of it takes memory and time."""
        self.sizes = ZERO * room

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        fields = {name: getattr(self, name) for name in self.__slots__}
        return None, fields | {"texts": bytearray(self.texts)}  # a worker's result

    def add(self, item: Hashable, count: int = 1, weight: int = 0) -> None:
        """Count `count` occurrences of `item`."""
        self.total += count
        self._put(item, count, weight)

    def _put(self, item: Hashable, count: int, weight: int) -> None:
        slot = self.slots.get(item)
        if slot is None:
            slot = self.new(item)
        self.counts[slot] += count
        self.weights[slot] += weight

    def new(self, item: Hashable) -> int:
        """Return a slot for an item that has none; its count is 0."""
        if len(self.slots) >= self.room:
            self.purge()
        slot = self.slots[item] = len(self.slots)
        self.counts[slot] = self.weights[slot] = 0
        return slot

    def item(self, key: bytes, size: int, digest: bytes) -> Hashable:
        """Return what represents a key: see known_by."""
        return known_by(key, size, digest)

    def purge(self) -> None:
        """Make room for other items. The arrays and the table stay the same objects."""
        counts, weights = self.counts, self.weights
        median = sorted(counts[: len(self.slots)])[len(self.slots) // 2]
        self.error += median
        kept = [(item, counts[slot] - median, weights[slot]) for item, slot in self.slots.items()]
        self.slots.clear()
        self.near[:] = ZERO * NEAR
        for item, count, weight in kept:
            if count > 0:
                slot = self.slots[item] = len(self.slots)
                counts[slot], weights[slot] = count, weight

    def top(self, limit: int) -> list[FrequentItem]:
        """Return the items with the highest counts, in descending order. An item that is not among them, or not in the
        table at all, occurred at most `error` times more than the last."""
        items = [FrequentItem(item, self.counts[slot], self.weights[slot]) for item, slot in self.slots.items()]
        return sorted(items, key=lambda each: (-each.times, -each.weight, repr(each.item)))[:limit]

    def shed(self) -> None:
        """Free what is needed only to count more keys. The counts can still be merged into others, and shown."""
        self.near, self.texts, self.sizes = array("q"), bytearray(), array("q")

    def merge(self, other: SpaceSaving, name: Callable[[Hashable], Hashable] = lambda item: item) -> None:
        """Add the counts of `other`; `name` converts its items."""
        for item, slot in other.slots.items():
            self._put(name(item), other.counts[slot], other.weights[slot])
        self.total += other.total
        self.error += other.error


def known_by(key: bytes, size: int | None = None, digest: bytes = b"") -> bytes | LongKey:
    """Return what represents a key in a table. For a very large key, `key` is its beginning; pass the size and the
    digest of all of it (log.skim.key_digest)."""
    size = len(key) if size is None else size
    return key if size <= LONGEST else LongKey(key[:KEPT], size, digest or key_digest(key))
