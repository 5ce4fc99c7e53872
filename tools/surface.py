"""Writes tests/surface.txt: what a stranger may depend on from 1.0 on (docs/stability.md), one line each, sorted.

A test compares the file with the code, so that nothing of it goes, or comes, unnoticed."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import kdump
from kdump.all_answers import TYPES
from kdump.format.container import MAGIC
from kdump.problems import catalogue
from kdump.tables.declarations import RESULTS, TABLES
from tools.manual import overall, pages

FILE = Path(__file__).parent.parent / "tests" / "surface.txt"


def lines() -> Iterator[str]:
    """Yield the lines, in any order."""
    for kind, keys in TYPES.items():
        for key in keys:
            yield f"json {kind}.{key.name}: {key.type}{', optional' if key.optional else ''}"
    for code in catalogue.findings().values():
        yield f"finding {code.code}: {code.severity}"
    for name in catalogue.all_problems().keys() - catalogue.findings().keys():
        yield f"problem {name}"
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
    yield f"bundle container {MAGIC.decode('latin-1')!r}"


def surface() -> str:
    return "".join(f"{line}\n" for line in sorted(set(lines())))


if __name__ == "__main__":
    FILE.write_text(surface())
