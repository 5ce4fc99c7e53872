"""Sorts rows that may be more than fit into memory."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from heapq import merge
from typing import IO, Any

MAX_HELD = 4 << 20
"""Bytes of rows in memory; beyond that, they go to a temporary file."""
READ = 64 << 10
"""Bytes of each sorted part of the file that are read at once."""


class SortedRows:
    """Rows with names, sorted by name when they are iterated over, which can be done several times. `directory`: where
    there is room for a temporary file, which has no name there."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._file: IO[bytes] | None = None
        self._parts: list[tuple[int, int]] = []
        """Where the sorted parts of the file begin and end."""
        self._rows: list[tuple[str, str]] = []
        self._size = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, name: str, row: Any) -> None:
        """Add a row, an object of JSON's types. Raises OSError."""
        text = json.dumps(row, separators=(",", ":"))
        self._rows.append((name, text))
        self._count += 1
        self._size += len(name) + len(text)
        if self._size >= MAX_HELD:
            self._spill()

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._directory)  # noqa: SIM115
        start = self._file.seek(0, 2)
        self._rows.sort()
        self._file.writelines(f"{json.dumps(name)}\t{text}\n".encode() for name, text in self._rows)
        self._parts.append((start, self._file.tell()))
        self._rows, self._size = [], 0

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Yield names and rows. No row may be added meanwhile. Raises OSError."""
        self._rows.sort()
        for name, text in merge(self._rows, *map(self._part, self._parts)):
            yield name, json.loads(text)

    def _part(self, part: tuple[int, int]) -> Iterator[tuple[str, str]]:
        assert self._file is not None
        position, end = part
        left = b""
        while position < end:
            self._file.seek(position)
            data = self._file.read(min(READ, end - position))
            position += len(data)
            *lines, left = (left + data).split(b"\n")
            for line in lines:
                name, _, text = line.decode().partition("\t")
                yield json.loads(name), text

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
