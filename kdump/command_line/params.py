"""Parameter types of the command line: ranges, times, sizes, time zones."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kdump.command_line.typed_options import CommandOptions, option
from kdump.format.numbers import LONG_MAX
from kdump.io.run import DEFAULT_MAX_DECOMPRESSED, Limits, Run
from kdump.log.selection import Range

if TYPE_CHECKING:
    Param = click.ParamType[Any]
else:  # not generic in all supported releases of click
    Param = click.ParamType

F = TypeVar("F", bound=Callable[..., Any])
UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
RELATIVE = re.compile(r"^-([0-9]{1,12})(ms|s|m|h|d|w)$")
SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
SIZE = re.compile(r"^([0-9]{1,18})\s*([kmg]?)(?:i?b)?$", re.IGNORECASE)


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
        match = SIZE.match(value)
        size = int(match[1]) * SIZES[match[2].lower()] if match else 0
        if not 0 < size <= LONG_MAX:
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


def parse_time(typed: str, zone: tzinfo, *, end: bool, now: int) -> int:
    """Parse a time into epoch ms: ISO-8601 (in `zone` if it has no zone), epoch ms, or a time before `now` (-2h).

    A time without smaller units means the whole period: as an `end`, 2026-11-20 is the last millisecond of that day.
    Raises ValueError.
    """
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


OLD_TRANSACTION = "Treat transactions open for longer than this as old.  [15m]"


def timeout_option(help_text: str = "Warn about transactions open for longer than this.  [15m]") -> Any:
    """Return the field of --transaction-timeout, in milliseconds."""
    return option("--transaction-timeout", type=DurationParam(), default="15m", metavar="TIME", help=help_text)


def message_size_option() -> Any:
    """Return the field of --max-message-bytes."""
    about = "Warn about batches larger than this.  [the topic's max.message.bytes, if known]"
    return option("--max-message-bytes", type=SizeParam(), help=about)


def jobs_option(help_text: str) -> Any:
    """Return the field of --jobs; `help_text` begins its help text."""
    about = f"{help_text} on this many CPU cores.  [all, at most 4; 1 for small inputs]"
    return option("--jobs", type=click.IntRange(min=1), help=about)


def fail_on_option(severities: tuple[str, ...]) -> Any:
    """Return the field of --fail-on."""
    return option(
        "--fail-on",
        type=click.Choice(severities),
        default="error",
        help="Exit with status 1 for findings of this severity or higher.  [error]",
    )


@dataclass(frozen=True)
class LimitOptions(CommandOptions):
    """Which batch lengths are accepted, and how much of a batch is decompressed, in bytes."""

    max_batch_size: int | None = option(
        "--max-batch-size", type=SizeParam(), help="Treat batches longer than this as damaged."
    )
    max_decompressed_size: int = option(
        "--max-decompressed-size",
        type=SizeParam(),
        default=DEFAULT_MAX_DECOMPRESSED,
        help="Decompress at most this much of each batch.  [256M]",
    )

    @property
    def limits(self) -> Limits:
        return Limits(self.max_batch_size, self.max_decompressed_size)

    def run(self, **more: Any) -> Run:
        """Return a run with these limits. `more`: other fields of Run."""
        return Run(self.limits, **more)


def pair(option: str, typed: str, *, last: bool = False) -> tuple[str, str]:
    """Split NAME=VALUE; with `last`, the name may contain =, otherwise the value may. Raises click.UsageError."""
    name, equals, value = typed.rpartition("=") if last else typed.partition("=")
    if not equals or not name:
        raise click.UsageError(f"{option}: {typed!r} is not NAME=VALUE")
    return name, value


def read_once(paths: tuple[str, ...]) -> None:
    """Raise click.UsageError if standard input is given twice."""
    if paths.count("-") > 1:
        raise click.UsageError("standard input (-) can be given only once")
