"""Amounts and small charts in human-readable form."""

from __future__ import annotations

import pytest

from kdump.render.amounts import average, bar, duration_text, heights, per, share, spread_over


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1 s"),
        (1500, "1.5 s"),
        (60_000, "1 min"),
        (61_000, "1 min 1 s"),
        (3_600_000, "1 h"),
        (4_980_000, "1 h 23 min"),
        (172_800_000, "2 d"),
        (86_400_000 * 1102 + 9 * 3_600_000, "1,102 d 9 h"),
    ],
)
def test_durations(milliseconds: int, text: str) -> None:
    assert duration_text(milliseconds) == text


def test_rates_and_averages() -> None:
    assert per(5000, 2, lambda value: f"{value:g}") == "2500 records/s"
    assert per(1, 2, lambda value: f"{value:g}") == "43200 records a day"
    assert (average(7, 2), average(1_000_000, 3), average(1, 0)) == ("3.5", "333,333", "-")


def test_a_share_is_never_rounded_to_nothing_or_to_all() -> None:
    assert [share(*each) for each in ((0, 5), (1, 10_000), (1, 3), (9999, 10_000), (5, 5), (0, 0))] == [
        *("0 %", "<0.1 %", "33.3 %", ">99.9 %", "100 %", "0 %")
    ]


def test_bars_show_whatever_is_not_nothing() -> None:
    assert bar(0, 10, 20) == bar(1, 0, 20) == ""
    assert bar(1, 1_000_000, 20) == "▏"
    assert bar(10, 10, 20) == "█" * 20
    assert len(bar(5, 10, 20)) == 10
    assert heights([0, 1, 4, 8]) == " ▁▄█"
    assert heights([]) == ""


def test_time_is_spread_over_columns_of_one_width() -> None:
    moments = [(1000 * second, 1) for second in range(100)]
    first, width, counts = spread_over(moments, 1000, 30)
    assert (first, width, sum(counts)) == (0, 4000, 100)
    assert len(counts) <= 30
    assert set(counts) == {4}
