"""Writes tests/surface.txt: what a stranger may depend on from 1.0 on (docs/stability.md), one line each, sorted.

A test compares the file with the code, so that nothing of it goes, or comes, unnoticed. What differs from the list of
the last version has to be in the changelog; `python -m tools.surface --freeze` makes the list of the next one."""

from __future__ import annotations

import gzip
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import kdump
from kdump.all_answers import TYPES
from kdump.io.bundle.names import FORMAT
from kdump.problems import catalogue
from kdump.tables.declarations import RESULTS, TABLES
from tools.manual import ENVIRONMENT, overall, pages, variables

FILE = Path(__file__).parent.parent / "tests" / "surface.txt"
FROZEN = FILE.with_name("surface-1.0.txt.gz")
"""The list of the version in the name."""


def lines() -> Iterator[str]:
    """Yield the lines, in any order."""
    for kind, keys in TYPES.items():
        for key in keys:
            yield f"json {kind}.{key.name}: {key.type}{', optional' if key.optional else ''}"
    for code in catalogue.findings().values():
        yield f"finding {code.code}: {code.severity}"
    for problem in catalogue.all_problems().values():
        if problem.family in catalogue.OTHERS:
            yield f"problem {problem.code}"
    for page in (overall(), *pages()):
        for option in page.options:
            yield f"option {page.name} {', '.join(option.names)}{f' {option.metavar}' if option.metavar else ''}"
        for status, meaning in re.findall(r"\b(\d+) (?:if|for) ([^,;.]+)", page.status):
            yield f"status {page.name} {status}: {meaning}"
    for name in kdump.API:
        offered = getattr(kdump, name)
        yield f"api kdump.{name}"
        if inspect.isfunction(offered):
            for parameter in inspect.signature(offered).parameters.values():
                default = "" if parameter.default is parameter.empty else "=…"
                yield f"api kdump.{name}({parameter.name}{default})"
    for table in {**TABLES, **RESULTS}.values():
        for column in table.columns:
            yield f"table {table.name}.{column.name}: {column.type}"
    for names in (*ENVIRONMENT, *variables()):
        yield from (f"environment {name}" for name in names.split(", "))
    yield f"bundle format {FORMAT}"


def surface() -> str:
    return "".join(f"{line}\n" for line in sorted(set(lines())))


def changes() -> set[str]:
    """Return the lines that have come or gone since the frozen list."""
    return {*FILE.read_text().splitlines()} ^ {*gzip.decompress(FROZEN.read_bytes()).decode().splitlines()}


def name(line: str) -> str:
    """Return how the changelog names the subject of a line: --until of salvage is `salvage --until`."""
    kind, subject, *rest = line.split()
    options = [word.strip(",") for word in rest if word.startswith("--")]
    return " ".join([subject, *options[:1]]) if kind == "option" else subject.rstrip(":").partition("(")[0]


if __name__ == "__main__":
    FILE.write_text(surface())
    if "--freeze" in sys.argv:
        FROZEN.write_bytes(gzip.compress(surface().encode(), mtime=0))
    for each in sorted(changes()):
        print(f"to be in CHANGELOG.md: {name(each)} ({each})")
