"""Checks that the table of trials in docs/restart-plan.md equals docs/restart-trials.json. KDUMP_REWRITE=1 writes it
again."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.conftest import ROOT
from tests.generated_table import check_table

PAGE = ROOT / "docs" / "restart-plan.md"


def row(result: dict[str, Any], ground: dict[str, int]) -> str:
    """Return a line of the table. `ground`: the log end offsets without damage."""
    did, told = result["broker"], []
    if not did["starts"]:
        names = [name for x in result["predicted"]["reasons"] for name in re.findall(r"\w+Exception", x)]
        told.append("does not start" + (f": {names[0]}" if names else ""))
    elif did["offline"]:
        told.append("takes a log directory offline")
    else:
        broker = [facts["broker"] for facts in result["partitions"].values() if facts["broker"]]
        cut, strays = sum(len(facts["truncated"]) for facts in broker), sum(facts["stray"] for facts in broker)
        told.append(f"truncates {cut} file{'s' * (cut > 1)}" if cut else "")
        told.append(f"{strays} stray director{'ies' if strays > 1 else 'y'}" if strays else "")
        ends = {key.partition("/")[2]: end for key, end in result["logEnds"].items()}
        other = [
            f"{key} ends at {end} instead of {ground[key]}" for key, end in ends.items() if ground.get(key, end) != end
        ]
        told += other[:2] + (["…"] if len(other) > 2 else [])
    said = ", ".join(filter(None, told)) or "starts"
    agrees = "yes" if not result["differences"] else result.get("explained", "NO")
    return f"| {result['name']} | {result['disk']} | {result['what']} | {said} | {agrees} |"


def table() -> str:
    results = json.loads((ROOT / "docs" / "restart-trials.json").read_text())
    agreeing = sum(not result["differences"] for result in results)
    head = f"{len(results)} starts, of which {agreeing} went as predicted in every point.\n\n"
    undamaged = {"clean-1": "clean", "crash-1": "crash"}
    ground = {
        disk: {key.partition("/")[2]: end for key, end in result["logEnds"].items()}
        for disk, name in undamaged.items()
        for result in results
        if result["name"] == name
    }
    lines = ["| recipe | disk | damage | what the broker did | as predicted |", "|---|---|---|---|---|"]
    return head + "\n".join([*lines, *(row(result, ground.get(result["disk"], {})) for result in results)]) + "\n"


def test_the_table_is_that_of_the_trials() -> None:
    check_table(PAGE, "restart-trials.json", table())
