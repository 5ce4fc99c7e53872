"""Print the shell completion script for bash, zsh or fish.

This also decides what Tab completes: as click does it, with the topics of the given paths."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from itertools import islice
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from kdump.command_line.help_page import HelpPage

Completion = CompletionItem  # generic only in some releases of click
SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_KDUMP_COMPLETE"
"""The variable with which a shell asks (click's name for it)."""
PATHS = {
    **dict.fromkeys(("PATH", "FILE", "SOURCE", "SEGMENT", "A B", "CODE|FILE|TEXT|-"), click.Path()),
    **dict.fromkeys(("DIR", "LOGDIR"), click.Path(file_okay=False)),
}
"""Metavars of parameters that are names of files or directories: kdump, not click, opens them."""
PARTITION = re.compile(r"[a-zA-Z0-9._-]+-[0-9]+")
"""A partition directory whose topic has a name that Kafka allows; other directories are not offered as topics."""
MAX_ENTRIES = 20_000
"""Maximum entries of a directory that are searched for topic names, because completion has to be immediate."""
MAX_SUBDIRECTORIES = 64
"""Maximum subdirectories that are searched, because they may be log directories."""
EXAMPLES = """
\b
Examples:
  eval "$(kdump completion bash)"                             # in ~/.bashrc
  eval "$(kdump completion zsh)"                              # in ~/.zshrc, after compinit
  kdump completion fish > ~/.config/fish/completions/kdump.fish

\b
Exit status: 0 on success, 2 for a usage error.
"""


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("scripts", 2), mounts=False)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script with which bash, zsh or fish complete commands, options, values, topics and paths when you press
    Tab."""
    complete = get_completion_class(shell)
    assert complete is not None
    click.echo(complete(ctx.find_root().command, {}, "kdump", VARIABLE).source())


def one_of(values: Callable[[], Iterable[str]]) -> Callable[..., list[Completion]]:
    """Return a `shell_complete` for one of these names."""
    return lambda ctx, param, incomplete: [
        Completion(name) for name in values() if name.lower().startswith(incomplete.lower())
    ]


def with_paths(command: click.Command) -> click.Command:
    """Return a copy of the command whose paths can be completed: kdump itself also takes what click would refuse."""
    command = copy(command)
    command.params = [*map(copy, command.params)]
    for param in command.params:
        if param.type is click.STRING:
            param.type = PATHS.get((param.metavar or "").strip("[]").rstrip("…,"), param.type)
        if "--topic" in param.opts:
            param.shell_complete = complete_topics  # type: ignore[method-assign]
    return command


def complete_topics(ctx: click.Context, incomplete: str) -> list[Completion]:
    """Return the topics in the paths that were typed."""
    names = topics([*ctx.args, *_words(ctx.params.values())])  # click leaves words unparsed before an open option
    return [Completion(name) for name in names if name.startswith(incomplete) and name.isprintable()]


def _words(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _words(value)


def topics(paths: list[str]) -> list[str]:
    """Return the topics of the partitions in log directories, or in log directories directly below."""
    names: set[str] = set()
    for path in paths:
        below = _directories(path)[:MAX_SUBDIRECTORIES]  # the name broker-1 looks like a partition, too
        partitions = [name for disk in below for name in _partitions(os.path.join(path, disk))]
        names.update(name.rpartition("-")[0] for name in partitions or _partitions(path))
    return sorted(names)


def _partitions(path: str) -> list[str]:
    return [name for name in _directories(path) if PARTITION.fullmatch(name)]


def _directories(path: str) -> list[str]:
    try:
        with os.scandir(os.path.expanduser(path)) as entries:
            return [entry.name for entry in islice(entries, MAX_ENTRIES) if entry.is_dir()]
    except (OSError, ValueError):
        return []
