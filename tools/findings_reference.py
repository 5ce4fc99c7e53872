"""Prints docs/findings.md: every code of the catalogue, with what a real broker did with such damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kdump.problems import catalogue
from kdump.problems.catalogue import FAMILIES, Declaration

DOCS = Path(__file__).resolve().parents[1] / "docs"
TRIALS, COORDINATORS = DOCS / "broker-trials.json", DOCS / "coordinator-trials.json"
FAILS = "preallocated-killed"
"""Trial in COORDINATORS in which the coordinators of groups and share groups cannot be loaded."""

HEAD = """# The findings

This page lists the {count} codes of `kdump verify`. It is generated from the catalogue in the code (`make docs`), and a
test compares the two; `kdump verify --list` prints a short form, and `--list --json` all of it.

Severities: an **error** is damage, or would stop a broker or a consumer; a **warning** needs a human decision; an
**info** is legal but worth knowing. A finding of the severity of `--fail-on` or higher sets the exit status to 1.

The quotations are from a real broker or consumer of Kafka 4.3.1, on a disk that was damaged in that way after a clean
shutdown or a crash (`make trials`; all results are in [broker-trials.json](broker-trials.json)). A clean startup reads
little of a log: if a broker starts normally, it has not found the damage, and a consumer encounters it later.

Before any repair: stop the broker, back the partition's directory up, and compare it with another replica. The actions
below, and some that would do harm, were tried with a real broker, too: [remedy-trials.json](remedy-trials.json).
"Actions tried" names the trials in which an action that repairs the problem was done on a real broker's disk; they are
in that file, in [incident-trials.json](incident-trials.json), [salvage-trials.json](salvage-trials.json),
[rescue-trials.json](rescue-trials.json), [space-trials.json](space-trials.json) or
[coordinator-trials.json](coordinator-trials.json). Where it is missing, the actions are **untried**.
"""
TITLES = {
    "bytes": "Bytes",
    "records": "Batches and records",
    "log": "A log",
    "files": "The files next to it",
    "remote": "Segments in remote storage",
}


def telling(trial: dict[str, Any]) -> tuple[bool, bool]:
    """Sort key: trials in which a broker or consumer failed come first, and among them those with a message."""
    harmless = trial["broker"] == "starts normally" and consumer(trial) == "reads everything"
    return harmless, not (trial.get("brokerLog") or trial.get("consumerLog"))


def consumer(trial: dict[str, Any]) -> str:
    """Return what a consumer did, and what a read_committed consumer did if that differs."""
    committed = trial.get("consumerCommitted")
    said = str(trial["consumer"])
    return said if committed in (None, said) else f"{said} (with read_committed: {committed})"


def section(code: Declaration, trials: list[dict[str, Any]]) -> str:
    lines = [f"### {code.code}", "", code.meaning, ""]
    unless = f" ({code.unless})" if code.unless else ""
    lines += [f"- Severity: **{code.severity}**{unless}; family `{code.family}`"]
    lines += [f"- Impact: {code.consequence.replace('{offset}', 'N')}."]
    lines += ["- Actions:", *(f"    - {action.conditional}." for action in code.actions)]
    lines += [*([code.tried] if code.trials or code.untried else []), f"- Kafka: {code.source}"]
    for number, trial in enumerate(trials):
        lines += [
            "",
            f"Tried with Kafka {trial['kafka']}: {trial['what']}. Broker: {trial['broker']}. "
            f"Consumer: {consumer(trial)}.",
        ]
        said = [*trial.get("brokerLog", [])[:2], *trial.get("consumerLog", [])[:2]]
        if said and not number:
            lines += ["", "```text", *(line[:300] for line in said), "```"]
    return "\n".join(lines) + "\n"


def failover(case: dict[str, Any]) -> str:
    """Return what the next coordinator logged, and what clients got from it."""
    asked = next(step for step in case["steps"] if step["step"] == "ask")
    clients, lines = asked["clients"], asked["log"][f"broker-{asked['clients']['leader of __consumer_offsets']}"]
    what = case["what"].split("; later")[0]
    return "\n".join(
        [
            "",
            f"Tried with three brokers of Kafka {case['kafka']} and three replicas: {what}. A consumer of the group "
            f"then reads {clients['member of the group']}, and the query for its committed offset ends with "
            f"{clients['committed offset'].split(':')[0]}. Transactions are loaded: the open one is still "
            f"{clients['transaction open']}. All steps, and what helped, are in "
            f"[{COORDINATORS.name}]({COORDINATORS.name}).",
            "",
            "```text",
            *(line[:300] for line in lines if not line.startswith("INFO")),
            "```",
            "",
        ]
    )


def page() -> str:
    trials: dict[str, list[dict[str, Any]]] = {}
    if TRIALS.is_file():
        for trial in json.loads(TRIALS.read_text()):
            trials.setdefault(trial["code"], []).append(trial)
    parts = [HEAD.format(count=len(catalogue.findings()))]
    for family, inner in FAMILIES.items():
        parts.append(f"## {TITLES[family]}\n")
        for code in catalogue.findings().values():
            if code.family in (family, *inner):
                parts.append(section(code, sorted(trials.get(code.code, []), key=telling)[:2]))
                if code.code == "zero-padding" and COORDINATORS.is_file():
                    cases = {case["name"]: case for case in json.loads(COORDINATORS.read_text())}
                    parts[-1] += failover(cases[FAILS])
    return "\n".join(parts)


if __name__ == "__main__":
    print(page(), end="")
