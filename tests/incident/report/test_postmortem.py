"""Checks that what a report sums up while reading (cells, buckets, marks) is complete, and stays small."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from kdump.check.rules.bytes import CRC_MISMATCH
from kdump.incident.report.facts import MAX_MARKS, FindingRanges, by_time
from kdump.incident.report.html.throughput_charts import buckets_of, eras, main_part
from kdump.incident.report.segment_strip import DAMAGED, CellContent, SegmentStrip, coarser
from kdump.log.histograms import Histogram, doubling
from kdump.log.paths import Target
from tests.conftest import seeded

LOOKS = [
    CellContent("none"),
    CellContent("zstd", 1),
    CellContent("lz4", 2, (2, 0)),
    CellContent(DAMAGED),
    CellContent("junk"),
]
AT = Target("t-0/0.log", None, "t", 0, 0, "disk")


@settings(max_examples=60, deadline=None)
@given(some.lists(some.tuples(some.integers(1, 900), some.integers(0, 4), some.integers(1, 5))), some.booleans())
def test_cells_cover_the_file_however_they_come(runs: list[tuple[int, int, int]], is_known: bool) -> None:
    """Batches added one by one, and equal ones added together, give the same cells; no batch is lost."""
    total = sum(size * count for size, _, count in runs)
    one, many = SegmentStrip(total if is_known else None, 16), SegmentStrip(total if is_known else None, 16)
    position = offset = 0
    for size, number, count in runs:
        starts = [position + size * i for i in range(count)]
        firsts = [offset + 10 * i for i in range(count)]
        for start, first in zip(starts, firsts):
            one.add(start, start + size, LOOKS[number], first, first + 9, 1, 7)
        position, offset = position + size * count, offset + 10 * count
        many.add_many(LOOKS[number], starts, position, firsts, offset - 1, [7] * count)
    for strip in (one, many):
        cells, at = strip.cells(), 0
        assert len(cells) <= 16
        for cell in cells:
            assert cell.start == at < cell.end
            at = cell.end
        assert at == total
        assert sum(cell.records for cell in cells) == 7 * sum(count for _, _, count in runs)
        assert sum(cell.batches for cell in cells) == sum(count for _, _, count in runs)
        few = coarser(cells, 3)
        assert len(few) <= 3
        damaged = any(LOOKS[number].codec in (DAMAGED, "junk") for _, number, _ in runs)
        assert any(cell.look.codec in (DAMAGED, "junk") for cell in few) == damaged
    assert [(cell.start, cell.end, cell.look) for cell in one.cells()] == [
        (cell.start, cell.end, cell.look) for cell in many.cells()
    ]


def test_fourteen_bytes_of_damage_in_a_gigabyte_are_seen() -> None:
    strip = SegmentStrip(1 << 30)
    for number in range(1 << 14):
        start = number << 16
        strip.add(start, start + 65_522, LOOKS[1], number, number, 1, 1)
        strip.add(start + 65_522, start + 65_536, LOOKS[4 if number == 5000 else 1])
    (hole,) = (cell for cell in coarser(strip.cells(), 40) if cell.look.codec == "junk")
    assert hole.start <= 5000 << 16 < hole.end


@settings(max_examples=60, deadline=None)
@given(some.lists(some.tuples(some.integers(0, 1 << 62), some.integers(0, 5000), some.integers(0, 99))))
def test_buckets_lose_nothing(rows: list[tuple[int, int, int]]) -> None:
    buckets = Histogram(doubling, 8)
    for first, span, amount in rows:
        buckets.spread(first, first + span, amount, amount // 3)
    found_in = buckets_of(buckets)
    assert len(found_in) <= 8
    assert sum(each.bytes for each in found_in) == sum(amount for _, _, amount in rows)
    assert sum(each.records for each in found_in) == sum(amount // 3 for _, _, amount in rows)
    other = Histogram(doubling, 8)
    other.merge(buckets)
    assert buckets_of(other) == found_in


def test_one_time_that_is_far_off_makes_no_bucket_wider() -> None:
    buckets = by_time()
    for number in range(300):
        buckets.add(1_700_000_000_000 + 1000 * number, 10, 5)
    buckets.add(4_102_444_800_000, 10, 1)
    assert buckets.width == 1000
    kept, far = main_part(buckets_of(buckets))
    assert (len(kept), len(far), far[0].records) == (300, 1, 1)


def test_times_with_long_nothing_between_are_told_apart() -> None:
    buckets = by_time()
    for day in (0, 400, 401, 900):
        for second in range(60):
            buckets.add(day * 86_400_000 + 1000 * second, 1, 1)
    assert [len(era) for era in eras(buckets_of(buckets))] == [60, 120, 60]
    assert [len(era) for era in eras(buckets_of(buckets)[:60])] == [60]


@pytest.mark.parametrize("seed", range(3))
def test_marks_stay_few_and_count_all(seed: int) -> None:
    dice, marks = seeded(seed), FindingRanges()
    places = sorted(dice.randrange(1 << 40) for _ in range(3000))
    for position in places:
        severity = dice.choice(("error", "warning"))
        marks.add(CRC_MISMATCH.finding(AT, message="", position=position, size=61, severity=severity))
    told = list(marks)
    assert len(told) <= 2 * MAX_MARKS
    assert sum(mark.findings for mark in told) == 3000
    assert all(any(mark.start <= position < mark.end for mark in told) for position in places)
