"""Formats durations, rates, averages and sizes for display."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from kdump.format.size_text import size_text as size_text

UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


def duration_text(milliseconds: int | None) -> str:
    """Format a duration in its two largest units: 37 d 4 h, 1 min 36 s, 12.5 s, 250 ms. Returns "" for None. Negative
    durations (caused by clock skew) start with a minus sign."""
    if milliseconds is None:
        return ""
    sign, left = ("-" if milliseconds < 0 else ""), abs(milliseconds)
    if left < 1_000:
        return f"{sign}{left} ms"
    if left < 60_000:
        return f"{sign}{left // 100 / 10:g} s"
    (size, unit), (smaller, name) = next(pair for pair in pairwise(UNITS) if left >= pair[0][0])
    rest = left % size // smaller
    return f"{sign}{left // size:,} {unit}" + (f" {rest} {name}" if rest else "")


def per(count: int, seconds: float, show: Callable[[float], str], unit: str = " records") -> str:
    """Format a rate per second (1,234 records/s), or per day if it is below one per second."""
    rate = count / seconds
    return f"{show(rate)}{unit}/s" if rate >= 1 else f"{show(rate * 86_400)}{unit} a day"


def number(value: float) -> str:
    """Format a number: 1,234 or 12.3."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def average(total: int, count: int) -> str:
    """Format total / count like `number`; "-" if `count` is 0."""
    return number(total / count) if count else "-"
