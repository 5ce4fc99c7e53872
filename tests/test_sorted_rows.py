"""Sorting of more rows than are kept as they are."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from kdump.questions.bundle import sorted_rows
from kdump.questions.bundle.sorted_rows import SortedRows


@pytest.mark.parametrize("held", [1, 100, 5000, 1 << 22])
def test_rows_are_sorted(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_rows, "MAX_HELD", held)
    monkeypatch.setattr(sorted_rows, "PIECE_ROWS", 7)
    names = [*("a\udcff\n\t" + str(number) for number in range(150)), "", "\U0001f600", "z" * 300]
    random.Random(1).shuffle(names)
    rows = SortedRows()
    for name in names:
        rows.add(name, [name, None, 1 << 63])
    assert len(rows) == len(names)
    for _ in range(2):
        assert list(rows) == [(name, [name, None, 1 << 63]) for name in sorted(names)]


@pytest.mark.every_disk
def test_memory_does_not_grow_with_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_rows, "MAX_HELD", 1 << 18)
    tracemalloc.start()
    try:
        rows = SortedRows()
        for number in range(30_000):
            rows.add(str(number * 7919 % 30_011), ["x" * 100, number])
        assert sum(1 for _ in rows) == 30_000
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()
