"""Sorting of more rows than are kept as they are."""

from __future__ import annotations

import random

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
