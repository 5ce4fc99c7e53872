"""Compares kdump.restart_plan with what real brokers of every release did: docs/release-trials.json. No broker runs
here. KDUMP_REWRITE=1 writes the tables of docs/restart-plan.md again."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from tests.conftest import RELEASES, ROOT, few, sample
from tests.each_case import each_case
from tests.generated_table import check_table
from tests.questions.restart_plan.test_trial_tables import summary
from tools.trials.release import RELEASES as TRIED
from tools.trials.release_record import Start, compared, starts

PAGE = ROOT / "docs" / "restart-plan.md"
RECORDS = {each["key"]: each for each in json.loads((ROOT / "docs" / "release-trials.json").read_text())}
STARTS = [start for start in starts(RELEASES) if start.key in RECORDS]
OWN = [start for start in STARTS if start.release == start.started_by]
CROSSING = [start for start in STARTS if start.release != start.started_by]
AT_LEAST = 25
"""Number of damages that each release has been started on."""


def test_the_record_is_whole() -> None:
    """Every release has been started on enough damages, and all differences are explained."""
    assert list(RECORDS) == [start.key for start in STARTS]
    assert set(TRIED) == {start.release for start in OWN}
    assert min(Counter(start.release for start in OWN if not start.is_undamaged).values()) >= AT_LEAST
    assert {each["name"] for each in RECORDS.values() if each["differences"] and not each.get("explained")} == set()


@pytest.mark.sampled
@pytest.mark.parametrize("name", few(TRIED, 6))
def test_every_startup(name: str) -> None:
    """The current plan for a release equals what its broker did, except for the explained differences."""
    check([start for start in OWN if start.release == name], 45, name)


@pytest.mark.sampled
def test_every_upgrade_and_downgrade() -> None:
    check(CROSSING, 9, "crossing")


def check(found: list[Start], one_in: int, name: str) -> None:
    wrong = {}
    for start in sample(found, one_in, name):
        record = RECORDS[start.key]
        differing = compared(start, RELEASES, record, RECORDS)
        if differing != record["differences"]:
            wrong[start.key] = differing
    assert not wrong


@each_case("start", [start for start in OWN if start.is_undamaged], ids=lambda start: start.key)
def test_a_healthy_disk_starts(start: Start) -> None:
    """Real brokers have started on all of these, and served every record: kdump promises no loss, and predicts none."""
    record = RECORDS[start.key]
    assert record["broker"]["starts"]
    assert not record["differences"]


# --- the tables of docs/restart-plan.md ---


def label(name: str) -> str:
    version, _, mode = name.rpartition("-")
    other = sum(each.version == version for each in TRIED.values()) > 1
    return f"{version} ({'ZooKeeper' if mode == 'zk' else 'KRaft'})" if other else version


def outcome(start: Start) -> str:
    """Return what the broker did, in words."""
    record = RECORDS[start.key]
    broker, told = record["broker"], []
    if not broker["starts"]:
        text = "\n".join(broker["log"])
        found = re.search(r"\b(\w+(?:Exception|Error))\b|\b(INCONSISTENT_\w+)", text)
        return "does not start" + (f": {found[1] or found[2]}" if found else "")
    if broker["offline"]:
        return "takes a log directory offline"
    ground = {} if start.is_undamaged else RECORDS[start.ground]["partitions"]
    here = {key.partition("/")[2]: facts for key, facts in record["partitions"].items() if facts}
    truncated = sum(len(facts["truncated"]) for facts in here.values())
    told.append(f"truncates {truncated} file{'s' * (truncated > 1)}" if truncated else "")
    for words, moved in (("stray", "stray"), ("to be deleted", "deleted")):
        names = [key for key, facts in here.items() if facts.get(moved)]
        told.append(f"{names[0] if len(names) == 1 else len(names)} {words}" if names else "")
    for key, facts in here.items():
        was = ground.get(f"broker/{key}", facts)
        if facts["logEnd"] != was["logEnd"]:
            told.append(f"{key} ends at {facts['logEnd']} instead of {was['logEnd']}")
        elif facts["logStart"] != was["logStart"]:
            told.append(f"{key} starts at {facts['logStart']} instead of {was['logStart']}")
    return ", ".join(filter(None, told)) or "starts"


def agreement(found: list[Start]) -> str:
    differing = [start for start in found if RECORDS[start.key]["differences"]]
    if not differing:
        return "yes"
    reasons: dict[str, list[str]] = {}
    for start in differing:
        reasons.setdefault(RECORDS[start.key].get("explained", "NO"), []).append(label(start.release))
    if len(reasons) == 1 and len(differing) == len(found):
        return next(iter(reasons))
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())


def tables() -> str:
    agreeing = sum(not each["differences"] for each in RECORDS.values())
    lines = [f"{len(RECORDS)} starts, of which {agreeing} went as predicted in every point.", ""]
    lines.append(summary((start.recipe.name, outcome(start)) for start in OWN))
    lines += ["| recipe | disk | damage | why not as predicted |", "|---|---|---|---|"]
    for recipe in dict.fromkeys(start.recipe for start in OWN):
        agreed = agreement([start for start in OWN if start.recipe is recipe])
        if agreed != "yes":
            lines.append(f"| {recipe.name} | {recipe.disk} | {recipe.what} | {agreed} |")
    lines += ["", "A release started on the disk of another one:", ""]
    lines += ["| the disk of | is started by | after | what the broker did | as predicted |", "|---|---|---|---|---|"]
    for start in CROSSING:
        after = "a clean shutdown" if start.recipe.name == "clean" else "kill -9"
        names = f"{label(start.release)} | {label(start.started_by)}"
        lines.append(f"| {names} | {after} | {outcome(start)} | {agreement([start])} |")
    return "\n".join(lines) + "\n"


def test_the_tables_are_those_of_the_trials() -> None:
    check_table(PAGE, "release-trials.json", tables())
