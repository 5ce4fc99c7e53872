"""What real clusters did on the way to a newer release and back: docs/upgrade-trials.json. No broker runs here.
KDUMP_REWRITE=1 writes the table of docs/kafka-releases.md again."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.conftest import ROOT
from tests.generated_table import check_table
from tools.upgrade_trials import PAIRS, STEPS

PAGE = ROOT / "docs" / "kafka-releases.md"
RECORDS: list[dict[str, Any]] = json.loads((ROOT / "docs" / "upgrade-trials.json").read_text())


def test_every_step_of_every_pair_went_as_predicted() -> None:
    steps = [(pair.name, step, pair.version(which)) for pair in PAIRS for step, which, _ in STEPS]
    assert [(each["name"], each["step"], each["startedBy"]) for each in RECORDS] == steps
    assert not [each for each in RECORDS if each["differences"]]


def outcome(record: dict[str, Any]) -> str:
    if record["controller"]["starts"] and record["broker"]["starts"]:
        refused = any("Could not" in line for line in record.get("features", ()))
        return "starts" + ("; kafka-features refuses" if refused else "")
    text = "\n".join(record["controller"]["log"] + record["broker"]["log"])
    found = re.search(r"(No MetadataVersion with feature level \d+|feature [\w.]+ is not supported)", text)
    halts = "the controller halts" if not record["controller"]["starts"] else "the broker exits"
    return halts + (f": {found[1]}" if found else "")


def table() -> str:
    columns = [step for step, _, _ in STEPS]
    lines = [f"| from, to | {' | '.join(columns)} |", "|---|" + "---|" * len(columns)]
    for pair in PAIRS:
        here = {each["step"]: outcome(each) for each in RECORDS if each["name"] == pair.name}
        lines.append(f"| {pair.old}, {pair.new} | {' | '.join(here[step] for step in columns)} |")
    return "\n".join(lines) + "\n"


def test_the_table_is_that_of_the_trials() -> None:
    check_table(PAGE, "upgrade-trials.json", table())
