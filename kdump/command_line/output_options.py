"""Options for the output that all commands share, and the sink that they select."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timezone, tzinfo
from typing import Any

import click

from kdump.command_line.command_run import print_error, this_run, unreadable_line
from kdump.command_line.common_option import WITH_CSV, common
from kdump.command_line.metrics_option import with_metrics
from kdump.command_line.params import TZ
from kdump.format.count_text import count_text
from kdump.query import CommandOptions, F, add_options
from kdump.render.sink import CsvRows, JsonLines, Objects, Silent, Sink, objects_of
from kdump.render.stdout import AUTO, COLORS, Output
from kdump.render.table import UnknownColumn

TABLE, JSON, CSV = FORMATS = ("table", "json", "csv")

FULL_HELP = "Do not truncate values."
QUIET_HELP = "Print nothing; only set the exit status."
COLUMNS_HELP = "Show these columns, in this order, by their JSON names."
CSV_COLUMNS_HELP = f"{WITH_CSV}: write these columns, in this order, by their JSON names."


@dataclass(frozen=True)
class OutputOptions(CommandOptions):
    """How a command writes its answers. `form` and `as_json` together are `format`; `names`: the selected columns."""

    form: str | None = None
    as_json: bool = False
    columns: str | None = None
    full: bool = False
    zone: tzinfo = timezone.utc
    color: str = AUTO
    quiet: bool = False

    def __post_init__(self) -> None:
        if self.as_json and self.form not in (None, JSON):
            raise click.UsageError(f"choose one of --json and --format {self.form}")
        if self.quiet and self.format != TABLE:
            raise click.UsageError(f"choose one of --quiet and {'--json' if self.as_json else f'--format {self.form}'}")
        if self.columns is not None and self.format not in (TABLE, CSV):
            raise click.UsageError("--columns applies only to tables and CSV")

    @property
    def format(self) -> str:
        return JSON if self.as_json else self.form or TABLE

    @property
    def names(self) -> list[str] | None:
        return None if self.columns is None else [name.strip() for name in self.columns.split(",")]

    def output(self, *, headline: bool = True, on_stderr: bool = False) -> Output:
        """Return standard output, or standard error. With `headline`, output for people begins with what was not read,
        if that is known by then. (JSON has objects for that, and stderr has a line.)"""
        output = Output(self.color, sys.stderr if on_stderr else sys.stdout)
        this_run().outputs.append(output)
        if headline:
            this_run().output = output
            if self.format == TABLE and not self.quiet and not on_stderr:
                output.headline = unreadable_line
        return output

    def sink(
        self,
        output: Output,
        report_sink: Callable[[], Sink[Any]],
        rows: tuple[type, ...] = (),
        *,
        objects: Objects = objects_of,
        row_objects: Objects | None = None,
        report: bool = False,
        single: str = "",
        together: bool = False,
    ) -> Sink[Any]:
        """Return where the answers go. `report_sink`: makes the sink for people; `report`: it is no table whose columns
        can be chosen. `rows`: the classes of answers that are the rows of CSV; none if the options ask for several
        tables, and `single` says how to choose one. `together`: rows of all these classes are in one table. `objects`:
        returns what is written of what is added; `row_objects`: that of which CSV has the rows. Raises
        click.UsageError."""
        return with_metrics(
            self._sink(output, report_sink, rows, objects, row_objects, report, single, together), objects
        )

    def _sink(
        self,
        output: Output,
        report_sink: Callable[[], Sink[Any]],
        rows: tuple[type, ...],
        objects: Objects,
        row_objects: Objects | None,
        report: bool,
        single: str,
        together: bool,
    ) -> Sink[Any]:
        if self.quiet:
            return Silent()
        if self.format == JSON:
            return JsonLines(output, objects)
        try:
            if self.format == CSV:
                if not rows:
                    raise click.UsageError("--format csv needs a single table" + (f"; {single}" if single else ""))
                return CsvRows(output, rows, self.names, note_left_out, row_objects or objects, together=together)
            if report and self.columns is not None:
                raise click.UsageError("--columns applies only to --format csv")
            return report_sink()
        except UnknownColumn as error:
            raise click.UsageError(str(error)) from None


class FormatChoice(click.Choice):  # type: ignore[type-arg]  # generic only in some releases of click
    """The choices of --format. Values in `old` are accepted, too, and are left to `old_format`."""

    def __init__(self, choices: tuple[str, ...], old: tuple[str, ...]) -> None:
        super().__init__(choices)
        self.old = old

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value not in self.old:
            return super().convert(value, param, ctx)
        if ctx is not None:
            this_run().old_format = value
        return None


def old_format() -> str | None:
    """Return the value of --format that is not an output format, as in scripts written for kdump 0.1; None if there is
    none."""
    return this_run().old_format


def note_left_out(count: int) -> None:
    """Print how many findings CSV does not show."""
    print_error(f"{count_text(count, 'finding')} not shown; use --json to show all")


def note_outside_columns(count: int) -> None:
    """Print how many findings the selected columns cannot show."""
    print_error(f"{count_text(count, 'finding')} not shown; omit --columns, or use --json, to show all")


def _no_pager(_context: click.Context, _param: click.Parameter, is_given: bool) -> None:
    if is_given:
        print_error("--no-pager is deprecated, and has no effect: there is no pager")


def output_options(
    *,
    json: str = "Write JSON Lines; same as --format json.",
    columns: str = COLUMNS_HELP,
    full: str = FULL_HELP,
    quiet: str = "",
    zone: bool = True,
    formats: tuple[str, ...] = FORMATS,
    old: tuple[str, ...] = (),
) -> Callable[[F], F]:
    """Return a decorator that adds the options of OutputOptions. `columns`, `full` and `quiet` are help texts; options
    without one are left out, and so is --tz without `zone`. `old`: other values that --format had before."""
    form = common("--format", "form", type=FormatChoice(formats, old), help="Select the output format.  [table]")
    options: list[Callable[[Any], Any]] = [form, common("--json", "as_json", is_flag=True, help=json)]
    if columns:
        options.append(common("--columns", metavar="NAME,…", help=columns))
    if full:
        options.append(common("--full", is_flag=True, help=full))
    if quiet:
        options.append(common("-q", "--quiet", is_flag=True, help=quiet))
    if zone:
        options.append(common("--tz", "zone", **TZ))
    text = "Use colors: auto (on a terminal, unless NO_COLOR is set), always or never.  [auto]"
    options.append(common("--color", type=click.Choice(COLORS), default=AUTO, help=text))
    text = "Deprecated, and without effect: there is no pager; pipe tables into less -S."
    options.append(common("--no-pager", is_flag=True, expose_value=False, callback=_no_pager, help=text))

    return lambda command: add_options(command, *options)
