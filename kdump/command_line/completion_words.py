"""Table of what can be completed for each command. tools/completion_words.py generates it from click's declarations,
and it is part of the package, because importing a command takes too long for completion."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from importlib.resources import files
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

PLAIN, PART, FILE, DIRECTORY, TOPICS, ASK = "plain", "part", "file", "dir", "topics", "ask"
"""Kinds of values: a complete word; a word that may continue, as in a comma-separated list; names of files or of
directories, which the shell completes; topics in the given paths; values that only the command can determine."""
BY_METAVAR = {
    **dict.fromkeys(("PATH", "FILE", "SOURCE", "SEGMENT", "A B", "CODE|FILE|TEXT|-"), FILE),
    **dict.fromkeys(("DIR", "LOGDIR"), DIRECTORY),
}
"""Metavars of values that are names of files or directories."""

Completion = CompletionItem  # generic only in some releases of click


class Words(NamedTuple):
    """A parameter: an option has `names`, an argument has none. `kind` is that of its values: empty if unknown, None if
    it takes no value. `choices` are [word, meaning]. `max_words` is the maximum number of words, -1 for any number."""

    names: list[str]
    help: str
    kind: str | None
    choices: list[list[str]]
    max_words: int
    repeats: bool


def listed(values: Callable[[], Iterable[tuple[str, str]]]) -> Callable[..., list[Completion]]:
    """Return a `shell_complete` for a comma-separated list of names, each with its meaning."""
    return lambda ctx, param, incomplete: [Completion(name, type=PART, help=meaning) for name, meaning in values()]


def one_of(values: Callable[[], Iterable[str]], *, ask: bool = False) -> Callable[..., list[Completion]]:
    """Return a `shell_complete` for one of these names; `ask`: they depend on the machine."""
    return lambda ctx, param, incomplete: [Completion(name, type=ASK if ask else PLAIN) for name in values()]


def parameters(ctx: click.Context) -> list[Words]:
    """Return the visible parameters of the context's command."""
    return [_words(ctx, param) for param in ctx.command.get_params(ctx) if not getattr(param, "hidden", False)]


def inner(ctx: click.Context, command: click.Command) -> click.Context:
    """Return the context of one of the group's commands; the group's settings (-h) apply to it."""
    return click.Context(command, ctx, info_name=command.name, resilient_parsing=True)


def _words(ctx: click.Context, param: click.Parameter) -> Words:
    kind, choices = _values(ctx, param)
    if isinstance(param, click.Option):
        names = [*param.opts, *param.secondary_opts]
        help_text, repeats = " ".join((param.help or "").split()), bool(param.multiple or param.count)
        if param.is_flag or param.count or _may_stand_alone(param):
            return Words(names, help_text, None, [], 1, repeats)
        return Words(names, help_text, kind, choices, 1, repeats)
    return Words([], "", kind, choices, param.nargs, False)


def _may_stand_alone(option: click.Option) -> bool:
    """Return True if the option's value is optional: the word after it may be its value, or not."""
    return bool(getattr(option, "_flag_needs_value", False))  # flag_value differs between releases of click


def _values(ctx: click.Context, param: click.Parameter) -> tuple[str, list[list[str]]]:
    """Return the kind of a parameter's values, and the choices. Types and `shell_complete` take precedence over the
    metavar."""
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
    """Return the current values of an option of kind ASK."""
    ctx = click.Context(command, info_name=command.name, resilient_parsing=True)
    option = next(param for param in command.params if param.opts == names[: len(param.opts)])
    return [str(item.value) for item in option.shell_complete(ctx, "")]


def table(group: click.Group) -> dict[str, Any]:
    """Return the complete table that the package contains."""
    ctx = click.Context(group, info_name="kdump", **group.context_settings)
    commands = {name: group.get_command(ctx, name) for name in group.list_commands(ctx)}
    return {name: parameters(inner(ctx, command)) for name, command in commands.items() if command is not None}


def shipped() -> dict[str, list[Words]]:
    """Return the table in the package; if it is missing, an empty one, so that the commands are imported instead."""
    try:
        table = json.loads((files("kdump") / "shells" / "words.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {name: [Words(*words) for words in parameters] for name, parameters in table.items()}
