"""Checks that the table of releases in docs/restart-plan.md equals the declared differences. KDUMP_REWRITE=1 writes it
again."""

from __future__ import annotations

import os
import re

from kdump.state.releases import DIFFERENCES
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "restart-plan.md"
TABLE = re.compile(r"(<!-- made from releases\.py [^>]*-->\n)(.*?)(<!-- end of releases -->)", re.DOTALL)


def test_the_table_is_that_of_the_declarations() -> None:
    lines = ["| releases | what a startup does | class | KIP or ticket |", "|---|---|---|---|"]
    for each in DIFFERENCES.values():
        lines.append(f"| {each.releases} | {each.does} | {each.where} | {each.ticket} |")
    text = PAGE.read_text()
    found = TABLE.search(text)
    assert found
    made = text[: found.start(2)] + "\n".join(lines) + "\n" + text[found.end(2) :]
    if os.environ.get("KDUMP_REWRITE"):
        PAGE.write_text(made)
    assert text == made or os.environ.get("KDUMP_REWRITE")
