"""The options of the commands that read partitions: --max-rate and --idle, those of LimitOptions, and one for each
field of Options that states its own (kdump.check.options.asked)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from kdump.check.options import ASKED, Options
from kdump.command_line.low_impact_options import low_impact_options
from kdump.command_line.params import DurationParam, LimitOptions, SizeParam
from kdump.command_line.typed_options import add_options, declared, option
from kdump.io.fault_tolerant import careful_source

F = TypeVar("F", bound=Callable[..., Any])
KINDS = {"size": SizeParam, "time": DurationParam}
"""Parameters by the kind of an option's value; others are click's own, by the default."""
OF_OPTIONS = {each.name: each for each in fields(Options) if ASKED in each.metadata}
"""The fields of Options that have an option."""


def _with_own_fields(cls: type) -> type:
    """Add to a class the options of OF_OPTIONS, as fields of the same names."""
    for name, spec in OF_OPTIONS.items():
        flag, kind, more = spec.metadata[ASKED]
        value: dict[str, Any] = {"type": KINDS[kind]()} if kind in KINDS else {}
        cls.__annotations__[name] = spec.type
        setattr(cls, name, option(flag, default=spec.default, **value, **more))
    return cls


@dataclass(frozen=True)
@_with_own_fields
class ReadingOptions(LimitOptions):
    """The options of `reading_options`."""

    def run(self, now: int | None = None, **more: Any) -> Options:
        """Return the Options for reading files as of `now`, by default the current time. `more`: other fields of
        Options."""
        values: dict[str, Any] = {
            **{name: getattr(self, name) for name in OF_OPTIONS},
            "limits": self.limits,
            "now": int(time.time() * 1000) if now is None else now,
            "open_source": careful_source,
        }
        return Options(**(values | more))


def reading_options(command: F) -> F:
    """Add the options of `low_impact_options` and of ReadingOptions."""
    return add_options(command, low_impact_options, *declared(ReadingOptions))
