"""Formats durations for display."""

from __future__ import annotations

UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


def duration_text(milliseconds: int | None) -> str:
    """Format a duration in its two largest units: 37 d 4 h, 1 min 36 s, 250 ms. Returns "" for None. Negative durations
    (caused by clock skew) start with a minus sign."""
    if milliseconds is None:
        return ""
    sign, left = ("-" if milliseconds < 0 else ""), abs(milliseconds)
    if left < 1000:
        return f"{sign}{left} ms"
    for place, (size, unit) in enumerate(UNITS):
        if left >= size:
            text = f"{sign}{left // size} {unit}"
            if place + 1 < len(UNITS):
                smaller, name = UNITS[place + 1]
                rest = left % size // smaller
                text += f" {rest} {name}" if rest else ""
            return text
    return ""
