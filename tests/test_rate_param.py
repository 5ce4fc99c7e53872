"""--max-rate: what people type."""

from __future__ import annotations

import click
import pytest

from kdump.command_line.low_impact_options import RateParam

MIB = 1 << 20


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


def test_a_default_is_bytes_a_second() -> None:
    assert RateParam().convert(5, None, None) == 5


@pytest.mark.parametrize("text", ["", "/s", "0", "0M/s", "fast", "-5M", "1.5M", "50M/h", "50MB/s/s", "5T"])
def test_no_rates(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a rate"):
        RateParam().convert(text, None, None)
