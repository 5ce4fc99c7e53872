"""Parses times as users type them: ISO-8601, epoch milliseconds, or a time before now."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo

UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
"""Milliseconds of a unit of time."""
RELATIVE = re.compile(r"^-([0-9]{1,12})(ms|s|m|h|d|w)$")


def parse_time(typed: str, zone: tzinfo, *, end: bool, now: int) -> int:
    """Parse a time into epoch ms: ISO-8601 (in `zone` if it has no zone), epoch ms, or a time before `now` (-2h).

    A time without smaller units means the whole period: as an `end`, 2026-11-20 is the last millisecond of that day.
    Raises ValueError."""
    relative = RELATIVE.match(typed)
    if relative:
        return now - int(relative[1]) * UNITS[relative[2]]
    if typed == "now":
        return now
    # A number of four or eight digits looks like a year or a date, so it is not treated as a time in January 1970.
    if re.fullmatch(r"-?[0-9]{1,19}", typed) and len(typed) not in (4, 8):
        return int(typed)
    match = ISO.match(typed.strip())
    if not match:
        raise ValueError(f"{typed!r} is not a time; use 2026-11-20, 2026-11-20T10:11:12.345Z, epoch ms, or -2h")
    try:
        *fields, fraction = (match[name] for name in ("date", "hour", "minute", "second", "fraction"))
        start = datetime.fromisoformat(fields[0])
        hour, minute, second = (int(field or 0) for field in fields[1:])
        start = start.replace(hour=hour, minute=minute, second=second, tzinfo=_zone_of(match["zone"]) or zone)
        milliseconds = int((fraction or "0")[:3].ljust(3, "0"))
        if not end:
            return round(start.timestamp() * 1000) + milliseconds
        if fraction:
            return round(start.timestamp() * 1000) + milliseconds
        # Add the unit in local time, because a day may have 23 or 25 hours.
        stop = start + PARTS[sum(field is not None for field in fields)]
        return round(stop.timestamp() * 1000) - 1
    except ValueError as error:
        raise ValueError(f"{typed!r} is not a time: {error}") from None


ISO = re.compile(
    r"^(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ](?P<hour>[0-9]{2})(?::(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?)?)?"
    r" ?(?P<zone>[zZ]|[+-][0-9]{2}(?::?[0-9]{2})?)?)?$"
)
PARTS = {1: timedelta(days=1), 2: timedelta(hours=1), 3: timedelta(minutes=1), 4: timedelta(seconds=1)}
"""Length of the period that a time means, by how many of date, hour, minute and second it contains."""


def _zone_of(name: str | None) -> tzinfo | None:
    if not name:
        return None
    if name in "zZ":
        return timezone.utc
    offset = timedelta(hours=int(name[1:3]), minutes=int(name[3:].lstrip(":") or 0))
    return timezone(-offset if name[0] == "-" else offset)
