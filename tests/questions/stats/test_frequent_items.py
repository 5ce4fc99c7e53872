"""Compares kdump.questions.stats.frequent_items with exact counts, and tests kdump.log.histograms."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kdump.log.histograms import LATE, MAX_BUCKETS, Histogram, class_of, late_classes, size_classes
from kdump.questions.stats.frequent_items import LongKey, SpaceSaving, known_by
from tests.conftest import seeded
from tests.each_case import each_case


def check(sketch: SpaceSaving, exact: Counter[int]) -> None:
    """Check the guarantees: no count is too high, none too low by more than the error, and the error is bounded."""
    total = sum(exact.values())
    assert sketch.total == total
    assert sketch.error <= 2 * total / sketch.room
    counted = {each.item: each.times for each in sketch.top(sketch.room)}
    for item, count in exact.items():
        assert count - sketch.error <= counted.get(item, 0) <= count
    assert len(sketch.slots) <= sketch.room


@each_case("shape", ["flat", "zipf", "rising", "blocks"])
@each_case("room", [4, 16, 64])
def test_against_exact_counts(shape: str, room: int) -> None:
    dice = seeded(shape)
    items = {
        "flat": [dice.randrange(300) for _ in range(5000)],
        "zipf": [int(dice.paretovariate(0.8)) % 1000 for _ in range(5000)],
        "rising": list(range(5000)),
        "blocks": [number // 50 for number in range(5000)],
    }[shape]
    sketch = SpaceSaving(room)
    for item in items:
        sketch.add(item)
    check(sketch, Counter(items))


def test_exact_while_there_is_room() -> None:
    sketch = SpaceSaving(100)
    items = [number % 100 for number in range(1234)]
    for item in items:
        sketch.add(item, 1, 10)
    assert sketch.error == 0
    assert {each.item: (each.times, each.weight) for each in sketch.top(100)} == {
        item: (count, 10 * count) for item, count in Counter(items).items()
    }


@given(st.lists(st.lists(st.integers(0, 40), max_size=80), max_size=5))
def test_merged(parts: list[list[int]]) -> None:
    merged = SpaceSaving(8)
    exact: Counter[int] = Counter()
    for part in parts:
        sketch = SpaceSaving(8)
        for item in part:
            sketch.add(item)
        merged.merge(pickle.loads(pickle.dumps(sketch)))  # as of another process
        exact.update(part)
    assert merged.total == sum(exact.values())
    counted = {each.item: each.times for each in merged.top(8)}
    for item, count in exact.items():
        assert count - merged.error <= counted.get(item, 0) <= count


def test_long_keys_are_known_by_a_digest() -> None:
    one, other = known_by(b"k" * 200 + b"a"), known_by(b"k" * 200 + b"b")
    assert isinstance(one, LongKey)
    assert one != other
    assert (one.size, len(one.start)) == (201, 64)
    assert known_by(b"short") == b"short"


def test_moments_widen_and_lose_nothing() -> None:
    moments = Histogram()
    dice = random.Random(3)
    exact = [dice.randrange(10**12) for _ in range(20_000)]
    for time in exact:
        moments.add(time, 1)
    found = [(start, count) for start, (count,) in moments]
    assert len(found) <= MAX_BUCKETS
    assert found == sorted(Counter(time // moments.width * moments.width for time in exact).items())
    other = Histogram()
    other.add(5, 2)
    other.merge(moments)
    assert sum(count for _, (count,) in other) == 20_002


def test_classes_join_each_other() -> None:
    from array import array

    sizes = size_classes(array("q", [1] * 34))
    assert sizes[0][:2] == (0, 0)
    assert all(one.last is not None and one.last + 1 == other.first for one, other in pairwise(sizes))
    assert sizes[-1].last is None
    for size in (0, 1, 2, 3, 4, 1023, 1024, 1 << 31, 1 << 40):
        each = sizes[class_of(size)]
        assert each.first <= size
        assert each.last is None or size <= each.last
    late = late_classes(array("q", [1] * 8))
    assert [each.last for each in late] == [*LATE, None]
