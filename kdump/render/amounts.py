"""Formats durations, rates, averages and sizes for display."""

from __future__ import annotations

from collections.abc import Callable


def duration(milliseconds: int) -> str:
    """Format a duration: 250 ms, 12.5 s, 1 h 23 min, 12 d 5 h."""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:g} s" if seconds == int(seconds) else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min" + (f" {rest} s" if rest else "")
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h" + (f" {minutes} min" if minutes else "")
    days, hours = divmod(hours, 24)
    return f"{days:,} d" + (f" {hours} h" if hours else "")


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


def size_text(count: int) -> str:
    """Format a number of bytes in the largest suitable unit: 563 bytes, 9.2 MiB."""
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{count} bytes" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
