"""Parameter types of the command line: ranges, times, sizes, time zones."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from datetime import timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, Any

import click

from kdump.command_line.command_run import print_error
from kdump.command_line.common_option import CommonOption
from kdump.format.count_text import parse_size
from kdump.format.number_range import Range
from kdump.format.numbers import LONG_MAX
from kdump.format.parse_time import ISO, RELATIVE, UNITS, parse_time
from kdump.query import option
from kdump.render.times import iso

if TYPE_CHECKING:
    from kdump.state.as_of import AsOf

    Param = click.ParamType[Any]
else:  # not generic in all supported releases of click
    Param = click.ParamType


def _halves(typed: str) -> tuple[str, str]:
    first, dots, last = typed.partition("..")
    if not dots:
        last = first
    if not first and not last:
        raise ValueError("a range needs at least one end: N, A..B, A.. or ..B")
    return first, last


def _whole(typed: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,19}", typed):
        raise ValueError(typed)
    return int(typed)


class RangeParam(Param):
    """A range N, A..B, A.. or ..B, inclusive."""

    name = "A..B"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Range:
        if isinstance(value, Range):
            return value
        try:
            first, last = (_whole(half) if half else None for half in _halves(value))
        except ValueError:
            self.fail(f"{value!r} is not a range; use N, A..B, A.. or ..B", param, ctx)
        if (first or 0) < 0 or (last or 0) < 0:
            self.fail(f"{value!r} has a negative end", param, ctx)
        if first is not None and last is not None and first > last:
            self.fail(f"{value!r} ends before it begins", param, ctx)
        return Range(first, last)


class SizeParam(Param):
    """A size in bytes; k, M and G are powers of 1024."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        size = parse_size(value)
        if size is None or not 0 < size <= LONG_MAX:
            self.fail(f"{value!r} is not a size; use 1048576, 512k, 64M or 1G", param, ctx)
        return size


