"""What can be completed of each command, as a table: taken from click's declarations once (tools/completion_words.py),
and shipped, for importing a command takes longer than a person who presses Tab should wait."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from importlib.resources import files
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

PLAIN, PART, FILE, DIRECTORY, TOPICS, ASK = "plain", "part", "file", "dir", "topics", "ask"
"""Kinds of values: a word; one that goes on, as it is in a list with commas; names of files, or of directories, that
the shell knows better to complete; topics below the paths that are given; what only the command knows when asked."""
BY_METAVAR = {
    **dict.fromkeys(("PATH", "FILE", "SOURCE", "SEGMENT", "A B"), FILE),
    **dict.fromkeys(("DIR", "LOGDIR"), DIRECTORY),
}
"""What metavars say of values that are names of files."""

Item = CompletionItem  # generic in some releases of click only


class Words(NamedTuple):
    """A parameter: an option by its `names`, an argument by none. `kind` is that of its values, empty where they are
    anybody's guess, None where it takes none; `choices` are [word, meaning]; `most` is how many words, -1 for any."""

    names: list[str]
    help: str
    kind: str | None
    choices: list[list[str]]
    most: int
    repeats: bool


def listed(values: Callable[[], Iterable[tuple[str, str]]]) -> Callable[..., list[Item]]:
    """A `shell_complete` for names, each with what it means, of which several may stand with commas between."""
    return lambda ctx, param, incomplete: [Item(name, type=PART, help=said) for name, said in values()]


def one_of(values: Callable[[], Iterable[str]], *, ask: bool = False) -> Callable[..., list[Item]]:
    """A `shell_complete` for one of these names; with `ask` they are not the same everywhere."""
    return lambda ctx, param, incomplete: [Item(name, type=ASK if ask else PLAIN) for name in values()]


def parameters(ctx: click.Context) -> list[Words]:
    """What click knows of the context's command."""
    return [_words(ctx, param) for param in ctx.command.get_params(ctx) if not getattr(param, "hidden", False)]


def inner(ctx: click.Context, command: click.Command) -> click.Context:
    """The context of one of the group's commands: what holds for the group (-h) holds for it."""
    return click.Context(command, ctx, info_name=command.name, resilient_parsing=True)


def _words(ctx: click.Context, param: click.Parameter) -> Words:
    kind, choices = _values(ctx, param)
    if isinstance(param, click.Option):
        names = [*param.opts, *param.secondary_opts]
        said, repeats = " ".join((param.help or "").split()), bool(param.multiple or param.count)
        if param.is_flag or param.count or _may_stand_alone(param):
            return Words(names, said, None, [], 1, repeats)
        return Words(names, said, kind, choices, 1, repeats)
    return Words([], "", kind, choices, param.nargs, False)


def _may_stand_alone(option: click.Option) -> bool:
    """Whether it has a value of its own when it is given none: a word behind it may be anything."""
    return bool(getattr(option, "_flag_needs_value", False))  # flag_value is not the same in all releases of click


def _values(ctx: click.Context, param: click.Parameter) -> tuple[str, list[list[str]]]:
    """Types and `shell_complete` speak first, then the metavar."""
    items = param.shell_complete(ctx, "")
    types = {item.type for item in items}
    for kind in (ASK, FILE, DIRECTORY):
        if kind in types:
            return kind, []
    if items:
        return PART if PART in types else PLAIN, [[str(item.value), item.help or ""] for item in items]
    if param.name == "topics":
        return TOPICS, []
    return BY_METAVAR.get((param.metavar or "").strip("[]").rstrip("…,"), ""), []


def asked(command: click.Command, names: list[str]) -> list[str]:
    """The values that an option of kind ASK has here and now."""
    ctx = click.Context(command, info_name=command.name, resilient_parsing=True)
    found = next(param for param in command.params if param.opts == names[: len(param.opts)])
    return [str(item.value) for item in found.shell_complete(ctx, "")]


def table(group: click.Group) -> dict[str, Any]:
    """The whole of what is shipped."""
    ctx = click.Context(group, info_name="kdump", **group.context_settings)
    commands = {name: group.get_command(ctx, name) for name in group.list_commands(ctx)}
    return {name: parameters(inner(ctx, command)) for name, command in commands.items() if command is not None}


def shipped() -> dict[str, list[Words]]:
    """The table in the package; nothing of it if it is not there, and commands have to be asked."""
    try:
        found = json.loads((files("kdump") / "shells" / "words.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {name: [Words(*words) for words in each] for name, each in found.items()}
