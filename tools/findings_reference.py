"""Prints docs/findings.md: every code of the catalogue, with what a real broker did with such damage."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from kdump.problems import catalogue
from kdump.problems.catalogue import FAMILIES, Declaration, all_problems

DOCS = Path(__file__).resolve().parents[1] / "docs"
TRIALS, COORDINATORS = DOCS / "broker-trials.json", DOCS / "coordinator-trials.json"
FAILS = "preallocated-killed"
"""Trial in COORDINATORS in which the coordinators of groups and share groups cannot be loaded."""

HEAD = """# The findings

The {count} codes of `kdump verify`. `verify` and `doctor` print only the actions that apply, with the paths filled in;
`kdump explain CODE` prints an entry of this page.

An **error** is damage, or would stop a broker or a consumer; a **warning** needs a human decision; an **info** is legal
but worth knowing. A finding of the severity of `--fail-on` or higher sets the exit status to 1.

Before any repair: stop the broker, back the partition's directory up, and compare it with another replica.

"Tried" is what a broker and a consumer of 4.3.1 did with such damage ([broker-trials.json](broker-trials.json) has the
damage and the logs). A clean startup reads little of a log: a broker that starts normally has not
found the damage, and a consumer encounters it later. An action of each error was done on a real broker's disk, unless
it is **untried**: see [remedy-trials.json](remedy-trials.json), [incident-trials.json](incident-trials.json),
[salvage-trials.json](salvage-trials.json), [rescue-trials.json](rescue-trials.json),
[space-trials.json](space-trials.json) and [coordinator-trials.json](coordinator-trials.json).

## Shared actions

Actions of several findings, or of [other problems](problems.md), which refer to them by number.

{shared}
"""
SHARED, LONG = 3, 15
"""An action of so many findings is described once, and one of two if it has so many words."""
CAUSE = re.compile(
    r"(?!.*(?:terminating consumer process|Received exception when fetching)).*(?:Exception|Error|ERROR)"
)
"""A line of a log from which the cause is known."""
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


def is_shared(text: str, count: int) -> bool:
    return count >= SHARED or (count > 1 and len(text.split()) >= LONG)


def shared_actions(problems: Iterable[Declaration]) -> dict[str, int]:
    """Return the actions that several problems have, with their numbers on the page."""
    counts = Counter(action.conditional for problem in problems for action in problem.actions)
    return {text: number for number, text in enumerate((text for text, n in counts.items() if is_shared(text, n)), 1)}


def action_lines(problem: Declaration, shared: dict[str, int], page: str = "") -> Iterator[str]:
    """Yield the actions of a problem, those that are shared by their numbers."""
    texts = [each.conditional for each in problem.actions]
    numbers = f"[shared]({page}#shared-actions) {{}}"
    if all(text in shared for text in texts):
        yield f"- Actions: {numbers.format(', '.join(str(shared[text]) for text in texts))}."
        return
    yield "- Actions:"
    for is_numbered, group in groupby(texts, shared.__contains__):
        if is_numbered:
            yield f"    - {numbers.format(', '.join(str(shared[text]) for text in group))}."
        else:
            yield from (f"    - {text}." for text in group)


def numbered(shared: dict[str, int]) -> str:
    return "\n".join(f"{number}. {text}." for text, number in shared.items())


def section(code: Declaration, trials: list[dict[str, Any]], shared: dict[str, int]) -> str:
    lines = [f"### {code.code}", "", code.meaning, ""]
    unless = f" ({code.unless})" if code.unless else ""
    lines += [f"- **{code.severity}**{unless}" + ("" if code.family in TITLES else f"; family `{code.family}`")]
    lines += [f"- Impact: {code.consequence.replace('{offset}', 'N')}."]
    lines += action_lines(code, shared)
    lines += [code.tried] if code.untried else []
    told = [f"broker {trial['broker']}; consumer {consumer(trial)}." for trial in trials]
    lines += [f"- Tried: {text}" for text in told]
    said = [line for trial in trials[:1] for line in (*trial.get("brokerLog", []), *trial.get("consumerLog", []))]
    cause = next(filter(CAUSE.match, said), None)
    if cause is not None:
        lines += ["", "```text", cause[:240], "```"]
    return "\n".join(lines) + "\n"


def failover(case: dict[str, Any]) -> str:
    """Return what clients got from the next coordinator."""
    asked = next(step for step in case["steps"] if step["step"] == "ask")
    clients = asked["clients"]
    what = case["what"].split("; later")[0]
    return (
        f"\nTried with three brokers of Kafka {case['kafka']} and three replicas: {what}. A consumer of the group "
        f"then reads {clients['member of the group']}, and the query for its committed offset ends with "
        f"{clients['committed offset'].split(':')[0]}. Transactions are loaded: the open one is still "
        f"{clients['transaction open']}. What helped is in [{COORDINATORS.name}]({COORDINATORS.name}).\n"
    )


def page() -> str:
    trials: dict[str, list[dict[str, Any]]] = {}
    if TRIALS.is_file():
        for trial in json.loads(TRIALS.read_text()):
            trials.setdefault(trial["code"], []).append(trial)
    shared = shared_actions(all_problems().values())
    parts = [HEAD.format(count=len(catalogue.findings()), shared=numbered(shared))]
    for family, inner in FAMILIES.items():
        parts.append(f"## {TITLES[family]}\n")
        for code in catalogue.findings().values():
            if code.family in (family, *inner):
                parts.append(section(code, sorted(trials.get(code.code, []), key=telling)[:1], shared))
                if code.code == "zero-padding" and COORDINATORS.is_file():
                    cases = {case["name"]: case for case in json.loads(COORDINATORS.read_text())}
                    parts[-1] += failover(cases[FAILS])
    return "\n".join(parts)


if __name__ == "__main__":
    print(page(), end="")
