"""Helps to find a command: the questions in `kdump --help`, the commands similar to a mistyped name, and `kdump help
NAME`."""

from __future__ import annotations

import os
import re

import click

from kdump.index import COMMANDS

HELP = "help"
"""`kdump help NAME` is the same as `kdump NAME --help`, and not a command of its own; `kdump help questions` and
`kdump help options` are pages."""
SECTIONS = {
    "incident": "An incident: what do I do first?",
    "disk": "What is on this disk?",
    "records": "How many records? Where is one? How do I get them out?",
    "intact": "Is it intact? Will the broker start?",
    "messages": "What does this message in a log mean?",
    "replicas": "Where do replicas differ?",
    "state": "What happened to groups, topics, transactions, producers?",
    "retention": "Why are these segments still there? What may be deleted?",
    "salvage": "What can be saved of damaged or deleted files?",
    "report": "How do I pass on what I found?",
    "fleet": "How do I examine a hundred disks?",
    "scripts": "Scripts and the shell",
}
"""The questions in `kdump --help`, by the sections that commands name (`listed`)."""
SUGGESTED = 3
"""Maximum number of commands suggested for a mistyped name."""
SIMILARITY = 0.65
"""Minimum similarity of a mistyped name and a command, as difflib measures it. Commands whose help mentions the word
come before less similar ones."""


def unknown_command(name: str) -> click.UsageError:
    """Return the error for a command that does not exist, with the most similar ones: first by name, then by what their
    help mentions."""
    # Not at the top: every run imports this module.
    from kdump.io import file_system
    from kdump.render.escape import printable

    shown = printable(name)
    if os.sep in name or file_system.exists(name):
        what = "neither a file nor a directory" if file_system.exists(name) else "no such file or directory"
        return click.UsageError(f"{shown}: {what}")
    names = " or ".join(f"kdump {similar}" for similar in _similar(name.lower())[:SUGGESTED])
    hint = f"did you mean {names}?" if names else "kdump --help lists the commands"
    return click.UsageError(f"no such command: {shown}; {hint}")


def _similar(name: str) -> list[str]:
    import difflib

    by_name = difflib.get_close_matches(name, COMMANDS, SUGGESTED, SIMILARITY)
    if by_name:
        return by_name
    word = re.compile(rf"\b{re.escape(name.rstrip('s'))}", re.IGNORECASE)
    by_help = [command for command, about in COMMANDS.items() if len(name) > 2 and word.search(about)]
    return by_help or difflib.get_close_matches(name, COMMANDS, SUGGESTED, SIMILARITY - 0.15)


def help_topic(words: list[str]) -> str:
    """Return the page of `kdump help questions` or `kdump help options`; empty for other words after `help`."""
    if words[:1] == ["questions"]:
        from kdump.command_line.guide import questions_page

        return questions_page()
    if words[:1] == ["options"]:
        from kdump.command_line.help_page import options_page

        return options_page()
    return ""


def as_help_option(words: list[str]) -> list[str]:
    """Return the words of `kdump help NAME …`, of which these follow `help`, as `kdump NAME --help`."""
    name = next((word for word in words if not word.startswith("-")), HELP)
    return ["--help"] if name == HELP else [name, "--help"]
