"""Descriptions of all commands for docs/cli.md and the man pages, taken from click's declarations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import metadata
from pathlib import Path
from typing import NamedTuple

import click

from kdump.cli import cli
from kdump.command_line.common_option import CommonOption
from kdump.command_line.help_page import OPTIONS, OPTIONS_PAGE, common_options, explained, is_as_usual
from kdump.index import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
DISTRIBUTION = "kafka-kdump"
"""Name in the package registry."""
ENVIRONMENT = {
    "NO_COLOR": "If this is set to any value, output is not colored, except with `--color always`.",
    "FORCE_COLOR": "If this is set to any value, output is colored even if it does not go to a terminal.",
    "TERM": "If this is `dumb`, output is not colored.",
    "COLUMNS": "Width of tables on a terminal, in place of the terminal's width.",
    "KDUMP_NOW": "The current time for the commands with `--now`: for a disk of another day.",
    "TZ": "Time zone for `--tz local`.",
    "KDUMP_ENGINE": "`plain` runs the core as plain Python, even if it is compiled.",
}
PAGES = {"export": "notebook", "query": "spark", "scan": "spark", "completion": "install"}
"""Commands whose page in docs/ has another name."""


class Option(NamedTuple):
    """Option of a command. `names`: as typed; `metavar`: placeholder of the value, empty for a flag."""

    names: tuple[str, ...]
    metavar: str
    help: str


class Page(NamedTuple):
    """Description of a command. `description` and `notes`: paragraphs; `examples`: lines; `status`: exit statuses;
    `common`: the names of those of its options that most commands share."""

    name: str
    summary: str
    usage: str
    description: list[str]
    options: list[Option]
    examples: list[str]
    status: str
    notes: list[str]
    common: list[str]

    @property
    def own_options(self) -> list[Option]:
        """The options that are not shown with those of most commands."""
        shared = (*self.common, "-h") if self.name else ()
        return [option for option in self.options if not {*shared} & {*option.names}]

    @property
    def doc(self) -> str:
        """File name of the page in docs/ with examples; empty if there is none."""
        name = f"{PAGES.get(self.name, self.name)}.md"
        return name if (ROOT / "docs" / name).is_file() else ""

    @property
    def related(self) -> list[str]:
        """Other commands that the text refers to, in the order of `kdump --help`."""
        text = " ".join([*self.description, *self.examples, *(option.help for option in self.options)])
        return [name for name in COMMANDS if name != self.name and re.search(rf"\bkdump {name}\b", text)]


def overall() -> Page:
    """Return the page of kdump itself."""
    return _page("", cli, click.Context(cli, info_name="kdump", **cli.context_settings))


def pages() -> Iterator[Page]:
    """Yield the page of every command, in the order of `kdump --help`."""
    parent = click.Context(cli, info_name="kdump", **cli.context_settings)
    for name in cli.list_commands(parent):
        command = cli.get_command(parent, name)
        if command is not None:
            yield _page(name, command, click.Context(command, parent, info_name=name))


def _page(name: str, command: click.Command, ctx: click.Context) -> Page:
    examples: list[str] = []
    status, notes = "", []
    for text in paragraphs(command.epilog or ""):
        head, _, rest = text.partition(":")
        if head == "Examples":
            examples = [line.strip() for line in rest.splitlines() if line.strip()]
        elif head.startswith("Exit status"):
            extra = head.removeprefix("Exit status").strip(" ,")
            said = f"{extra}: {rest}" if extra else rest
            status = " ".join(said.split())
        else:
            notes.append(" ".join(text.split()))
    described = [" ".join(text.split()) for text in paragraphs(command.help or "")]
    options = [_option(param) for param in command.get_params(ctx) if isinstance(param, click.Option)]
    shown = [option for option in options if option is not None]
    summary = COMMANDS.get(name) or metadata(DISTRIBUTION)["Summary"]
    pieces = command.collect_usage_pieces(ctx)
    usage = " ".join(piece for piece in ("kdump", name, *pieces) if piece)
    usual = common_options()
    common = [param.long for param in command.params if isinstance(param, CommonOption) and is_as_usual(param, usual)]
    return Page(name, summary, usage, described, shown, examples, status, notes, common)


def variables() -> dict[str, str]:
    """Return what each environment variable of a shared option does."""
    params = common_options().items()
    return {param.variable: f"Sets `{name}` for all commands that have it." for name, param in params if param.variable}


def shared_options() -> tuple[str, str, list[Option]]:
    """Return what `kdump help options` shows: the title, the paragraph before the options, and the options."""
    title, _, about = " ".join(OPTIONS_PAGE.split()).partition(": ")
    assert title == OPTIONS
    rows = [(option, _option(option)) for option in common_options().values()]
    return title, about[0].upper() + about[1:], [row._replace(help=explained(option)) for option, row in rows if row]


def paragraphs(text: str) -> list[str]:
    """Split text at empty lines, and remove click's mark against wrapping."""
    return [
        part.strip("\n") for part in re.split(r"\n\s*\n", text.replace("\b\n", "").replace("\b", "")) if part.strip()
    ]


def _option(option: click.Option) -> Option | None:
    if option.hidden:
        return None
    names = (*option.opts, *option.secondary_opts)
    value = "" if option.is_flag or option.count else metavar(option)
    return Option(names, value, option.help or "")


def metavar(param: click.Parameter) -> str:
    """Return the placeholder of a parameter's value, the same in every release of click."""
    if param.metavar:
        return param.metavar
    if isinstance(param.type, click.Choice):
        return "|".join(str(choice) for choice in param.type.choices)
    if isinstance(param.type, click.types.IntParamType):
        return "N"
    return "TEXT" if isinstance(param.type, click.types.StringParamType) else param.type.name
