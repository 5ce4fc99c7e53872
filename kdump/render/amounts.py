"""Formats durations, rates, averages and sizes for display, and draws small text charts: bars, and a line of bars over
time."""

from __future__ import annotations

from collections.abc import Callable

from kdump.format.count_text import duration_text as duration_text
from kdump.format.count_text import size_text as size_text

EIGHTHS = " ▏▎▍▌▋▊▉█"
HEIGHTS = "▁▂▃▄▅▆▇█"


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


def bar(part: int, whole: int, width: int) -> str:
    """Return a bar of at most `width` columns; any nonzero part is visible."""
    if part <= 0 or whole <= 0:
        return ""
    eighths = max(1, round(8 * width * part / whole))
    full, rest = divmod(eighths, 8)
    return "█" * full + (EIGHTHS[rest] if rest else "")


def heights(counts: list[int]) -> str:
    """Return one block character per number, scaled to the largest; a blank for 0."""
    highest = max(counts, default=0)
    return "".join(HEIGHTS[-(-count * len(HEIGHTS) // highest) - 1] if count else " " for count in counts)


def share(part: int, whole: int) -> str:
    """Return a percentage that shows 0 % only for 0, and 100 % only if nothing is missing."""
    if not part or not whole:
        return "0 %"
    percent = 100 * part / whole
    if percent < 0.1:
        return "<0.1 %"
    return ">99.9 %" if part < whole and percent > 99.9 else f"{percent:.1f} %" if percent < 100 else "100 %"


def spread_over(moments: list[tuple[int, int]], bucket: int, max_buckets: int) -> tuple[int, int, list[int]]:
    """Merge counts by time into at most `max_buckets` columns of equal width. Returns the start of the first column
    (epoch ms), the width in ms, and the counts."""
    first, last = moments[0][0], moments[-1][0]
    buckets = (last - first) // bucket + 1
    width = -(-buckets // max_buckets) * bucket
    counts = [0] * ((last - first) // width + 1)
    for start, count in moments:
        counts[(start - first) // width] += count
    return first, width, counts
