"""Helps to find a command: those in `kdump --help` by the question that they answer, those similar to a mistyped name,
and `kdump help NAME`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import click

HELP = "help"
"""`kdump help NAME` is the same as `kdump NAME --help`, and not a command of its own; `kdump help questions` and
`kdump help options` are pages."""
SECTIONS = {
    "doctor": "An incident: what do I do first?",
    "ls": "What is on this disk?",
    "stats": "How many records? Where is one? How do I get them out?",
    "verify": "Is it intact? Will the broker start?",
    "explain": "What does this message in a log mean?",
    "diff": "Where do replicas differ?",
    "groups": "What happened to groups, topics, transactions, producers?",
    "retention": "Why are these segments still there? What may be deleted?",
    "salvage": "What can be saved of damaged or deleted files?",
    "report": "How do I pass on what I found?",
    "scan": "How do I examine a hundred disks?",
    "dump-log": "Scripts and the shell",
}
"""The questions in `kdump --help`, by the first command that answers each: the following commands of `COMMANDS` answer
the same one."""
SUGGESTED = 3
"""Maximum number of commands suggested for a mistyped name."""
SIMILARITY = 0.65
"""Minimum similarity of a mistyped name and a command, as difflib measures it. Commands whose help mentions the word
come before less similar ones."""


def sections(commands: dict[str, str]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield each question with its commands and their help."""
    title, rows = "", list[tuple[str, str]]()
    for name, about in commands.items():
        if name in SECTIONS and rows:
            yield title, rows
            rows = []
        title = SECTIONS.get(name, title)
        rows.append((name, about))
    yield title, rows


def titles(commands: dict[str, str]) -> dict[str, str]:
    """Return the question that each command answers."""
    return {name: title for title, rows in sections(commands) for name, _ in rows}


def unknown_command(name: str, commands: dict[str, str]) -> click.UsageError:
    """Return the error for a command that does not exist, with the most similar ones: first by name, then by what their
    help mentions."""
    # Not at the top: every run imports this module.
    from kdump.io import file_system
    from kdump.render.escape import printable

    shown = printable(name)
    if os.sep in name or file_system.exists(name):
        what = "neither a file nor a directory" if file_system.exists(name) else "no such file or directory"
        return click.UsageError(f"{shown}: {what}")
    names = " or ".join(f"kdump {similar}" for similar in _similar(name.lower(), commands)[:SUGGESTED])
    hint = f"did you mean {names}?" if names else "kdump --help lists the commands"
    return click.UsageError(f"no such command: {shown}; {hint}")


def _similar(name: str, commands: dict[str, str]) -> list[str]:
    import difflib

    by_name = difflib.get_close_matches(name, commands, SUGGESTED, SIMILARITY)
    if by_name:
        return by_name
    word = re.compile(rf"\b{re.escape(name.rstrip('s'))}", re.IGNORECASE)
    by_help = [command for command, about in commands.items() if len(name) > 2 and word.search(about)]
    return by_help or difflib.get_close_matches(name, commands, SUGGESTED, SIMILARITY - 0.15)


def help_topic(args: list[str], commands: dict[str, str]) -> str:
    """Return the page of `kdump help questions` or `kdump help options`; empty for other words."""
    if args[:2] == [HELP, "questions"]:
        from kdump.command_line.guide import questions_page

        return questions_page(titles(commands))
    if args[:2] == [HELP, "options"]:
        from kdump.command_line.help_page import options_page

        return options_page()
    return ""


def as_help_option(args: list[str]) -> list[str]:
    """Return the words of `kdump help NAME …` as `kdump NAME --help`; other words unchanged."""
    if args[:1] != [HELP]:
        return args
    name = next((word for word in args[1:] if not word.startswith("-")), None)
    return ["--help"] if name is None or name == HELP else [name, "--help"]
