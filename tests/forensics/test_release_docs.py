"""Checks that the tables of releases in docs/restart-plan.md and docs/kafka-releases.md equal the declared differences.
KDUMP_REWRITE=1 writes them again."""

from __future__ import annotations

import os
import re

import pytest

from kdump.state.releases import DIFFERENCES, RUNNING, Difference
from tests.conftest import ROOT

PAGES = {
    "restart-plan.md": ("what a startup does", DIFFERENCES),
    "kafka-releases.md": ("what a broker does", RUNNING),
}
TABLE = re.compile(r"(<!-- made from releases\.py [^>]*-->\n)(.*?)(<!-- end of releases -->)", re.DOTALL)


@pytest.mark.parametrize("name", PAGES)
def test_the_table_is_that_of_the_declarations(name: str) -> None:
    title, differences = PAGES[name]
    page = ROOT / "docs" / name
    lines = [f"| releases | {title} | class | KIP or ticket |", "|---|---|---|---|", *map(row, differences.values())]
    text = page.read_text()
    found = TABLE.search(text)
    assert found
    made = text[: found.start(2)] + "\n".join(lines) + "\n" + text[found.end(2) :]
    if os.environ.get("KDUMP_REWRITE"):
        page.write_text(made)
    assert text == made or os.environ.get("KDUMP_REWRITE")


def row(each: Difference) -> str:
    return f"| {each.releases} | {each.does} | {each.where} | {each.ticket} |"
