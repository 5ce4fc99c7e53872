"""Rows of integers, compared with a list of tuples; and the memory they take."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from kdump.core.integer_rows import IntegerRows
from tests.each_case import each_case

LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
DEFAULTS, NEAR = (-1, 0, -1, -1, 7), (-1, -1, 0, 2, 0)


def value(chosen: random.Random, kind: str, row: int) -> int:
    if kind == "extremes":
        return chosen.choice((LOWEST, HIGHEST, LOWEST + 1, HIGHEST - 1, -1, 0, 1, 7))
    if kind == "defaults":
        return chosen.choice((-1, 0, 7))
    if kind == "widths":
        return chosen.randrange(-1, 1 << chosen.randrange(1, 64))
    return (row << 30) + chosen.randrange(1000)


@each_case("kind", ["extremes", "defaults", "widths", "near"])
@each_case("count", [1, 5, 255, 256, 257, 1500])
def test_rows(kind: str, count: int) -> None:
    chosen, rows, expected = random.Random(f"{kind} {count}"), IntegerRows(DEFAULTS, NEAR), list[tuple[int, ...]]()
    for row in range(count):
        expected.append(DEFAULTS if chosen.random() < 0.1 else tuple(value(chosen, kind, row) for _ in DEFAULTS))
        rows.put(row, expected[row])
        again = chosen.randrange(row + 1)
        expected[again] = tuple(each if chosen.random() < 0.5 else value(chosen, kind, row) for each in expected[again])
        rows.put(again, expected[again])
        assert rows.get(again) == expected[again]
    assert len(rows) == count
    assert [rows.get(row) for row in range(count)] == expected


def test_a_difference_of_half_the_range() -> None:
    """Its code would be that of the default."""
    rows = IntegerRows((-1,), (-1,))
    values = [0, LOWEST, 5, LOWEST, -1, HIGHEST]
    for row, each in enumerate(values):
        rows.put(row, (each,))
    assert [rows.get(row) for row in range(len(values))] == [(each,) for each in values]


def test_rows_that_do_not_exist() -> None:
    rows = IntegerRows(DEFAULTS, NEAR)
    for row in (0, -1, 300):
        with pytest.raises(IndexError):
            rows.get(row)
    for row in (1, -1):
        with pytest.raises(IndexError):
            rows.put(row, DEFAULTS)
    with pytest.raises(IndexError):
        rows.put(0, DEFAULTS[1:])
    with pytest.raises(OverflowError):
        rows.put(0, (HIGHEST + 1, 0, 0, 0, 0))
    with pytest.raises(ValueError, match="earlier"):
        IntegerRows((0,), (0,))
    assert len(rows) == 0


def test_memory() -> None:
    """A column of defaults takes nothing, one of numbers near each other little."""
    tracemalloc.start()
    try:
        rows = IntegerRows(DEFAULTS, NEAR)
        for row in range(10_000):
            offset = row << 20
            rows.put(row, (offset, 0, offset + 3, -1, row % 100))
        assert tracemalloc.get_traced_memory()[0] / 10_000 <= 12
    finally:
        tracemalloc.stop()
