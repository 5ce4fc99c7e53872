"""docs/restart-plan.md: the table of trials is that of docs/restart-trials.json. KDUMP_REWRITE=1 writes it anew."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from tests.conftest import ROOT

PAGE = ROOT / "docs" / "restart-plan.md"
TABLE = re.compile(r"(<!-- made from restart-trials\.json [^>]*-->\n)(.*?)(<!-- end -->)", re.DOTALL)


def row(result: dict[str, Any]) -> str:
    did, told = result["broker"], []
    if not did["starts"]:
        names = list(
            dict.fromkeys(name for x in result["foretold"]["reasons"] for name in re.findall(r"\w+Exception", x))
        )
        told.append("does not start" + (f": {names[0]}" if names else ""))
    elif did["offline"]:
        told.append("takes a log directory offline")
    broker = [facts["broker"] for facts in result["partitions"].values() if facts["broker"]]
    cut, strays = sum(len(facts["truncated"]) for facts in broker), sum(facts["stray"] for facts in broker)
    ends = sorted(
        f"{key.partition('/')[2]} ends at {facts['broker']['logEnd']}"
        for key, facts in result["partitions"].items()
        if facts["broker"] and facts["broker"]["truncated"]
    )
    if did["starts"]:
        told += [
            f"cuts {cut} file{'s' * (cut > 1)}" if cut else "",
            f"{strays} stray{'s' * (strays > 1)}" if strays else "",
        ]
        told += ends[:2] + (["…"] if len(ends) > 2 else [])
    said = ", ".join(filter(None, told)) or "starts"
    agrees = "yes" if not result["differences"] else result.get("explained", "NO")
    return f"| {result['disk']} | {result['what']} | {said} | {agrees} |"


def table() -> str:
    results = json.loads((ROOT / "docs" / "restart-trials.json").read_text())
    agreeing = sum(not result["differences"] for result in results)
    head = f"{len(results)} starts, of which {agreeing} went in every point as foretold.\n\n"
    lines = ["| disk | damage | what the broker did | foretold |", "|---|---|---|---|", *map(row, results)]
    return head + "\n".join(lines) + "\n"


def test_the_table_is_that_of_the_trials() -> None:
    text = PAGE.read_text()
    found = TABLE.search(text)
    assert found
    made = text[: found.start(2)] + table() + text[found.end(2) :]
    if os.environ.get("KDUMP_REWRITE"):
        PAGE.write_text(made)
    else:
        assert text == made
