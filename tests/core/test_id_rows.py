"""Row numbers by ID, compared with Python's own ordered dictionary; and the memory they take."""

from __future__ import annotations

import random
import tracemalloc
from collections import OrderedDict

from kdump.core.id_rows import IdRows
from tests.each_case import each_case


def numbers(kind: str, count: int) -> list[int]:
    chosen = random.Random(kind)
    return {
        "consecutive": [*range(count)],
        "thousands": [1000 * i for i in range(count)],
        "negative": [-i for i in range(count)],
        "any": [chosen.randrange(-(1 << 63), 1 << 63) for _ in range(count)],
        "extremes": [-(1 << 63), (1 << 63) - 1, 0, -1, 1],
        "high": [i << 40 for i in range(count)],
    }[kind]


@each_case("kind", ["consecutive", "thousands", "negative", "any", "extremes", "high"])
def test_rows(kind: str) -> None:
    rows, every = IdRows(), numbers(kind, 3000)
    assert [rows.add(each) for each in every] == [*range(len(rows))] == [*rows]
    assert [rows.find(each) for each in every] == [*rows]
    assert [rows.add(each) for each in every] == [*rows]
    assert [rows.id_of(row) for row in rows] == every
    assert rows.find(123456789123456789) == -1


@each_case("most", [1, 2, 100, 700])
def test_ages(most: int) -> None:
    chosen, known, rows = random.Random(most), OrderedDict[int, int](), IdRows(by_age=True)
    for _ in range(5000):
        number = chosen.randrange(2 * most + 5) * 64
        if number in known:
            known.move_to_end(number)
            assert rows.add(number) == known[number]
        elif len(known) < most:
            known[number] = rows.add(number)
        else:
            gone, row = known.popitem(last=False)
            assert rows.replace_oldest(number) == row
            assert rows.find(gone) == -1
            known[number] = row
        assert rows.find(number) == known[number]
    assert [(rows.id_of(row), row) for row in rows] == [*known.items()]
    assert len(rows) == most


@each_case("by_age, least", [(False, 21), (True, 30)])
def test_memory(by_age: bool, least: int) -> None:
    """Just after the slots have doubled, they take most."""
    rows = IdRows(by_age)
    for count in (5000, 6145, 10_000, 12_289):
        tracemalloc.start()
        rows = IdRows(by_age)
        for number in range(count):
            rows.add(number)
        used, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert used <= least * count + 4096
