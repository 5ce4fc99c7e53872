"""Hashes of records that are not in a bundle (docs/bundle.md). Checked when they are read: they come from another
host."""

from __future__ import annotations

import sys
from array import array

from kdump.format.container import ContainerReader, ContainerWriter
from kdump.format.errors import DecodeError
from kdump.io.bundle.index import KnownHashes
from kdump.io.bundle.rows import Located, RowsReader, RowsWriter, located_of
from kdump.io.hash_key import HASH_SIZE, RecordHash

STRUCT = "RecordHashes"
MAX_RECORDS = 1 << 16
"""Records after which a frame ends: with a batch of 2^19 more, it still has room."""


def _little(numbers: array[int]) -> bytes:
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()


class HashesWriter:
    """Writes the hashes of a segment's records, batch by batch. A frame has the number of batches (INT32), then, each
    for all of them, the positions (INT64), the numbers of records (INT32), the offset deltas (INT32) and the hashes."""

    def __init__(self, container: ContainerWriter, key: str) -> None:
        self.container = container
        self.key = key
        self._frames = RowsWriter(container)
        self._begin()

    def _begin(self) -> None:
        self._positions, self._counts, self._deltas = array("q"), array("i"), array("i")
        self._hashes = bytearray()

    def add(self, position: int, deltas: list[int], hashes: list[bytes]) -> None:
        """Add a batch."""
        self._positions.append(position)
        self._counts.append(len(deltas))
        self._deltas.extend(deltas)
        for record_hash in hashes:
            self._hashes += record_hash
        if len(self._deltas) >= MAX_RECORDS:
            self._write()

    def _write(self) -> None:
        if self._positions:
            parts = (array("i", [len(self._positions)]), self._positions, self._counts, self._deltas)
            data = b"".join(map(_little, parts)) + self._hashes
            self._frames.add(Located(self._positions[0], self.container.add(data)))
        self._begin()

    def end(self) -> KnownHashes:
        """Write what is left, and return what the index has to have."""
        self._write()
        return KnownHashes(self.key, self._frames.end())


class StoredHashes:
    """The hashes of a segment's records. Holds those of one frame at a time."""

    def __init__(self, container: ContainerReader, known_hashes: KnownHashes) -> None:
        self._container = container
        self._key = known_hashes.key
        self._frames: RowsReader[Located] = RowsReader(container, known_hashes.frames, located_of)
        self._held: Located | None = None
        self._batches: dict[int, tuple[int, int]] = {}
        self._deltas = array("i")
        self._hashes = b""

    def of_batch(self, position: int) -> list[tuple[int, RecordHash]] | None:
        """Return offset delta and hash of each record of the batch at a position; None if there are none. Raises
        DecodeError."""
        located = self._frames.find(position)
        if located is None:
            return None
        if located != self._held:
            self._read(located)
        hashes = self._batches.get(position)
        if hashes is None:
            return None
        return [
            (self._deltas[row], RecordHash(self._key, self._hashes[row * HASH_SIZE : (row + 1) * HASH_SIZE]))
            for row in range(*hashes)
        ]

    def _read(self, located: Located) -> None:
        data = self._container.read(located.frame)
        at = 0

        def column(kind: str, count: int) -> array[int]:
            nonlocal at
            numbers = array(kind)
            size = count * numbers.itemsize
            if count < 0 or at + size > len(data):
                raise DecodeError(STRUCT, "", at, f"{count} numbers in a frame of {len(data)} bytes")
            numbers.frombytes(data[at : at + size])
            if sys.byteorder == "big":
                numbers.byteswap()
            at += size
            return numbers

        [batches] = column("i", 1)
        positions, counts = column("q", batches), column("i", batches)
        if min(counts, default=0) < 0:
            raise DecodeError(STRUCT, "", at, "a negative number of records")
        self._deltas = column("i", sum(counts))
        self._hashes = data[at:]
        if len(self._hashes) != HASH_SIZE * len(self._deltas):
            raise DecodeError(STRUCT, "", at, f"{len(self._hashes)} bytes of hashes for {len(self._deltas)} records")
        self._batches, start = {}, 0
        for position, count in zip(positions, counts):
            self._batches[position] = (start, start + count)
            start += count
        self._held = located
