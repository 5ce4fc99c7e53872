"""The help of a command: its commonest uses, what it does, its own options in sections, and the names of the options
that most commands share, which one page shows (`kdump help options`)."""

from __future__ import annotations

import re
from typing import Any

import click

from kdump.command_line.common_option import CommonOption
from kdump.command_line.typed_options import SECTION, declared
from kdump.query import LimitOptions, add_options

EXAMPLES = "Examples:"
NEWLINE = "\n"
COMMONEST = 3
"""How many of the examples begin a help page."""
USUAL = "Options"
"""Section of the options that are in no other."""
OPTIONS = "Options of most commands"
OPTIONS_PAGE = f"""{OPTIONS}: how output looks, and how files are read. An environment variable sets an option
for all commands that have it; what is typed takes precedence. KDUMP_FORMAT=json is --json for all commands.
A command that has a special meaning for an option shows it in its own help."""
RANGE = re.compile(r" *\[[^][]*x[<>]=[^][]*\]$")
"""What click appends about the range of a number. An error states it, too."""
IN_REPORTS = "In a command that prints a report and not a table, with --format csv."


def common_options() -> dict[str, CommonOption]:
    """Return the options that most commands share, by their names."""
    # Not at the top: only help needs all of them.
    from kdump.command_line.output_options import QUIET_HELP, output_options
    from kdump.command_line.reading_options import low_impact_options

    command = click.command("all")(
        add_options(lambda: None, output_options(quiet=QUIET_HELP), low_impact_options, *declared(LimitOptions))
    )
    return {param.long: param for param in command.params if isinstance(param, CommonOption)}


def is_as_usual(param: click.Parameter, usual: dict[str, CommonOption]) -> bool:
    """Return True if a parameter is one that most commands share, with the usual meaning."""
    if not isinstance(param, CommonOption) or param.long not in usual:
        return False
    same = usual[param.long]
    choices = [getattr(each.type, "choices", ()) for each in (param, same)]
    return (param.help == same.help or param.long == "--columns") and [*choices[0]] == [*choices[1]]


def section_of(param: click.Parameter) -> str:
    """Return the section that a parameter begins; empty if it continues the one before."""
    section: str = getattr(param, SECTION, "")
    return section


def explained(param: CommonOption) -> str:
    """Return the help of a shared option, with what it means in reports, and its environment variable."""
    more = f" {IN_REPORTS}" if param.long == "--columns" else ""
    return f"{param.help}{more}{f'  ({param.variable})' if param.variable else ''}"


def options_page() -> str:
    """Return the page of the options that most commands share."""
    formatter = click.Context(click.Command("kdump")).make_formatter()
    formatter.write_text(" ".join(OPTIONS_PAGE.split()))
    formatter.write_paragraph()
    rows = []
    for param in common_options().values():
        record = param.get_help_record(click.Context(click.Command("kdump")))
        if record is not None:
            rows.append((record[0], explained(param)))
    with formatter.indentation():
        formatter.write_dl(rows)
    return formatter.getvalue()


class HelpPage(click.Command):
    """A command with such a help. The epilog has the examples, the commonest first, and the exit statuses. `listed`:
    its section in `kdump --help`, and its place there; `mounts`: whether it takes what can be mounted in place of a log
    directory; `to_the_end`: whether it continues when the reader of its output has gone (`| head`), because its exit
    status or the files that it writes are results, too. Others then end with status 0."""

    def __init__(
        self,
        name: str | None,
        *,
        listed: tuple[str, int] = ("scripts", 99),
        mounts: bool = True,
        to_the_end: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(name, **more)
        self.listed, self.mounts, self.to_the_end = listed, mounts, to_the_end

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_usage(ctx, formatter)
        uses = self.examples()[:COMMONEST]
        if uses:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write("".join(f"  {use}\n" for use in uses))
        self.format_help_text(ctx, formatter)
        self.format_options(ctx, formatter)
        self.format_epilog(ctx, formatter)

    def examples(self) -> list[str]:
        """Return the examples of the epilog."""
        _, _, after = (self.epilog or "").partition(EXAMPLES)
        return [line.strip() for line in after.partition("\n\n")[0].splitlines() if line.strip()]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        usual = common_options()
        sections: dict[str, list[tuple[str, str]]] = {}
        shared, section = [], USUAL
        for param in self.get_params(ctx):
            if not isinstance(param, click.Option):
                continue
            section = section_of(param) or section
            if is_as_usual(param, usual):
                shared.append(max(param.opts, key=len))
                continue
            record = param.get_help_record(ctx)
            if record is not None:
                names, about = record[0], RANGE.sub("", record[1])
                sections.setdefault(USUAL if "--help" in param.opts else section, []).append((names, about))
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)
        if shared:
            with formatter.section(f"{OPTIONS} (kdump help options)"):
                formatter.write_text(", ".join(shared))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples that are not at the top, and the rest of the epilog."""
        before, _, after = (self.epilog or "").replace("\b\nExit status", "Exit status").partition(EXAMPLES)
        more, end, rest = after.partition("\n\n")
        left = more.splitlines()[1 + COMMONEST :]
        whole = self.epilog
        self.epilog = f"{before}More examples:\n{NEWLINE.join(left)}{end}{rest}" if left else rest
        super().format_epilog(ctx, formatter)
        self.epilog = whole
