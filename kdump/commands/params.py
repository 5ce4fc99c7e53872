"""What people type on the command line -> values: ranges, times, sizes, time zones."""

from __future__ import annotations

import re
import time
from datetime import datetime, timezone, tzinfo
from typing import TYPE_CHECKING, Any

import click

from kdump.log.select import Range

if TYPE_CHECKING:
    Param = click.ParamType[Any]
else:  # not every supported click has it generic
    Param = click.ParamType

UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
RELATIVE = re.compile(r"^-(\d+)(ms|s|m|h|d|w)$")
SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
SIZE = re.compile(r"^(\d+)\s*([kmg]?)(?:i?b)?$", re.IGNORECASE)


def _halves(text: str) -> tuple[str, str]:
    first, dots, last = text.partition("..")
    if not dots:
        last = first
    if not first and not last:
        raise ValueError("a range needs one end at least: N, A..B, A.. or ..B")
    return first, last


def _whole(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,19}", text):
        raise ValueError(text)
    return int(text)


class RangeParam(Param):
    """N, A..B, A.. or ..B, both ends included."""

    name = "A..B"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Range:
        if isinstance(value, Range):
            return value
        try:
            first, last = (_whole(half) if half else None for half in _halves(value))
        except ValueError:
            self.fail(f"{value!r} is no range: N, A..B, A.. or ..B", param, ctx)
        if (first or 0) < 0 or (last or 0) < 0:
            self.fail(f"{value!r} has a negative end", param, ctx)
        if first is not None and last is not None and first > last:
            self.fail(f"{value!r} ends before it begins", param, ctx)
        return Range(first, last)


class SizeParam(Param):
    """Bytes, with k, M or G for powers of 1024."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = SIZE.match(value)
        if not match or not int(match[1]):
            self.fail(f"{value!r} is no size: 1048576, 512k, 64M, 1G", param, ctx)
        return int(match[1]) * SIZES[match[2].lower()]


class ZoneParam(Param):
    """UTC, local, +02:00, or a name of the time zone database."""

    name = "ZONE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tzinfo:
        if isinstance(value, tzinfo):
            return value
        if value.upper() in ("UTC", "Z"):
            return timezone.utc
        if value == "local":
            local = datetime.now().astimezone().tzinfo
            assert local is not None
            return local
        if re.match(r"^[+-]\d\d:?\d\d$", value):
            offset = datetime.strptime(value, "%z").tzinfo
            assert offset is not None
            return offset
        from zoneinfo import ZoneInfo

        try:
            return ZoneInfo(value)
        except Exception:  # the database's own errors are of many kinds
            self.fail(f"{value!r} is no time zone: UTC, local, +02:00, Europe/Berlin", param, ctx)


def moment(text: str, zone: tzinfo, *, end: bool, now: int) -> int:
    """Epoch ms of ISO-8601 (in `zone` where it names none), of epoch ms, or of a time before `now` (-2h).

    A time that leaves out its smaller units means all of them: as an `end`, 2026-11-20 is the last ms of that day.
    Raises ValueError.
    """
    relative = RELATIVE.match(text)
    if relative:
        return now - int(relative[1]) * UNITS[relative[2]]
    if text == "now":
        return now
    if re.match(r"^-?\d+$", text):
        return int(text)
    try:
        parsed = datetime.fromisoformat(_whole_iso(text))
    except ValueError:
        raise ValueError(f"{text!r} is no time: 2026-11-20, 2026-11-20T10:11:12.345Z, epoch ms, or -2h") from None
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=zone)
    start = round(parsed.timestamp() * 1000)
    return start + _width(text) - 1 if end else start


def _whole_iso(text: str) -> str:
    """What datetime.fromisoformat of every supported Python reads: Z as an offset, milliseconds with three digits."""
    text = re.sub(r"[zZ]$", "+00:00", text.strip())
    text = re.sub(r"([+-]\d\d)$", r"\1:00", text) if "T" in text or " " in text else text
    text = re.sub(r"([+-]\d\d)(\d\d)$", r"\1:\2", text) if "T" in text or " " in text else text
    text = re.sub(r"([T ]\d\d)(?=$|[+-])", r"\1:00", text)
    return re.sub(r"\.(\d{1,9})", lambda match: "." + match[1][:6].ljust(6, "0"), text)


def _width(text: str) -> int:
    """Milliseconds that a time means as a whole, by its last unit."""
    clock = re.sub(r"([zZ]|[+-]\d\d:?\d\d)$", "", text.strip()[10:])
    if not clock:
        return UNITS["d"]
    if "." in clock:
        return 1
    return {0: UNITS["h"], 1: UNITS["m"], 2: UNITS["s"]}[clock.count(":")]


def time_range(text: str, zone: tzinfo) -> Range:
    """A..B of times, either end open, or one time, which means all of what it names. Raises click.UsageError."""
    now = round(time.time() * 1000)
    try:
        first, last = _halves(text)
        start = moment(first, zone, end=False, now=now) if first else None
        stop = moment(last, zone, end=True, now=now) if last else None
    except (ValueError, OverflowError) as error:
        raise click.UsageError(f"--time: {error}") from None
    if start is not None and stop is not None and start > stop:
        raise click.UsageError(f"--time: {text!r} ends before it begins")
    return Range(start, stop)
