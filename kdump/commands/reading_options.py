"""How the commands that read files open them, how fast they read, and whether they yield to other processes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kdump.commands.params import SIZE, SIZES, LimitOptions, Param
from kdump.commands.typed_options import add_options, declared
from kdump.idle import be_idle
from kdump.log.fault_tolerant import careful_source
from kdump.log.low_impact_reads import limit_rate
from kdump.log.token_bucket import TokenBucket

if TYPE_CHECKING:  # not every command checks
    from kdump.check.options import Options

F = TypeVar("F", bound=Callable[..., Any])
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


@dataclass(frozen=True)
class ReadingOptions(LimitOptions):
    """The options of `reading_options`."""

    def run(self, now: int | None = None, **more: Any) -> Options:
        """Return the Options for reading files as of `now`, by default the current time. `more`: other fields of
        Options."""
        from kdump.check.options import Options

        values: dict[str, Any] = {
            "limits": self.limits,
            "now": int(time.time() * 1000) if now is None else now,
            "window": self.window,
            "open_source": careful_source,
        }
        return Options(**(values | more))


def _limit_rate(ctx: click.Context, param: click.Parameter, value: int | None) -> None:
    if not ctx.resilient_parsing:
        limit_rate(TokenBucket(value) if value else None)


def _be_idle(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        be_idle()


def low_impact_options(command: F) -> F:
    """Add --max-rate and --idle. They take effect for the whole process (kdump.log.low_impact_reads, kdump.idle) before
    the command begins, which does not see them."""
    return add_options(
        command,
        click.option(
            "--max-rate",
            type=RateParam(),
            expose_value=False,
            callback=_limit_rate,
            help="Read no faster than this, all files and jobs together, such as 50MB/s.",
        ),
        click.option(
            "--idle",
            is_flag=True,
            expose_value=False,
            callback=_be_idle,
            help="Yield to other processes: idle I/O class, nice 19, and one job by default.",
        ),
    )


def reading_options(command: F) -> F:
    """Add the options of `low_impact_options` and of LimitOptions."""
    return add_options(command, low_impact_options, *declared(LimitOptions))
