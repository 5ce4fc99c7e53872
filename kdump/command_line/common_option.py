"""The options that most commands share: an environment variable sets each of them for all commands, and one page shows
them (`kdump help options`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

REPLACE_FORMAT = {"as_json", "as_hex", "template", "extract", "quiet"}
"""Parameters that choose the output: with one of them on the command line, KDUMP_FORMAT and KDUMP_COLUMNS do not
apply."""
WITHOUT_VARIABLE = ("--json", "--no-pager")
"""KDUMP_FORMAT=json is the first, and the last has no effect."""
WITH_CSV = "With --format csv"
"""Begins the help of --columns in a command that prints a report."""


def typed(context: click.Context) -> set[str]:
    """Return the names of the parameters that were typed, which click parses before all others."""
    return {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}


class CommonOption(click.Option):
    """An option of most commands. `long`: its name; `variable`: the environment variable that sets it; empty if there
    is none."""

    def __init__(self, *declared: Any, **attributes: Any) -> None:
        super().__init__(*declared, **attributes)
        self.long = max(self.opts, key=len)
        self.variable = "" if self.long in WITHOUT_VARIABLE else f"KDUMP_{self.long[2:].replace('-', '_').upper()}"
        self.envvar = self.variable or None

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        value = super().resolve_envvar_value(ctx)
        if self.variable == "KDUMP_FORMAT":
            return None if typed(ctx) & (REPLACE_FORMAT | ({"columns"} if value == "json" else set())) else value
        if self.variable == "KDUMP_QUIET":
            is_table = ctx.params.get("form") not in ("json", "csv", "hex")
            return value if is_table and "as_json" not in typed(ctx) else None
        if self.variable == "KDUMP_COLUMNS":
            form, only_csv = ctx.params.get("form"), (self.help or "").startswith(WITH_CSV)
            applies = form == "csv" or not (only_csv or (isinstance(form, str) and form != "table"))
            return value if applies and not typed(ctx) & REPLACE_FORMAT else None
        return value

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """Return the name that an error states: with the variable, if that is where the value is from."""
        hint = super().get_error_hint(ctx)
        source = ctx.get_parameter_source(self.name) if ctx is not None and self.name else None
        return f"{hint} ({self.variable})" if source is ParameterSource.ENVIRONMENT else hint


def common(*declared: Any, **attributes: Any) -> Callable[[Any], Any]:
    """Return the decorator that adds a CommonOption. `attributes`: as of click.option."""
    return click.option(*declared, cls=CommonOption, **attributes)
