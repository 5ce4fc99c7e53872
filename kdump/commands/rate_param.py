"""--max-rate: limits how fast disks are read."""

from __future__ import annotations

import re
from typing import Any

import click

from kdump.commands.params import SIZE, SIZES, Param

PER_SECOND = re.compile(r"\s*/\s*s(?:ec)?$", re.IGNORECASE)


class RateParam(Param):
    """A rate in bytes per second: a size, with or without /s."""

    name = "RATE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = SIZE.match(PER_SECOND.sub("", value.strip()))
        if not match or not int(match[1]):
            self.fail(f"{value!r} is not a rate; use 52428800, 500k/s, 50MB/s or 1G/s", param, ctx)
        return int(match[1]) * SIZES[match[2].lower()]
