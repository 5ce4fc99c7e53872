"""The line in which commands and their arguments are typed: with a history, and completion by Tab."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, NamedTuple

from textual.binding import Binding, BindingType
from textual.widgets import Input

from kdump.browse.command_list import ALIASES, COMMAND, FILE, NAMED, TYPED, BrowseCommand, find_command
from kdump.log.selection import Selection

MAX_HISTORY = 100
"""Maximum number of lines that are kept, for each command."""
MAX_CANDIDATES = 200
"""Maximum number of candidates; of a directory with more files, the first are offered."""
Words = Mapping[str, Callable[[], list[str]]]
"""What an argument can be, by what it is completed with."""


class PromptParsers(NamedTuple):
    """Parsers of typed text; each raises ValueError with the reason. `selection` parses options of inspect, whose
    names are `options`; `time` returns epoch ms."""

    selection: Callable[[str], Selection]
    time: Callable[[str], int]
    options: Sequence[str] = ()


class Prompt(Input):
    """The line. `announce` shows a text, in a style: what can be typed, or candidates of the completion."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete(1)", "complete", show=False),
        Binding("shift+tab", "complete(-1)", "complete backward", show=False),
        Binding("up,ctrl+p", "recall(-1)", "earlier line", show=False),
        Binding("down,ctrl+n", "recall(1)", "later line", show=False),
    ]

    def __init__(self, announce: Callable[[str, str], None]) -> None:
        super().__init__(id="prompt", compact=True, select_on_focus=False)
        self.asked: BrowseCommand = NAMED["command"]
        """The command whose argument is being typed."""
        self.words: Words = {}
        self._announce = announce
        self._cycle: Cycle | None = None
        self._completed = ""
        """The line as the last completion has left it."""
        self._lines: dict[str, list[str]] = {}
        self._history: list[str] = []
        self._at = 0

    def validate_value(self, value: str) -> str:
        """Return the text without control characters, which pasted text may contain."""
        return "".join(letter for letter in value if letter.isprintable())

    def open(self, command: BrowseCommand, typed: str) -> None:
        """Show the line, to type an argument of the command."""
        self.asked = command
        self._history = self._lines.setdefault(command.name, [])
        self._at = len(self._history)
        self._cycle = None
        self.placeholder = "command" if command.name == "command" else f"{command.name}: {command.argument}"
        self._set(typed)
        self.display = True
        self.focus()
        self._explain()

    def note(self, line: str) -> None:
        """Add a line to the history."""
        if line:
            if line in self._history:
                self._history.remove(line)
            self._history.append(line)
            del self._history[:-MAX_HISTORY]

    def _set(self, line: str) -> None:
        self.value = line
        self.cursor_position = len(line)

    def _explain(self) -> None:
        """Show what can be typed."""
        asked = self.asked
        hint = f" {asked.name} {asked.argument}  (Tab completes, Enter runs, Esc cancels)"
        hint += f": {asked.help}".replace("`", "") if asked.name != "command" else ""
        self._announce(hint, "dim")

    def on_input_changed(self, message: Input.Changed) -> None:
        """Show what the typed command does."""
        word, space, _ = message.value.removeprefix(":").partition(" ")
        if self.asked.name == "command" and space and word in TYPED:
            self._announce(f" {TYPED[word].usage}  {TYPED[word].help}".replace("`", ""), "dim")

    def action_complete(self, direction: int) -> None:
        if self._cycle is None or self.value != self._completed:
            completions = candidates(self.value, self.asked, self.words)
            if not completions:
                self._announce(" no completion", "dim")
                return
            self._cycle = Cycle(completions)
        line = self._cycle.step(direction)
        only = len(self._cycle.found) == 1
        self._set(line + " " if only and not line.endswith("/") else line)
        self._completed = self.value
        if only:
            self._cycle = None
            self._explain()
        else:
            self._announce(self._cycle.shown(max(20, self.app.size.width)), "dim")

    def action_recall(self, step: int) -> None:
        number = max(0, min(self._at + step, len(self._history)))
        if number != self._at:
            self._at = number
            self._set(self._history[number] if number < len(self._history) else "")


def candidates(typed: str, asked: BrowseCommand, words: Words) -> list[str]:
    """Return the texts that the line can be completed to, at most MAX_CANDIDATES. `asked`: the command whose argument
    is typed; for the command line itself, a line with a command is typed."""
    if asked.completes != COMMAND:
        return _arguments(typed, asked, words)
    before, space, argument = typed.partition(" ")
    if not space:
        return [name for name in sorted([*TYPED, *ALIASES]) if name.startswith(before)]
    try:
        command = find_command(before.removeprefix(":"))
    except ValueError:
        return []
    return [f"{before} {word}" for word in _arguments(argument.lstrip(), command, words)]


def _arguments(typed: str, command: BrowseCommand, words: Words) -> list[str]:
    before, space, last = typed.rpartition(" ")
    before += space
    kinds = command.completes.split()
    found: list[str] = []
    for number, kind in enumerate(kinds):
        if kind == FILE:
            word, start = (last, before) if number and before else (typed, "")
            found += [start + path for path in file_names(word)]
        elif kind in words and (number == 0 or before):
            found += [before + word for word in words[kind]() if word.startswith(last) and word not in before.split()]
    return found[:MAX_CANDIDATES]


def file_names(typed: str) -> list[str]:
    """Return the files of this machine whose path begins like this; directories with a slash at the end."""
    directory, name = os.path.split(typed)
    try:
        with os.scandir(os.path.expanduser(directory) or ".") as entries:
            paths = []
            for entry in entries:
                if (
                    entry.name.startswith(name)
                    and (name or not entry.name.startswith("."))
                    and entry.name.isprintable()
                ):
                    paths.append(os.path.join(directory, entry.name) + ("/" if entry.is_dir() else ""))
                    if len(paths) == MAX_CANDIDATES:
                        break
    except (OSError, ValueError):
        return []
    return sorted(paths)


class Cycle:
    """The candidates that Tab goes through, one after the other."""

    def __init__(self, completions: list[str]) -> None:
        self.found = completions
        self.at = -1

    def step(self, direction: int) -> str:
        """Return the next candidate, or the previous one."""
        self.at = (self.at + direction) % len(self.found) if self.at >= 0 or direction > 0 else len(self.found) - 1
        return self.found[self.at]

    def shown(self, width: int) -> str:
        """Return the candidates from the current one on, as far as they fit."""
        words = [each.rpartition(" ")[2] or each for each in (*self.found[self.at :], *self.found[: self.at])]
        line = f" {self.at + 1} of {len(self.found)}: [{words[0]}]"
        for word in words[1:]:
            if len(line) + len(word) + 4 > width:
                line += " …"
                break
            line += "  " + word
        return line[:width]
