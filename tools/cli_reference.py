"""Prints docs/cli.md: every command and option, from click's declarations."""

from __future__ import annotations

from tools.manual import ENVIRONMENT, Option, Page, overall, pages

HEAD = """# The commands

Every command with all its options, in the order of `kdump --help`. This page is made from the declarations in the code
(`make docs`), and a test holds it to them. The same as manual pages: `man kdump`, `man kdump-verify` …; in short:
`kdump verify --help`.

A path is a log directory, the directory of a partition, a segment or any other file of a broker's disk, or a directory
above; a URL (extra `remote`). SIZE is in bytes, or with k, M or G for powers of 1024; RATE a SIZE a second; TIME is
ISO-8601, epoch ms, or back from now: -2h; A..B a range with both ends included, and either may be left out.
"""


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def option_row(option: Option) -> str:
    names = ", ".join(f"`{name}`" for name in option.names)
    choices = [f"`{choice}`" for choice in option.metavar.split("|")] if option.metavar else []
    value = " " + " \\| ".join(choices) if choices else ""
    return f"| {names}{value} | {cell(option.help)} |"


def section(page: Page) -> str:
    parts = [f"## kdump {page.name}", f"```text\n{page.usage}\n```", *page.description]
    parts.append("\n".join(["| option | |", "| --- | --- |", *map(option_row, page.options)]))
    if page.examples:
        parts.append("\n".join(["```sh", *page.examples, "```"]))
    parts += page.notes
    if page.status:
        parts.append(f"Exit status: {page.status}")
    if page.doc:
        parts.append(f"At work: [{page.doc.removesuffix('.md')}]({page.doc})")
    return "\n\n".join(parts) + "\n"


def environment() -> str:
    rows = [f"| `{name}` | {said} |" for name, said in ENVIRONMENT.items()]
    return "\n".join(["## Environment", "", "| variable | |", "| --- | --- |", *rows]) + "\n"


def page() -> str:
    whole = overall()
    top = "\n".join(["| option | |", "| --- | --- |", *map(option_row, whole.options)])
    return "\n".join([HEAD, f"```text\n{whole.usage}\n```\n", top + "\n", *map(section, pages()), environment()])


if __name__ == "__main__":
    print(page(), end="")
