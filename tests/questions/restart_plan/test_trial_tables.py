"""Checks that the tables of releases and trials in docs/restart-plan.md and docs/kafka-releases.md equal the declared
differences and the results in docs/, and that no trial differs from the plan without a reason. KDUMP_REWRITE=1 writes
the tables again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from kdump.state.releases import DIFFERENCES, RUNNING, Difference
from tests.conftest import ROOT
from tests.generated_table import check_table
from tools.recovery_trials import DATA
from tools.upgrade_trials import PAIRS, STEPS

PLAN, RELEASES = ROOT / "docs" / "restart-plan.md", ROOT / "docs" / "kafka-releases.md"
Result = dict[str, Any]


def results(name: str) -> list[Result]:
    found: list[Result] = json.loads((ROOT / "docs" / f"{name}-trials.json").read_text())
    return found


def table(columns: Iterable[str], rows: Iterable[Iterable[str]], head: str = "") -> str:
    columns = list(columns)
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns), *(f"| {' | '.join(row)} |" for row in rows)]
    return head + "\n".join(lines) + "\n"


def agreement(name: str, what: str, differ: Iterable[bool]) -> str:
    """Return a sentence on the trials of a file."""
    differing = [*differ]
    others = differing.count(True)
    agreed = f"{differing.count(False)} as predicted in every point, {others} not: it has the reasons"
    return (
        f"- [{name}-trials.json]({name}-trials.json): {len(differing)} {what}, "
        + (agreed if others else "all as predicted in every point")
        + ".\n"
    )


TRIALS = {
    "restart": "starts on damaged disks",
    "start": "starts of 3.9.1 to 4.4.0 and what their clients see after the first checks",
    "replica": "starts of brokers whose replicas differ",
    "quorum": "starts of controllers whose disks were lost, damaged or formatted",
    "election": "elections among controllers whose disks differ",
    "full-disk": "starts on full or read-only disks",
}


def trials(name: str) -> str:
    found = results(name)
    *others, last = sorted({each.get("kafka", "") for each in found})
    by = f", by {', '.join(others)} and {last}" if others else ""
    return agreement(name, TRIALS[name] + by, (bool(each["differences"]) for each in found))


def test_no_trial_lost_what_the_plan_did_not_say() -> None:
    found = [(each["name"], line) for name in TRIALS for each in results(name) for line in each["differences"]]
    assert [each for each in found if "FALSE COMFORT" in each[1]] == []


def test_every_difference_has_a_reason() -> None:
    for name in TRIALS:
        found = results(name)
        assert found
        assert [each["name"] for each in found if each["differences"] and not each.get("explained")] == []


# --- Recoveries -------------------------------------------------------------------------------------------------------


def recoveries() -> str:
    found = results("recovery")
    ratios = [each["estimated"] / each["actual"] for each in found]
    inside = sum(each["estimatedLeast"] <= each["actual"] <= each["estimatedMost"] for each in found)
    largest = max(each["bytes"] for each in found) / 2**30
    return (
        f"[recovery-trials.json](recovery-trials.json): {len(found)} recoveries of up to {largest:.0f} GiB and "
        f"{max(each['logs'] or DATA[each['data']].logs for each in found):,} logs by brokers of 3.9.1 and 4.3.1 took "
        f"between {1 / max(ratios):.2f} and {1 / min(ratios):.2f} of the estimate; {inside} were in its range.\n"
    )


# --- Releases ---------------------------------------------------------------------------------------------------------


def releases(title: str, differences: dict[str, Difference]) -> str:
    rows = ([str(each.releases), each.does, each.ticket or each.where] for each in differences.values())
    return table(("releases", title, "KIP, ticket or class"), rows)


def upgrade(record: Result) -> str:
    if record["controller"]["starts"] and record["broker"]["starts"]:
        refused = any("Could not" in line for line in record.get("features", ()))
        return "starts" + ("; kafka-features refuses" if refused else "")
    text = "\n".join(record["controller"]["log"] + record["broker"]["log"])
    found = re.search(r"(No MetadataVersion with feature level \d+|feature [\w.]+ is not supported)", text)
    halts = "the controller halts" if not record["controller"]["starts"] else "the broker exits"
    return halts + (f": {found[1]}" if found else "")


def upgrades() -> str:
    """Return what real clusters did on the way to a newer release and back."""
    found = results("upgrade")
    pairs = "; ".join(f"{pair.old} and {pair.new}" for pair in PAIRS)
    lines = [f"Pairs: {pairs}.\n\n"]
    for step, _, _ in STEPS:
        did = dict.fromkeys(upgrade(each).partition(":")[0] for each in found if each["step"] == step)
        lines.append(f"- {step}: {', or '.join(did)}\n")
    return "".join(lines)


def test_every_step_of_every_pair_went_as_predicted() -> None:
    steps = [(pair.name, step, pair.version(which)) for pair in PAIRS for step, which, _ in STEPS]
    assert [(each["name"], each["step"], each["startedBy"]) for each in results("upgrade")] == steps
    assert not [each for each in results("upgrade") if each["differences"]]


TABLES = [
    *((PLAN, f"{name}-trials.json", lambda name=name: trials(name)) for name in TRIALS),
    (PLAN, "recovery-trials.json", recoveries),
    (RELEASES, "DIFFERENCES", lambda: releases("what a startup does", DIFFERENCES)),
    (RELEASES, "RUNNING", lambda: releases("what a running broker does", RUNNING)),
    (RELEASES, "upgrade-trials.json", upgrades),
]


@pytest.mark.parametrize(("page", "source", "made"), TABLES, ids=[f"{page.stem} {name}" for page, name, _ in TABLES])
def test_the_table_is_that_of_its_source(page: Any, source: str, made: Callable[[], str]) -> None:
    check_table(page, source, made())
