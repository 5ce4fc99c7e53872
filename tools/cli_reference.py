"""Prints docs/cli.md: every command and option, from click's declarations."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from tools.manual import ENVIRONMENT, Option, Page, overall, pages, shared_options, variables

SHARED, SEVERAL = "#options-of-most-commands", "#options-of-several-commands"
HEAD = """# The commands

Every command with all its options, in the order of `kdump --help`; the manual pages contain the same (`man kdump`,
`man kdump-verify` …). A short form: `kdump verify --help`.

A path is a log directory, a partition directory, a segment or any other file of a broker's disk, a parent directory, or
a URL (extra `remote`). SIZE is in bytes, or with k, M or G in powers of 1024. RATE is a SIZE per second. TIME is
ISO-8601, epoch ms, or relative to now (-2h). A..B is a range that includes both ends; either end may be omitted.
"""


def cell(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*")


def option_row(option: Option) -> str:
    names = ", ".join(f"`{name}`" for name in option.names)
    choices = [f"`{choice}`" for choice in option.metavar.split("|")] if option.metavar else []
    value = " " + "|".join(choices) if choices else ""
    return f"- {names}{value}: {cell(option.help)}"


def option_table(options: list[Option]) -> str:
    """Return a line for each option; those that several commands have with the same meaning are named in one."""
    rows = [option_row(option) for option in options]
    own = [row for row in rows if row not in several()]
    named = [row[2 : row.index("`:") + 1] for row in rows if row in several()]
    return "\n".join([*own, *([f"- {', '.join(named)}: [as in several commands]({SEVERAL})"] if named else [])])


@cache
def several() -> frozenset[str]:
    """Return the lines of options that several commands have and that are long enough to be written once."""
    counts = Counter(option_row(option) for page in pages() for option in page.own_options)
    return frozenset(
        row for row, count in counts.items() if count > 2 and len(row.split()) > 12 and ": The same" not in row
    )


def shared() -> str:
    title, about, options = shared_options()
    return f"## {title}\n\n{about}\n\n{option_table(options)}\n"


def shared_by(page: Page) -> str:
    """Return which of the shared options a command has: those that it lacks, if they are fewer."""
    every = [next(name for name in reversed(option.names)) for option in shared_options()[2]]
    lacks = [name for name in every if name not in page.common]
    if len(lacks) < len(page.common):
        but = f", without {', '.join(f'`{name}`' for name in lacks)}" if lacks else ""
        return f"And the [options of most commands]({SHARED}){but}."
    return f"And, [as in most commands]({SHARED}), {', '.join(f'`{name}`' for name in page.common)}."


def section(page: Page) -> str:
    description = page.description
    if page.doc:  # which begins with the rest
        description = [re.split(r"(?<=[^.]\.) (?=[A-Z])", page.description[0])[0]]
    parts = [f"## kdump {page.name}", f"```text\n{page.usage}\n```", *description]
    parts.append(option_table(page.own_options))
    if page.common:
        parts.append(shared_by(page))
    if page.examples and not page.doc:
        parts.append("\n".join(["```sh", *page.examples, "```"]))
    parts += page.notes
    if page.status:
        parts.append(f"Exit status: {page.status}")
    if page.doc:
        parts.append(f"More: [{page.doc.removesuffix('.md')}]({page.doc})")
    return "\n\n".join(parts) + "\n"


def environment() -> str:
    rows = [f"- `{name}`: {said}" for name, said in (ENVIRONMENT | variables()).items()]
    return "\n".join(["## Environment", "", *rows]) + "\n"


def page() -> str:
    whole = overall()
    top = [HEAD, f"```text\n{whole.usage}\n```\n", option_table(whole.options) + "\n", shared()]
    top.append("\n".join(["## Options of several commands\n", *sorted(several()), ""]))
    return "\n".join([*top, *map(section, pages()), environment()])


if __name__ == "__main__":
    print(page(), end="")
