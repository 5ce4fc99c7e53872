"""The entries of a .txnindex, kept as the bytes that they are in the file: a segment may have a million."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from kdump.format.index import TXN_INDEX_ENTRY

LAST = Struct(">q")
AT_LAST = TXN_INDEX_ENTRY.positions["lastOffset"]


class PackedEntries:
    """Entries that fill a file from its start, 34 bytes each."""

    def __init__(self, data: bytes | bytearray = b"") -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data) // TXN_INDEX_ENTRY.size

    def __getitem__(self, number: int) -> tuple[int, dict[str, int]]:
        """Return the position of an entry in the file, and its values."""
        position = number * TXN_INDEX_ENTRY.size
        return position, TXN_INDEX_ENTRY.read(self.data[position : position + TXN_INDEX_ENTRY.size])._asdict()

    def __iter__(self) -> Iterator[tuple[int, dict[str, int]]]:
        return map(self.__getitem__, range(len(self)))

    def last_offset(self, number: int) -> int:
        """Return the lastOffset of an entry."""
        offset: int = LAST.unpack_from(self.data, number * TXN_INDEX_ENTRY.size + AT_LAST)[0]
        return offset

    def by_last_offset(self) -> range | list[int]:
        """Return the numbers of the entries in the order of lastOffset, which is that of the file if it is valid."""
        every = range(len(self))
        if all(self.last_offset(number - 1) <= self.last_offset(number) for number in every[1:]):
            return every
        return sorted(every, key=self.last_offset)
