"""Formats epoch milliseconds for display."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone, tzinfo

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
LAST = 253_402_300_799_999
"""The last timestamp of year 9999."""


def iso(milliseconds: int | None, zone: tzinfo = timezone.utc) -> str:
    """Format a timestamp as ISO-8601 with milliseconds in `zone`. Timestamps outside the years 1 to 9999 remain
    numbers, as does -1, Kafka's "no timestamp"."""
    if milliseconds is None:
        return "-"
    if milliseconds == -1:
        return "-1"
    try:
        moment = (EPOCH + timedelta(milliseconds=milliseconds)).astimezone(zone)
    except (OverflowError, ValueError):
        return str(milliseconds)
    text = moment.isoformat(timespec="milliseconds")
    return text[:-6] + "Z" if text.endswith("+00:00") and zone is timezone.utc else text


def iso_many(times: Sequence[int]) -> list[str]:
    """Format timestamps in UTC as `iso` does, each minute once."""
    if not times or min(times) < 0 or max(times) > LAST:
        return [iso(moment) for moment in times]
    minutes: dict[int, str] = {}
    found = []
    for moment in times:
        minute, rest = divmod(moment, 60_000)
        text = minutes.get(minute)
        if text is None:
            text = minutes[minute] = iso(minute * 60_000)[: -len("00.000Z")]
        found.append(f"{text}{rest // 1000:02d}.{rest % 1000:03d}Z")
    return found
