"""The .index as a broker uses it: mapped unchecked, with as many entries as its size allows, and binary search.

Source: org.apache.kafka.storage.internals.log.AbstractIndex and OffsetIndex."""

from __future__ import annotations

from kdump.format.index import INDEX_ENTRY
from kdump.io import file_system
from kdump.log.live_files import open_target
from kdump.log.offset_index_lookup import index_size
from kdump.log.paths import seen_file

WARM = 8192 // INDEX_ENTRY.size
"""Number of entries at the end that are searched first (AbstractIndex.warmEntries)."""


class OffsetIndex:
    """An offset index in memory. One that is missing or newly created has no entries."""

    def __init__(self, base: int, data: bytes = b"") -> None:
        self.base, self.data = base, data
        self.entries = len(data) // INDEX_ENTRY.size

    def entry(self, number: int) -> tuple[int, int]:
        """Return offset and byte position of an entry."""
        relative, position = INDEX_ENTRY.struct.unpack_from(self.data, number * INDEX_ENTRY.size)
        return self.base + relative, position

    @property
    def last_offset(self) -> int:
        return self.entry(self.entries - 1)[0] if self.entries else self.base

    def lookup(self, target: int) -> tuple[int, int]:
        """Return the last entry whose offset is at or below `target`; (base, 0) if there is none."""
        if not self.entries:
            return self.base, 0
        first_hot = max(0, self.entries - 1 - WARM)
        if self.entry(first_hot)[0] < target:
            return self.entry(self._search(target, first_hot, self.entries - 1))
        if self.entry(0)[0] > target:
            return self.base, 0
        return self.entry(self._search(target, 0, first_hot))

    def _search(self, target: int, low: int, high: int) -> int:
        while low < high:
            middle = (low + high + 1) // 2
            offset = self.entry(middle)[0]
            if offset == target:
                return middle
            low, high = (low, middle - 1) if offset > target else (middle, high)
        return low


def read_index(path: str, base: int) -> OffsetIndex:
    """Read the index at `path`; it has no entries if there is no file. Raises SourceError."""
    if not file_system.isfile(path):
        return OffsetIndex(base)
    source = open_target(seen_file(path))
    try:
        return OffsetIndex(base, source.read_at(0, index_size(path, source)))
    finally:
        source.close()
