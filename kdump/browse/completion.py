"""Completes the command line of `kdump browse`: names of commands, and their arguments."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from kdump.browse.command_list import ALIASES, COMMAND, FILE, TYPED, BrowseCommand, find_command

MAX_CANDIDATES = 200
"""Maximum number of candidates; of a directory with more files, the first are offered."""
Words = Mapping[str, Callable[[], list[str]]]
"""What an argument can be, by what it is completed with."""


def candidates(text: str, asked: BrowseCommand, words: Words) -> list[str]:
    """Return the texts that the line can be completed to, at most MAX_CANDIDATES. `asked`: the command whose argument
    is typed; for the command line itself, a line with a command is typed."""
    if asked.completes != COMMAND:
        return _arguments(text, asked, words)
    before, space, argument = text.partition(" ")
    if not space:
        return [name for name in sorted([*TYPED, *ALIASES]) if name.startswith(before)]
    try:
        command = find_command(before.removeprefix(":"))
    except ValueError:
        return []
    return [f"{before} {each}" for each in _arguments(argument.lstrip(), command, words)]


def _arguments(text: str, command: BrowseCommand, words: Words) -> list[str]:
    before, space, last = text.rpartition(" ")
    before += space
    kinds = command.completes.split()
    found: list[str] = []
    for number, kind in enumerate(kinds):
        if kind == FILE:
            word, start = (last, before) if number and before else (text, "")
            found += [start + path for path in file_names(word)]
        elif kind in words and (number == 0 or before):
            found += [before + word for word in words[kind]() if word.startswith(last) and word not in before.split()]
    return found[:MAX_CANDIDATES]


def file_names(text: str) -> list[str]:
    """Return the files of this machine whose path begins like this; directories with a slash at the end."""
    directory, name = os.path.split(text)
    try:
        with os.scandir(os.path.expanduser(directory) or ".") as entries:
            found = []
            for entry in entries:
                if (
                    entry.name.startswith(name)
                    and (name or not entry.name.startswith("."))
                    and entry.name.isprintable()
                ):
                    found.append(os.path.join(directory, entry.name) + ("/" if entry.is_dir() else ""))
                    if len(found) == MAX_CANDIDATES:
                        break
    except (OSError, ValueError):
        return []
    return sorted(found)


class Cycle:
    """The candidates that Tab goes through, one after the other."""

    def __init__(self, found: list[str]) -> None:
        self.found = found
        self.at = -1

    def step(self, direction: int) -> str:
        """Return the next candidate, or the previous one."""
        self.at = (self.at + direction) % len(self.found) if self.at >= 0 or direction > 0 else len(self.found) - 1
        return self.found[self.at]

    def shown(self, width: int) -> str:
        """Return the candidates from the current one on, as far as they fit."""
        words = [each.rpartition(" ")[2] or each for each in (*self.found[self.at :], *self.found[: self.at])]
        text = f" {self.at + 1} of {len(self.found)}: [{words[0]}]"
        for word in words[1:]:
            if len(text) + len(word) + 4 > width:
                text += " …"
                break
            text += "  " + word
        return text[:width]
