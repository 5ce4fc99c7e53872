"""Checks that the tables of releases in docs/restart-plan.md and docs/kafka-releases.md equal the declared differences.
KDUMP_REWRITE=1 writes them again."""

from __future__ import annotations

import pytest

from kdump.state.releases import DIFFERENCES, RUNNING, Difference
from tests.conftest import ROOT
from tests.generated_table import check_table

PAGES = {
    "restart-plan.md": ("what a startup does", DIFFERENCES),
    "kafka-releases.md": ("what a broker does", RUNNING),
}


@pytest.mark.parametrize("name", PAGES)
def test_the_table_is_that_of_the_declarations(name: str) -> None:
    title, differences = PAGES[name]
    lines = [f"| releases | {title} | class | KIP or ticket |", "|---|---|---|---|", *map(row, differences.values())]
    check_table(ROOT / "docs" / name, "releases.py", "\n".join(lines) + "\n")


def row(each: Difference) -> str:
    return f"| {each.releases} | {each.does} | {each.where} | {each.ticket} |"
