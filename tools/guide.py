"""Writes the tables of questions and commands into docs/index.md and README.md: what `kdump help questions` and `kdump
--help` show."""

from __future__ import annotations

import re

from kdump.cli import sections
from kdump.command_line.guide import Asked, by_section
from tools.manual import PAGES, ROOT

TABLE = re.compile(r"(?<=<!-- guide -->\n\n).*?(?=\n\n)", re.DOTALL)


def question_row(asked: Asked) -> str:
    page, mark, anchor = asked.page.partition("#")
    return f"    - {asked.question} [`{asked.command}`]({page}.md{mark}{anchor}){asked.more}"


def question_rows() -> list[str]:
    rows = []
    for title, questions in by_section():
        rows += [f"- **{title}**", *map(question_row, questions)]
    return rows


def command_rows() -> list[str]:
    rows = []
    for title, commands in sections():
        rows.append(f"| **{title}** | |")
        rows += [f"| [`{name}`](docs/{PAGES.get(name, name)}.md) | {about} |" for name, about in commands]
    return rows


def tables() -> dict[str, str]:
    """Return the text of each page with its table, by its path."""
    index = "\n".join(question_rows())
    readme = "\n".join(["| command | |", "| --- | --- |", *command_rows()])
    made = {"docs/index.md": index, "README.md": readme}
    return {name: _with_table((ROOT / name).read_text(), text) for name, text in made.items()}


def _with_table(page: str, table: str) -> str:
    return TABLE.sub(lambda _: table, page)


if __name__ == "__main__":
    for name, text in tables().items():
        (ROOT / name).write_text(text)
