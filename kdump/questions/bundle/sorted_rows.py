"""Sorts rows that may be more than fit into memory as they are: most of them are kept compressed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from heapq import merge
from itertools import islice
from typing import Any

from kdump.format.codec.source import library

STRUCT = "SortedRows"
MAX_HELD = 4 << 20
"""Bytes of rows that are not compressed."""
PIECE_ROWS = 500
"""Number of rows that are compressed and expanded together."""
LEVEL = 1
"""zstd's fastest level: it leaves an eighth of such rows."""


class SortedRows:
    """Rows with names, sorted by name when they are iterated over, which can be done several times."""

    def __init__(self) -> None:
        self._parts: list[list[bytes]] = []
        """Sorted parts, as compressed pieces."""
        self._rows: list[tuple[str, str]] = []
        self._size = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, name: str, row: Any) -> None:
        """Add a row, an object of JSON's types."""
        line = json.dumps(row, separators=(",", ":"))
        self._rows.append((name, line))
        self._count += 1
        self._size += len(name) + len(line)
        if self._size >= MAX_HELD:
            self._compress()

    def _compress(self) -> None:
        compress = library("zstandard", "zstandard", STRUCT).ZstdCompressor(level=LEVEL).compress
        rows = iter(sorted(self._rows))
        self._rows, self._size = [], 0
        pieces = []
        while lines := [f"{json.dumps(name)}\t{line}" for name, line in islice(rows, PIECE_ROWS)]:
            pieces.append(compress("\n".join(lines).encode()))
        self._parts.append(pieces)

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Yield names and rows. No row may be added meanwhile."""
        self._rows.sort()
        for name, line in merge(self._rows, *map(_rows_of, self._parts)):
            yield name, json.loads(line)


def _rows_of(pieces: list[bytes]) -> Iterator[tuple[str, str]]:
    decompress = library("zstandard", "zstandard", STRUCT).ZstdDecompressor().decompress
    for piece in pieces:
        for line in decompress(piece).decode().split("\n"):
            name, _, text = line.partition("\t")
            yield json.loads(name), text
