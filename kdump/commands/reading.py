"""How the commands that read files open them, and how fast they read."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import click

from kdump.check.engine.workers import careful_source
from kdump.check.options import Options
from kdump.commands.params import SIZE, SIZES, LimitOptions, Param, limit_options
from kdump.commands.typed_options import add_options
from kdump.log.rate_limit import RateLimit

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
    """The options of `reading_options`. `max_rate` is in bytes per second."""

    max_rate: int | None = None

    def check_options(self, **more: Any) -> Options:
        """Return the Options for reading files; `now` is the current time. `more`: other fields of Options."""
        rate = RateLimit(self.max_rate) if self.max_rate else None
        values: dict[str, Any] = {
            "limits": self.limits,
            "now": int(time.time() * 1000),
            "window": self.window,
            "open_source": partial(careful_source, rate=rate),
        }
        return Options(**(values | more))


def reading_options(command: F) -> F:
    """Add --max-rate and the options of `limit_options`."""
    return add_options(
        command,
        click.option(
            "--max-rate",
            type=RateParam(),
            help="Read no faster than this, all files and jobs together, such as 50MB/s.",
        ),
        limit_options,
    )
