"""Completion candidates: commands, options and values. The scripts in kdump/shells run kdump with
_KDUMP_COMPLETE=<shell>_complete and the words typed so far. The answer has one candidate per line: kind, word,
meaning."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from importlib.resources import files
from itertools import islice

import click

from kdump.command_line.completion_words import (
    ASK,
    DIRECTORY,
    FILE,
    PART,
    PLAIN,
    TOPICS,
    Completion,
    Words,
    asked,
    inner,
    parameters,
    shipped,
)
from kdump.command_line.find_command import HELP

PARTITION = re.compile(r"[a-zA-Z0-9._-]+-[0-9]+")
"""A partition directory whose topic has a name that Kafka allows; other directories are not offered as topics."""
SHELLS = {"bash": "kdump", "zsh": "_kdump", "fish": "kdump.fish"}
"""Each shell, and the file name under which it finds its script."""
VARIABLE = "_KDUMP_COMPLETE"
MAX_ENTRIES = 20_000
"""Maximum entries of a directory that are searched for topic names, because completion has to be immediate."""
MAX_SUBDIRECTORIES = 64
"""Maximum subdirectories that are searched, because they may be log directories."""


def script(shell: str) -> str:
    """Return the completion script of a shell, unchanged from the package."""
    return (files("kdump") / "shells" / shell / SHELLS[shell]).read_text(encoding="utf-8")


def candidates(group: click.Group, about: dict[str, str], words: list[str], incomplete: str) -> Iterator[Completion]:
    """Yield the completions of `incomplete`; `words` are the words before it, without `kdump`. `about`: one line of
    help per command."""
    ctx = click.Context(group, info_name="kdump", resilient_parsing=True, **group.context_settings)
    name = next((word for word in words if not word.startswith("-")), None)
    if name is not None and name != HELP:
        known = shipped().get(name)
        command = group.get_command(ctx, name) if known is None else None
        if known is None and command is None:
            return
        found = known if known is not None or command is None else parameters(inner(ctx, command))
        yield from _Typed(group, name, found or [], words[words.index(name) + 1 :]).candidates(incomplete)
    elif incomplete.startswith("-"):
        yield from _Typed(group, "", parameters(ctx), words).candidates(incomplete)
    else:
        for each in group.list_commands(ctx):
            if each.startswith(incomplete):
                yield Completion(each, help=about.get(each))


class _Typed:
    """A command and the words that follow it."""

    def __init__(self, group: click.Group, command: str, parameters: list[Words], words: list[str]) -> None:
        self.group = group
        self.command = command
        self.options = {name: words for words in parameters for name in words.names}
        self.arguments = [words for words in parameters if not words.names]
        self.given: set[str] = set()
        self.positional: list[str] = []
        self.waiting: Words | None = None
        self.only_arguments = False
        for word in words:
            self._word(word)

    def _word(self, word: str) -> None:
        if self.waiting is not None:
            self.waiting = None
        elif self.only_arguments or not word.startswith("-") or word == "-":
            self.positional.append(word)
        elif word == "--":
            self.only_arguments = True
        else:
            name, equals, _ = word.partition("=")
            option = self.options.get(name)
            if option is not None:
                self.given.update(option.names)
                self.waiting = option if option.kind is not None and not equals else None

    def candidates(self, incomplete: str) -> Iterator[Completion]:
        if self.waiting is not None:
            yield from self._values(self.waiting, incomplete)
        elif self.only_arguments or not incomplete.startswith("-"):
            argument = self._argument()
            if argument is not None:
                yield from self._values(argument, incomplete)
        elif "=" in incomplete:
            name, _, value = incomplete.partition("=")
            option = self.options.get(name)
            if option is not None and option.kind is not None:
                for item in self._values(option, value):
                    yield Completion(f"{name}={item.value}", type=item.type, help=item.help)
        else:
            yield from self._names(incomplete)

    def _argument(self) -> Words | None:
        """Return the argument to which the next word belongs."""
        taken = len(self.positional)
        for argument in self.arguments:
            if argument.max_words < 0 or taken < argument.max_words:
                return argument
            taken -= argument.max_words
        return None

    def _names(self, incomplete: str) -> Iterator[Completion]:
        """Yield the options that can still be given, by their long names if they have one."""
        for name, option in self.options.items():
            short = len(name) == 2 and any(len(other) > 2 for other in option.names)
            again = name in self.given and not option.repeats
            if name.startswith(incomplete) and not again and (not short or name == incomplete):
                yield Completion(name, help=option.help)

    def _values(self, words: Words, incomplete: str) -> Iterator[Completion]:
        if words.kind in (FILE, DIRECTORY):
            yield Completion(incomplete, type=words.kind)
        elif words.kind == PART:
            head, comma, last = incomplete.rpartition(",")
            given = head.split(",")
            for name, help_text in words.choices:
                if name.startswith(last) and name not in given:
                    yield Completion(f"{head}{comma}{name}", type=PART, help=help_text)
        else:
            choices = words.choices
            if words.kind == TOPICS:
                choices = [[name, ""] for name in topics(self.positional)]
            if words.kind == ASK:
                command = self.group.get_command(click.Context(self.group), self.command)
                choices = [[name, ""] for name in asked(command, words.names)] if command else []
            for name, help_text in choices:
                if name.lower().startswith(incomplete.lower()):
                    yield Completion(name, help=help_text)


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


def line(item: Completion) -> str:
    """Format one candidate for the scripts."""
    kind = item.type if item.type in (PART, FILE, DIRECTORY) else PLAIN
    return f"{kind}\t{item.value}\t{item.help or ''}"


def answer(group: click.Group, about: dict[str, str], instruction: str, words: list[str]) -> None:
    """Answer a request from a shell: print its script, or the completions of the last word."""
    shell, _, request = instruction.partition("_")
    if shell not in SHELLS or request not in ("source", "complete"):
        sys.exit(f"kdump: {VARIABLE} must be bash_source, zsh_source, fish_source or, with words, …_complete")
    if request == "source":
        sys.stdout.write(script(shell))
        return
    for item in candidates(group, about, words[:-1], words[-1] if words else ""):
        candidate = line(item)
        if candidate.replace("\t", "").isprintable():  # a directory's name can contain anything
            sys.stdout.write(candidate + "\n")
