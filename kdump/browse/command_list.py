"""How the commands of `kdump browse` are declared: name, keys, argument and function, once. The key bindings, the
completion of the command line, the help screen and the table in docs/browse.md derive from the list that results."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, NamedTuple

MOVE, GO, SHOW = "Move", "Go", "Show"
"""Groups of the help screen."""
COLUMN, DIRECTION, FILE, OPTION, PART = "column", "direction", "file", "option", "part"
KEY, MARK, SCOPE, COMMAND = "key", "mark", "scope", "command"
"""What the argument of a command is completed with."""


class BrowseCommand(NamedTuple):
    """A command. `keys`: Textual's names of its keys; `label`: the keys as shown; `argument`: its placeholder, in
    brackets if it may be left out. `help` has no full stop. Rows without a name are keys of the panes. `run` gets the
    main screen and the typed argument, and raises ValueError if that is wrong."""

    name: str
    help: str
    group: str
    keys: tuple[str, ...] = ()
    label: str = ""
    argument: str = ""
    completes: str = ""
    alias: str = ""
    run: Callable[[Any, str], None] = lambda screen, argument: None

    @property
    def needs_argument(self) -> bool:
        """Whether it cannot run without an argument."""
        return bool(self.argument) and not (self.argument.startswith("[") and self.argument.endswith("]"))

    @property
    def usage(self) -> str:
        """The command as typed, with the placeholder of its argument."""
        return f":{self.name} {self.argument}".rstrip()


COMMANDS: list[BrowseCommand] = []
NAMED: dict[str, BrowseCommand] = {}
ALIASES: dict[str, BrowseCommand] = {}
TYPED: dict[str, BrowseCommand] = {}
"""The commands that can be typed on the command line."""


def pane_keys(label: str, help: str) -> None:
    """Declare keys of the panes."""
    COMMANDS.append(BrowseCommand("", help, MOVE, (), label))


def command(
    help: str, group: str, keys: str = "", label: str = "", argument: str = "", completes: str = "", alias: str = ""
) -> Callable[[Callable[[Any, str], None]], Callable[[Any, str], None]]:
    """Declare a command of the name of the function. `keys`: separated by spaces; `label`: if they are shown
    otherwise."""

    def declare(run: Callable[[Any, str], None]) -> Callable[[Any, str], None]:
        name = run.__name__.rstrip("_")
        made = BrowseCommand(name, help, group, tuple(keys.split()), label or keys, argument, completes, alias, run)
        COMMANDS.append(made)
        NAMED[name] = made
        if name != "command":
            TYPED[name] = made
        if alias:
            ALIASES[alias] = made
        return run

    return declare


def find_command(word: str) -> BrowseCommand:
    """Return the command with this name or alias, or the only one that begins so. Raises ValueError, with the most
    similar names."""
    if word in TYPED:
        return TYPED[word]
    if word in ALIASES:
        return ALIASES[word]
    begins = [name for name in TYPED if word and name.startswith(word)]
    if len(begins) == 1:
        return TYPED[begins[0]]
    if begins:
        raise ValueError(f":{word} is ambiguous: {', '.join(begins)}")
    similar = difflib.get_close_matches(word.lower(), [*TYPED, *ALIASES], 2, 0.65)
    hint = f"did you mean {' or '.join(':' + name for name in similar)}?" if similar else "press ? for the commands"
    raise ValueError(f"there is no command :{word}; {hint}")


def parse_command(line: str) -> tuple[BrowseCommand, str] | None:
    """Return the command of a typed line and its argument; None for an empty line. A line that begins with a digit or @
    is a place to go to. Raises ValueError."""
    line = line.strip().removeprefix(":").strip()
    if not line:
        return None
    if line[0].isdecimal() or line[0] == "@":
        return NAMED["go"], line
    if line[0] == "/":
        return NAMED["search"], line[1:]
    word, _, argument = line.partition(" ")
    command = find_command(word)
    argument = argument.strip()
    if argument and not command.argument:
        raise ValueError(f":{command.name} takes no argument")
    return command, argument


def help_text(width: int = 78) -> str:
    """Return the text of the help screen."""
    from textwrap import wrap

    indent = 22
    lines: list[str] = []
    for group in (MOVE, GO, SHOW):
        lines += ["", group] if lines else [group]
        for command in (each for each in COMMANDS if each.group == group):
            shown = command.usage if command.name and command.name != "command" else ""
            words = [command.label] if command.label else []
            words += [shown] if shown else []
            left = "  " + "  ".join(words)
            about = command.help.replace("`", "")
            first, *rest = wrap(about, max(20, width - indent)) or [""]
            lines += [f"{left:<{indent}}{first}"] if len(left) < indent else [left, " " * indent + first]
            lines += [" " * indent + each for each in rest]
    return "\n".join([*lines, "", "Nothing is written to the disk that is read."])
