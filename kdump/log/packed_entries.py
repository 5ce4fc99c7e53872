"""The entries of a .txnindex in a few bytes each: a segment may have a million."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kdump.core.integer_rows import IntegerRows
from kdump.format.index import TXN_INDEX_ENTRY

NAMES = tuple(TXN_INDEX_ENTRY.positions)
LAST, PRODUCER = NAMES.index("lastOffset"), NAMES.index("producerId")
NEAR = {"lastOffset": "firstOffset", "lastStableOffset": "lastOffset"}


class PackedEntries:
    """Entries that fill a file from its start."""

    def __init__(self) -> None:
        self._rows = IntegerRows([0] * len(NAMES), [NAMES.index(NEAR[name]) if name in NEAR else -1 for name in NAMES])
        self._ascends = True
        self._latest = -(1 << 63)

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, values: Sequence[int]) -> None:
        """Add the values of the next entry, in the order of NAMES."""
        self._ascends = self._ascends and values[LAST] >= self._latest
        self._latest = values[LAST]
        self._rows.put(len(self._rows), values)

    def __getitem__(self, number: int) -> tuple[int, dict[str, int]]:
        """Return the position of an entry in the file, and its values."""
        return number * TXN_INDEX_ENTRY.size, dict(zip(NAMES, self._rows.get(number)))

    def __iter__(self) -> Iterator[tuple[int, dict[str, int]]]:
        return map(self.__getitem__, range(len(self)))

    def last_offset(self, number: int) -> int:
        """Return the lastOffset of an entry."""
        return self._rows.get(number)[LAST]

    def marker_of(self, number: int) -> tuple[int, int]:
        """Return the offset and the producer ID of the marker of an entry."""
        values = self._rows.get(number)
        return values[LAST], values[PRODUCER]

    def by_last_offset(self) -> range | list[int]:
        """Return the numbers of the entries in the order of lastOffset, which is that of the file if it is valid."""
        every = range(len(self))
        return every if self._ascends else sorted(every, key=self.last_offset)
