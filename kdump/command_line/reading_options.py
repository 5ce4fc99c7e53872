"""The options of the commands that read partitions: --max-rate and --idle, those of LimitOptions, and one for each
field of Options that is declared as an option."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from typing import Any

import click

from kdump.check.options import Options
from kdump.command_line.common_option import common
from kdump.command_line.params import Param
from kdump.command_line.typed_options import declared
from kdump.format.count_text import parse_size
from kdump.idle import be_idle
from kdump.io.fault_tolerant import careful_source
from kdump.io.low_impact_reads import limit_rate
from kdump.io.token_bucket import TokenBucket
from kdump.query import F, LimitOptions, add_options, group

PER_SECOND = re.compile(r"\s*/\s*s(?:ec)?$", re.IGNORECASE)


class RateParam(Param):
    """A rate in bytes per second: a size, with or without /s."""

    name = "RATE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        rate = parse_size(PER_SECOND.sub("", value.strip()))
        if not rate:
            self.fail(f"{value!r} is not a rate; use 52428800, 500k/s, 50MB/s or 1G/s", param, ctx)
        return rate


def _limit_rate(ctx: click.Context, param: click.Parameter, value: int | None) -> None:
    if not ctx.resilient_parsing:
        limit_rate(TokenBucket(value) if value else None)


def _be_idle(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        be_idle()


def low_impact_options(command: F) -> F:
    """Add --max-rate and --idle. They take effect for the whole process (kdump.io.low_impact_reads, kdump.idle) before
    the command begins, which does not see them."""
    return add_options(
        command,
        common(
            "--max-rate",
            type=RateParam(),
            expose_value=False,
            callback=_limit_rate,
            help="Read no faster than this, all files and jobs together, such as 50MB/s.",
        ),
        common(
            "--idle",
            is_flag=True,
            expose_value=False,
            callback=_be_idle,
            help="Yield to others: 0.3 % of the processors while they work, nice 19, idle I/O class, one job.",
        ),
    )


@dataclass(frozen=True)
class ReadingOptions(LimitOptions):
    """The options of `reading_options`."""

    own: Options = group(Options)

    def run(self, now: int | None = None, **more: Any) -> Options:
        """Return the Options for reading files as of `now`, by default the current time. `more`: other fields of
        Options."""
        more.setdefault("open_source", careful_source)
        return replace(self.own, limits=self.limits, now=int(time.time() * 1000) if now is None else now, **more)


def reading_options(command: F) -> F:
    """Add the options of `low_impact_options` and of ReadingOptions."""
    return add_options(command, low_impact_options, *declared(ReadingOptions))
