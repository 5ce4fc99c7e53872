"""Prints docs/cli.md: every command and option, from click's declarations."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import pairwise

from tools.manual import ENVIRONMENT, ROOT, Option, Page, overall, pages, shared_options, variables
from tools.text_columns import block, columns

ALIKE = ("--topic", "--partition", "--kafka-version", "--properties", "--now", "--quiet", "--transaction-timeout")
"""Options that mean the same in all commands, whatever verb their help begins with."""
LONG = 8
"""Words of an option's help that are written once if two commands have it."""
SHARED, SEVERAL = "#options-of-most-commands", "#options-of-several-commands"
HEAD = """# The commands

Every command with all its options, in the order of `kdump --help`; the manual pages contain the same (`man kdump`,
`man kdump-verify` …). A short form: `kdump verify --help`.

A path is a log directory, a partition directory, a segment or any other file of a broker's disk, a parent directory, or
a URL (extra `remote`). SIZE is in bytes, or with k, M or G in powers of 1024. RATE is a SIZE per second. TIME is
ISO-8601, epoch ms, or relative to now (-2h). A..B is a range that includes both ends; either end may be omitted.

The exit status is 0 on success, and 2 for a usage error, or if something could not be read (the rest is shown) or a log
does not reach the offset in `--as-of`. Others are stated here, or on the command's page.
"""
ON_PAGE = re.compile(r"^(?:\| exit status \||Exit status:)", re.MULTILINE)
"""A page that states the exit statuses of its command."""
USUAL = re.compile(
    r"0(?: on success, 2|, or 2) for a usage error(?:,(?: or)? if (?:something|a path) could not be read"
    r"(?: \(the (?:rest is|others are) shown\))?)?(?:, or if (?:a log|the metadata) does not (?:reach|cover) .*)?\."
)


Row = tuple[str, str]
"""An option as it is typed, and its help."""


def option_row(option: Option) -> Row:
    return ", ".join(option.names) + (f" {option.metavar}" if option.metavar else ""), option.help


def option_table(options: list[Option]) -> str:
    """Return the options in columns; those that several commands have with the same meaning are named after them."""
    rows = [option_row(option) for option in options]
    elsewhere = [is_elsewhere(option.names[-1], row) for option, row in zip(options, rows)]
    own = [row for row, is_named in zip(rows, elsewhere) if not is_named]
    named = [f"`{option.names[-1]}`" for option, is_named in zip(options, elsewhere) if is_named]
    parts = [block(columns(own))] if own else []
    return "\n\n".join([*parts, *([f"[Shared]({SEVERAL}): {', '.join(named)}."] if named else [])])


def is_elsewhere(name: str, row: Row) -> bool:
    """Return True if an option is described with those that several commands have, and has the same default."""
    there = several().get(name, ("", ""))
    return row == there or (name in ALIKE and row[1].partition("  [")[2] == there[1].partition("  [")[2])


@cache
def several() -> dict[str, Row]:
    """Return the lines of options that several commands have and that are long enough to be written once, by name."""
    every = [(option.names[-1], option_row(option)) for page in pages() for option in page.own_options]
    said = {name for (name, _), (_, after) in pairwise(every) if after[1].startswith("The same")}
    often = {
        name: row
        for (name, row), count in reversed(Counter(every).most_common())
        if name in ALIKE
        or (count > 1 and len(row[1].split()) > LONG and name not in said and not row[1].startswith("The same"))
    }
    return dict(sorted(often.items()))


def shared() -> str:
    title, about, options = shared_options()
    return f"## {title}\n\n{about}\n\n{option_table(options)}\n"


def shared_by(page: Page) -> str:
    """Return which of the shared options a command has: those that it lacks, if they are fewer."""
    every = [next(name for name in reversed(option.names)) for option in shared_options()[2]]
    lacks = [name for name in every if name not in page.common]
    if len(lacks) < len(page.common):
        but = f" but {', '.join(f'`{name}`' for name in lacks)}" if lacks else ""
        return f"[All common ones]({SHARED}){but}."
    return f"[Common]({SHARED}): {', '.join(f'`{name}`' for name in page.common)}."


def section(page: Page) -> str:
    parts = [f"## kdump {page.name}", f"`{page.usage}`"]
    if page.doc:  # which begins with what the command does
        parts[1] = f"[`{page.usage}`]({page.doc})"
    else:
        parts += page.description
    if page.own_options:
        parts.append(option_table(page.own_options))
    if page.common:
        parts.append(shared_by(page))
    if page.examples and not page.doc:
        parts.append("\n".join(["```sh", *page.examples, "```"]))
    if not page.doc:
        parts += page.notes
    is_on_page = page.doc and ON_PAGE.search((ROOT / "docs" / page.doc).read_text())
    if page.status and not is_on_page and not USUAL.fullmatch(page.status):
        parts.append(f"Exit status: {page.status}")
    return "\n\n".join(parts) + "\n"


def environment() -> str:
    rows = [f"- `{name}`: {said}" for name, said in ENVIRONMENT.items()]
    rows.append(f"- {', '.join(f'`{name}`' for name in variables())}: the [option]({SHARED}) of that name.")
    return "\n".join(["## Environment", "", *rows]) + "\n"


def page() -> str:
    whole = overall()
    top = [HEAD, f"```text\n{whole.usage}\n```\n", option_table(whole.options) + "\n", shared()]
    rows = block(columns([*several().values()]))
    about = "The `--help` of each says what it does with them: *shared* below."
    top.append(f"## Options of several commands\n\n{about}\n\n{rows}\n")
    return "\n".join([*top, *map(section, pages()), environment()])


if __name__ == "__main__":
    print(page(), end="")
