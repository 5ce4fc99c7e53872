"""Checks that the table of recoveries in docs/restart-plan.md equals docs/recovery-trials.json. KDUMP_REWRITE=1 writes
it again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.generated_table import check_table
from tools.recovery_trials import DATA

PAGE = ROOT / "docs" / "restart-plan.md"
TRIALS = ROOT / "docs" / "recovery-trials.json"
HEAD = (
    "logs",
    "segments",
    "GiB",
    "batches",
    "threads",
    "disk",
    "measured",
    "Kafka",
    "estimated",
    "range",
    "took",
    "estimated / took",
)


def size(count: int) -> str:
    return f"{count} B" if count < 1024 else f"{count >> 10} KiB" if count < 1 << 20 else f"{count >> 20} MiB"


def row(result: dict[str, Any]) -> str:
    data = DATA[result["data"]]
    batches = size(data.batch_size) + (f", {data.codec}" if data.codec != "none" else "")
    without = ", ".join(result["without"][:1])
    remarks = ", ".join(
        filter(
            None,
            [
                f"in {result['dirs']} log directories" if result["dirs"] > 1 else "",
                f"each with {result['flushed']} more segments below the recovery point" if result["flushed"] else "",
                f"without .{without}" if without else "",
            ],
        )
    )
    cells = [
        f"{result['logs'] or data.logs:,}" + (f", {remarks}" if remarks else ""),
        f"{result['segments']:,}",
        f"{result['bytes'] / 2**30:.1f}",
        batches,
        str(result["threads"]),
        str(result["speed"] or "-"),
        f"{result['readSpeed'] / 1e6:.0f}" if result["readSpeedFrom"] == "measured" else "assumed",
        result["release"],
        f"{result['estimated']:.1f} s",
        f"{result['estimatedLeast']:.0f} to {result['estimatedMost']:.0f} s",
        f"{result['actual']:.1f} s",
        f"{result['estimated'] / result['actual']:.2f}",
    ]
    return f"| {' | '.join(cells)} |"


def table() -> str:
    rows = [row(result) for result in json.loads(TRIALS.read_text())]
    return "\n".join([f"| {' | '.join(HEAD)} |", "|" + "---|" * len(HEAD), *rows, ""])


@pytest.mark.skipif(not TRIALS.exists(), reason="no trials")
def test_the_table_is_that_of_the_trials() -> None:
    check_table(PAGE, "recovery-trials.json", table())
