"""The commands of `kdump browse`: their names, keys and arguments, declared once. The key bindings, the completion of
the command line, the help screen and the table in docs/browse.md derive from this list."""

from __future__ import annotations

import difflib
from typing import NamedTuple

MOVE, GO, SHOW = "Move", "Go", "Show"
"""Groups of the help screen."""
COLUMN, DIRECTION, FILE, OPTION, PART = "column", "direction", "file", "option", "part"
KEY, MARK, SCOPE, COMMAND = "key", "mark", "scope", "command"
"""What the argument of a command is completed with."""


class BrowseCommand(NamedTuple):
    """A command. `keys`: Textual's names of its keys; `label`: the keys as shown; `argument`: its placeholder, in
    brackets if it may be left out. `help` has no full stop. Rows without a name are keys of the panes."""

    name: str
    help: str
    group: str
    keys: tuple[str, ...] = ()
    label: str = ""
    argument: str = ""
    completes: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def needs_argument(self) -> bool:
        """Whether it cannot run without an argument."""
        return bool(self.argument) and not (self.argument.startswith("[") and self.argument.endswith("]"))

    @property
    def usage(self) -> str:
        """The command as typed, with the placeholder of its argument."""
        return f":{self.name} {self.argument}".rstrip()


def _pane(label: str, help: str) -> BrowseCommand:
    return BrowseCommand("", help, MOVE, (), label)


COMMANDS = (
    _pane("↑ ↓ PgUp PgDn Home End, j k Space G", "move in the focused pane"),
    _pane("Tab, Shift+Tab", "switch to the next or previous pane: tree, table, hexdump"),
    _pane(
        "Enter, →, l",
        "open: partition, segment, batch, record, field; in the hexdump, go to the field of the selected line",
    ),
    BrowseCommand(
        "out",
        "go up one level; Esc first stops a running task",
        MOVE,
        ("left", "backspace", "h"),
        "Backspace, ←, h, Esc",
    ),
    BrowseCommand("zoom", "show only the focused pane, or all panes again", MOVE, ("z",), "z"),
    BrowseCommand(
        "command",
        "type a command of this list; Tab completes names, columns and files, ↑ repeats earlier lines",
        GO,
        ("colon",),
        ":",
        "COMMAND",
        COMMAND,
    ),
    BrowseCommand(
        "go",
        "go to an offset (`42`), a byte of the file (`@306`), or a time (`2026-11-21T07:58`, `-2h`): "
        "the first record that is not older",
        GO,
        ("g",),
        "g",
        "WHERE",
    ),
    BrowseCommand("offset", "go to the record with this offset, or the next one", GO, argument="OFFSET"),
    BrowseCommand("time", "go to the first record that is not older", GO, argument="TIME"),
    BrowseCommand(
        "search",
        "search keys, values and headers after the current position with a regular expression, continuing through "
        "later segments; in a list of partitions or files, search its rows. Without REGEX, repeat the last search",
        GO,
        ("slash",),
        "/",
        "REGEX",
    ),
    BrowseCommand("next", "go to the next finding of kdump verify, which runs in the background", GO, ("n",), "n"),
    BrowseCommand("previous", "go to the previous finding", GO, ("N",), "N"),
    BrowseCommand("findings", "list all findings", GO, ("v",), "v", aliases=("verify",)),
    BrowseCommand("transactions", "list transactions", GO, ("t",), "t"),
    BrowseCommand(
        "find",
        "search all partitions of the topic for records with exactly this key (or its bytes, `0x…`), in the "
        "background; without KEY, show what the last search has found",
        GO,
        ("K",),
        "K",
        "KEY",
        KEY,
    ),
    BrowseCommand(
        "histogram",
        "show records or bytes per time bin, of the current segment or partition, or of what is named (`segment`, "
        "`partition`, `topic`, `all`); Enter goes to the first batch of a bin",
        GO,
        ("H",),
        "H",
        "[SCOPE]",
        SCOPE,
    ),
    BrowseCommand("mark", "set a mark here: a letter or digit, for this session", GO, ("m",), "m LETTER", "[LETTER]"),
    BrowseCommand(
        "jump",
        "go to a mark, in whatever segment or partition it is; `''` goes back to where the last jump began",
        GO,
        ("apostrophe",),
        "' LETTER",
        "[LETTER]",
        MARK,
    ),
    BrowseCommand("marks", "list the marks", GO, ("M",), "M"),
    BrowseCommand(
        "filter",
        "filter batches and records with the filter options of kdump inspect, typed as on the command line: "
        "`--key a --time -2h..`; empty input removes the filter",
        SHOW,
        ("f",),
        "f",
        "OPTIONS",
        OPTION,
    ),
    BrowseCommand(
        "sort",
        "sort the table by a column, which a list offers: the largest number first, or the smallest text or time; "
        "`:sort COLUMN desc` and `:sort off` need no list",
        SHOW,
        ("s",),
        "s",
        "[COLUMN]",
        f"{COLUMN} {DIRECTION}",
    ),
    BrowseCommand("reverse", "sort the other way round", SHOW, ("S",), "S"),
    BrowseCommand("full", "show values in full (up to 64 KiB), or truncated again", SHOW, ("x",), "x"),
    BrowseCommand(
        "reload",
        "read the files again, if a broker has written to them; the bottom line shows when it has",
        SHOW,
        ("r",),
        "r",
    ),
    BrowseCommand(
        "copy", "copy the batch, record, entry, segment or partition as JSON, and show it", SHOW, ("y",), "y"
    ),
    BrowseCommand(
        "save",
        "save the value of the record, the bytes of the field or batch, or what is named (`value`, `key`, "
        "`header:NAME`, `batch`, `bytes`, `json`) to a file; asks before it overwrites one",
        SHOW,
        ("w",),
        "w",
        "[PART] FILE",
        f"{PART} {FILE}",
        aliases=("write",),
    ),
    BrowseCommand("shell", "show the kdump commands that print the current view", SHOW, ("c",), "c"),
    BrowseCommand("help", "show the keys and commands", SHOW, ("question_mark", "f1"), "?, F1"),
    BrowseCommand("quit", "quit", SHOW, ("q", "ctrl+c", "ctrl+q"), "q", aliases=("exit",)),
)

NAMED = {command.name: command for command in COMMANDS if command.name}
ALIASES = {alias: command for command in COMMANDS for alias in command.aliases}
TYPED = {name: command for name, command in NAMED.items() if name != "command"}
"""The commands that can be typed on the command line."""


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
            text = command.help.replace("`", "")
            first, *rest = wrap(text, max(20, width - indent)) or [""]
            lines += [f"{left:<{indent}}{first}"] if len(left) < indent else [left, " " * indent + first]
            lines += [" " * indent + each for each in rest]
    return "\n".join([*lines, "", "Nothing is written to the disk that is read."])
