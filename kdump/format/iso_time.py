"""Epoch milliseconds as ISO-8601."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone, tzinfo

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


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
    moment_text = moment.isoformat(timespec="milliseconds")
    return moment_text[:-6] + "Z" if moment_text.endswith("+00:00") and zone is timezone.utc else moment_text
