"""Formats epoch milliseconds for display."""

from __future__ import annotations

from collections.abc import Sequence

from kdump.format.iso_time import iso as iso

LAST = 253_402_300_799_999
"""The last timestamp of year 9999."""


def iso_many(times: Sequence[int]) -> list[str]:
    """Format timestamps in UTC as `iso` does, each minute once."""
    if not times or min(times) < 0 or max(times) > LAST:
        return [iso(moment) for moment in times]
    minutes: dict[int, str] = {}
    texts = []
    for moment in times:
        minute, rest = divmod(moment, 60_000)
        start = minutes.get(minute)
        if start is None:
            start = minutes[minute] = iso(minute * 60_000)[: -len("00.000Z")]
        texts.append(f"{start}{rest // 1000:02d}.{rest % 1000:03d}Z")
    return texts
