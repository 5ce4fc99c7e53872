"""Checks that the tables of the trials with several brokers, with controllers, and with full or read-only log
directories in docs/restart-plan.md equal the results in docs/, and that no trial differs from the plan without a
reason. KDUMP_REWRITE=1 writes the tables again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.generated_table import check_table

PAGE = ROOT / "docs" / "restart-plan.md"
Result = dict[str, Any]


def replicas(result: Result) -> list[str]:
    told = []
    for name, facts in result["partitions"].items():
        text = f"{name}: " + (f"{facts['leader']} leads" if facts["leader"] else "no leader")
        text += "".join(f", {broker} truncates to {offset}" for broker, offset in facts["truncated"].items())
        told.append(text + f", {facts['lost']} lost")
    return [result["what"], ", ".join(map(str, result["order"])), "; ".join(told)]


def quorum(result: Result) -> list[str]:
    told = []
    for node, facts in result["nodes"].items():
        did = facts["controller"]
        epoch = f" in epoch {did['epoch']}" if did.get("epoch") else ""
        told.append(
            f"{node} {'starts' if did['starts'] else 'does not come up'}: {did.get('state', 'no state')}{epoch}"
        )
    return [result["what"], "; ".join(told)]


def full_disk(result: Result) -> list[str]:
    did = result["broker"]
    offline = f", {', '.join(did['offline'])} goes offline" if did["offline"] else ""
    return [result["disk"], result["what"], f"{'starts' if did['starts'] else 'does not start'}{offline}"]


TABLES: dict[str, tuple[list[str], Callable[[Result], list[str]]]] = {
    "replica": (["what happened", "start order", "what the brokers did"], replicas),
    "quorum": (["what happened", "first state of each controller"], quorum),
    "full-disk": (["disk", "log directory", "what the broker did"], full_disk),
}


def results(name: str) -> list[Result]:
    found: list[Result] = json.loads((ROOT / "docs" / f"{name}-trials.json").read_text())
    return found


def table(name: str) -> str:
    columns, row = TABLES[name]
    found = results(name)
    agreeing = sum(not each["differences"] for each in found)
    lines = [["case", *columns, "as predicted"], ["---"] * (len(columns) + 2)]
    for each in found:
        lines.append([each["name"], *row(each), "yes" if not each["differences"] else each.get("explained", "NO")])
    head = f"{len(found)} trials, of which {agreeing} went as predicted in every point.\n\n"
    return head + "".join(f"| {' | '.join(line)} |\n" for line in lines)


@pytest.mark.parametrize("name", TABLES)
def test_the_table_is_that_of_the_trials(name: str) -> None:
    check_table(PAGE, f"{name}-trials.json", table(name))


@pytest.mark.parametrize("name", TABLES)
def test_every_difference_has_a_reason(name: str) -> None:
    assert results(name)
    assert [each["name"] for each in results(name) if each["differences"] and not each.get("explained")] == []