class ZoneParam(Param):
    """A time zone: UTC, local, +02:00, or a name in the time zone database."""

    name = "ZONE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tzinfo:
        if isinstance(value, tzinfo):
            return value
        if value.upper() in ("UTC", "Z"):
            return timezone.utc
        from zoneinfo import ZoneInfo

        try:
            if value == "local":
                return _local()
            match = re.fullmatch(r"([+-])(\d\d):?(\d\d)", value)
            if match:
                offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
                return timezone(-offset if match[1] == "-" else offset)
            return ZoneInfo(value)
        except Exception:  # the database raises many kinds of exceptions
            self.fail(f"{value!r} is not a time zone; use UTC, local, +02:00 or Europe/Berlin", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from zoneinfo import available_timezones

        from click.shell_completion import CompletionItem

        names = ["UTC", "local", *sorted(available_timezones() - {"UTC"})]
        return [CompletionItem(name) for name in names if name.lower().startswith(incomplete.lower())]


def _local() -> tzinfo:
    """Return this machine's time zone, with daylight saving time: $TZ, or /etc/localtime."""
    from zoneinfo import ZoneInfo

    if os.environ.get("TZ"):
        return ZoneInfo(os.environ["TZ"].lstrip(":"))
    with open("/etc/localtime", "rb") as file:
        return ZoneInfo.from_file(file, "local")


def _range_end(typed: str, zone: tzinfo, now: int) -> int:
    """Parse the end of a range, inclusive: a whole minute, hour or day is a moment, which ends the range before it.
    Raises ValueError."""
    parts = ISO.match(typed.strip())
    is_moment = parts is not None and not parts["fraction"] and not int(parts["second"] or 0)
    return parse_time(typed, zone, end=not is_moment, now=now) - is_moment


TIME_HELP = (
    "Show only records with timestamps from A to B: ISO-8601, epoch ms, -2h. A whole minute, hour or day B is itself "
    "excluded: 2026-11-28T14:00..2026-11-28T15:00 is one hour. A single time, such as 2026-11-28, is all of it."
)


def time_range(typed: str, zone: tzinfo) -> Range:
    """Parse a range of times (see TIME_HELP). Raises click.UsageError."""
    now = round(time.time() * 1000)
    if RELATIVE.match(typed):
        typed += ".."  # since then, not at exactly that millisecond
    try:
        first, last = _halves(typed)
        start = parse_time(first, zone, end=False, now=now) if first else None
        is_one = first == last
        stop = (parse_time(last, zone, end=True, now=now) if is_one else _range_end(last, zone, now)) if last else None
    except (ValueError, OverflowError) as error:
        raise click.UsageError(f"--time: {error}") from None
    if start is not None and stop is not None and start > stop:
        raise click.UsageError(f"--time: {typed!r} ends before it begins")
    return Range(start, stop)


MILLISECONDS = re.compile(r"[0-9]{13,19}")
"""A number with this many digits is a time: no log has that many records."""
TZ: dict[str, Any] = {
    "type": ZoneParam(),
    "default": "UTC",
    "help": "Show times in this time zone; times without a zone that you type are in it.  [UTC]",
}


def zone_option() -> Any:
    """Return the field of --tz, for a command without the other options of output."""
    return option("--tz", cls=CommonOption, **TZ)


class DurationParam(Param):
    """A duration (15m, 900s, 2h), in milliseconds."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"([0-9]{1,12})(ms|s|m|h|d|w)", value)
        if not match:
            self.fail(f"{value!r} is not a duration; use 900s, 15m, 2h or 1d", param, ctx)
        return int(match[1]) * UNITS[match[2]]


class SecondsParam(DurationParam):
    """A duration, in seconds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if isinstance(value, float) else super().convert(value, param, ctx) / 1000


def parse_moment(typed: str, zone: tzinfo, *, end: bool) -> int:
    """Parse epoch ms, of 13 digits or more, or a time; return epoch ms. Raises ValueError, OverflowError."""
    if MILLISECONDS.fullmatch(typed):
        return int(typed)
    return parse_time(typed, zone, end=end, now=round(time.time() * 1000))


def parse_now(typed: str | None, zone: tzinfo) -> int | None:
    """Parse --now: return epoch ms and print the time on stderr; None for the current time. Raises click.UsageError."""
    if typed is None:
        return None
    try:
        now_ms = parse_moment(typed, zone, end=False)
    except (ValueError, OverflowError) as error:
        raise click.UsageError(f"--now: {error}") from None
    print_error(f"ages as of {iso(now_ms, zone)}")
    return now_ms


def parse_as_of(typed: str | None, zone: tzinfo) -> AsOf:
    """Parse --as-of: up to 12 digits are an offset, 13 or more epoch ms; else a time, inclusive to the ms. Prints it on
    stderr. Raises click.UsageError."""
    from kdump.state.as_of import AsOf  # not needed by ls

    if typed is None:
        return AsOf()
    if re.fullmatch(r"[0-9]{1,12}", typed):
        print_error(f"as of offset {int(typed)}")
        return AsOf(offset=int(typed))
    try:
        moment = parse_moment(typed, zone, end=True)
    except (ValueError, OverflowError) as error:
        raise click.UsageError(f"--as-of: not an offset, and {error}") from None
    print_error(f"as of {iso(moment, zone)}")
    return AsOf(time=moment)


def fail_on_option(severities: tuple[str, ...]) -> Any:
    """Return the field of --fail-on."""
    return option(
        "--fail-on",
        type=click.Choice(severities),
        default="error",
        help="Exit with status 1 for findings of this severity or higher.  [error]",
    )


def pair(option: str, typed: str) -> tuple[str, str]:
    """Split NAME=VALUE; the value may contain =. Raises click.UsageError."""
    name, equals, value = typed.partition("=")
    if not equals or not name:
        raise click.UsageError(f"{option}: {typed!r} is not NAME=VALUE")
    return name, value


def read_once(paths: Iterable[str]) -> None:
    """Raise click.UsageError if standard input is given twice."""
    if [*paths].count("-") > 1:
        raise click.UsageError("standard input (-) can be given only once")
