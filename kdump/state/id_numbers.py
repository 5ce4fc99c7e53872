"""A number for each of many 64-bit IDs, in a few bytes."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from kdump.core.id_rows import IdRows


class IdNumbers:
    """Non-negative numbers by ID, such as the newest epoch of each producer: 14 to 21 bytes per ID, and those of the
    array's type (`typecode`)."""

    def __init__(self, typecode: str) -> None:
        self._rows = IdRows()
        self._numbers = array(typecode)

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, name: int) -> int:
        """Return the number of an ID, -1 for none."""
        row = self._rows.find(name)
        return -1 if row < 0 else self._numbers[row]

    def put(self, name: int, number: int) -> None:
        row = self._rows.add(name)
        if row == len(self._numbers):
            self._numbers.append(number)
        self._numbers[row] = number

    def items(self) -> Iterator[tuple[int, int]]:
        for row in self._rows:
            yield self._rows.id_of(row), self._numbers[row]
