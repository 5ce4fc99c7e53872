"""What people type: times, ranges, sizes, zones, rates."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import click
import pytest

from kdump.command_line.params import RangeParam, SizeParam, ZoneParam, time_range
from kdump.command_line.reading_options import RateParam
from kdump.format.number_range import Range
from kdump.format.parse_time import parse_time
from kdump.render.times import iso

NOW = 1_795_000_000_000
DAY = 86_400_000
MIB = 1 << 20


def ms(*parts: int, zone: tzinfo = timezone.utc) -> int:
    return round(datetime(*parts, tzinfo=zone).timestamp() * 1000)  # type: ignore[misc, arg-type]


@pytest.mark.parametrize(
    ("text", "start", "width"),
    [
        ("2026-11-20", ms(2026, 11, 20), DAY),
        ("2026-11-20T10", ms(2026, 11, 20, 10), 3_600_000),
        ("2026-11-20T10:11", ms(2026, 11, 20, 10, 11), 60_000),
        ("2026-11-20 10:11:12", ms(2026, 11, 20, 10, 11, 12), 1000),
        ("2026-11-20T10:11:12.3", ms(2026, 11, 20, 10, 11, 12) + 300, 1),
        ("2026-11-20T10:11:12.345Z", ms(2026, 11, 20, 10, 11, 12) + 345, 1),
        ("2026-11-20T10:11:12+02:00", ms(2026, 11, 20, 8, 11, 12), 1000),
        ("2026-11-20T10:11:12-0530", ms(2026, 11, 20, 15, 41, 12), 1000),
        ("2026-11-20T10:11:12+02", ms(2026, 11, 20, 8, 11, 12), 1000),
        ("1795247902438", 1795247902438, 1),
        ("-1", -1, 1),
        ("-2h", NOW - 7_200_000, 1),
        ("-90m", NOW - 5_400_000, 1),
        ("-500ms", NOW - 500, 1),
        ("-1w", NOW - 7 * DAY, 1),
        ("now", NOW, 1),
    ],
)
def test_moments(text: str, start: int, width: int) -> None:
    assert parse_time(text, timezone.utc, end=False, now=NOW) == start
    assert parse_time(text, timezone.utc, end=True, now=NOW) == start + width - 1


@pytest.mark.parametrize(
    "text", ["yesterday", "2026-13-01", "2026-11", "2h", "2026-11-20T25", "12:00", "2026", "20261120", "2026-W47-6"]
)
def test_no_moments(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        parse_time(text, timezone.utc, end=False, now=NOW)


def test_a_time_without_a_zone_is_in_the_one_of_tz() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    assert parse_time("2026-07-01T12:00", berlin, end=False, now=NOW) == ms(2026, 7, 1, 10)
    assert parse_time("2026-12-01T12:00", berlin, end=False, now=NOW) == ms(2026, 12, 1, 11)
    assert time_range("2026-11-20", berlin) == Range(ms(2026, 11, 19, 23), ms(2026, 11, 20, 23) - 1)


def test_days_of_other_lengths() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    for day, hours in (("2026-03-29", 23), ("2026-10-25", 25), ("2026-06-01", 24)):
        first, last = time_range(day, berlin)
        assert first is not None
        assert last is not None
        assert last - first + 1 == hours * 3_600_000


def test_a_lone_relative_time_is_since_then() -> None:
    assert time_range("-2h", timezone.utc).last is None


def test_time_ranges() -> None:
    assert time_range("5..", timezone.utc) == Range(5, None)
    for typed, start, stop in (
        ("2026-11-20T14:00..2026-11-20T15:00", ms(2026, 11, 20, 14), ms(2026, 11, 20, 15) - 1),
        ("2026-11-20T14..2026-11-20T15:00:00", ms(2026, 11, 20, 14), ms(2026, 11, 20, 15) - 1),
        ("2026-11-20..2026-11-21", ms(2026, 11, 20), ms(2026, 11, 21) - 1),
        ("..2026-11-20", None, ms(2026, 11, 20) - 1),
        ("..2026-11-20T15:00:07", None, ms(2026, 11, 20, 15, 0, 8) - 1),
        ("..2026-11-20T15:00:00.000", None, ms(2026, 11, 20, 15)),
        ("2026-11-20..2026-11-20", ms(2026, 11, 20), ms(2026, 11, 21) - 1),
    ):
        assert time_range(typed, timezone.utc) == Range(start, stop), typed
    for bad in ("..", "6..5", "x..5", "2026-11-20T15:00..2026-11-20T14"):
        with pytest.raises(click.UsageError):
            time_range(bad, timezone.utc)


def convert(param: Any, text: str) -> Any:
    return param.convert(text, None, None)


def test_ranges() -> None:
    assert convert(RangeParam(), "4") == Range(4, 4)
    assert convert(RangeParam(), "4..9") == Range(4, 9)
    assert convert(RangeParam(), "4..") == Range(4, None)
    assert convert(RangeParam(), "..9") == Range(None, 9)
    for bad in ("", "..", "a", "9..4", "-1", "1..2..3"):
        with pytest.raises(click.BadParameter):
            convert(RangeParam(), bad)


def test_sizes() -> None:
    sizes = [("1", 1), ("512k", 512 << 10), ("64M", 64 << 20), ("64MiB", 64 << 20), ("1G", 1 << 30)]
    assert [(text, convert(SizeParam(), text)) for text, _ in sizes] == sizes
    for bad in ("", "0", "-1", "1T", "k"):
        with pytest.raises(click.BadParameter):
            convert(SizeParam(), bad)


def test_zones() -> None:
    assert convert(ZoneParam(), "utc") is timezone.utc
    assert convert(ZoneParam(), "+05:30").utcoffset(None) == timedelta(hours=5, minutes=30)
    assert convert(ZoneParam(), "local") is not None
    assert convert(ZoneParam(), "America/New_York").key == "America/New_York"
    for bad in ("Mars", "../etc/passwd", "+5", "+99:00"):
        with pytest.raises(click.BadParameter):
            convert(ZoneParam(), bad)


def test_iso() -> None:
    assert iso(1795247902438) == "2026-11-21T07:58:22.438Z"
    assert iso(1795247902438, ZoneInfo("Asia/Kolkata")) == "2026-11-21T13:28:22.438+05:30"
    assert (iso(None), iso(-1), iso(-2)) == ("-", "-1", "1969-12-31T23:59:59.998Z")
    assert iso((1 << 63) - 1) == str((1 << 63) - 1)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("52428800", 50 * MIB),
        ("50M", 50 * MIB),
        ("50MB/s", 50 * MIB),
        ("50 MiB / s", 50 * MIB),
        ("500k/s", 500 * 1024),
        ("1GB/s", 1 << 30),
        ("1g/sec", 1 << 30),
        ("100B/S", 100),
        (" 7k ", 7 * 1024),
    ],
)
def test_rates(text: str, rate: int) -> None:
    assert RateParam().convert(text, None, None) == rate


def test_a_default_rate_is_bytes_a_second() -> None:
    assert RateParam().convert(5, None, None) == 5


@pytest.mark.parametrize("text", ["", "/s", "0", "0M/s", "fast", "-5M", "1.5M", "50M/h", "50MB/s/s", "5T"])
def test_no_rates(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a rate"):
        RateParam().convert(text, None, None)
