"""Prints docs/findings.md: every code of the catalogue, with what a real broker did with such damage."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from kdump.problems import catalogue
from kdump.problems.catalogue import FAMILIES, Action, Declaration, all_problems

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
damage and the logs). Unless stated otherwise, the broker starts normally: a clean startup reads little of a log, and
has not found the damage. *Nothing noticed*: the consumer reads everything. Each action of an error that changes
something was done on a real broker's disk ([incident-trials.json](incident-trials.json) and others), unless it is
**untried**.

## Shared actions

Actions of several findings or [other problems](problems.md).

{shared}
"""
SHARED, LONG = 3, 15
"""An action of so many findings is described once, and one of two if it has so many words."""
CAUSE = re.compile(
    r"(?!.*(?:terminating consumer process|Received exception when fetching|Error while loading logs|Error processing"
    r"|Got exception while starting|Error starting LogManager)).*(?:Exception|Error|ERROR)"
)
"""A line of a log from which the cause is known."""
CHANGES_NOTHING = "it changes nothing"
"""Why an action needs no trial: it looks, compares, waits or copies."""
STARTS = "broker starts normally; "
UNNOTICED = f"{STARTS}consumer reads everything."
LOADING = "There was an error in one of the threads during logs loading: "
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


def told(action: Action) -> str:
    """Return an action after its conditions, and why it is untried."""
    is_told = action.untried and action.untried != CHANGES_NOTHING
    return f"{action.conditional} (**untried**: {action.untried})" if is_told else action.conditional


def is_shared(text: str, count: int) -> bool:
    return count >= SHARED or (count > 1 and len(text.split()) >= LONG)


class Shared(NamedTuple):
    """The actions that several problems have, with their numbers on the page: with their conditions, and without."""

    numbers: dict[str, int]
    bodies: dict[str, int]


def shared_actions(problems: Iterable[Declaration]) -> Shared:
    """Return the actions that several problems have, some with another condition."""
    actions = [action for problem in problems for action in problem.actions]
    counts = Counter(told(action) for action in actions)
    long = Counter(action.do for action in actions if len(action.do.split()) >= LONG)
    bodies = {action.do: told(action) for action in reversed(actions) if long[action.do] > 1}
    for action in actions:
        if action.do in bodies and is_shared(told(action), counts[told(action)]):
            bodies[action.do] = told(action)
    named = {*bodies.values()}
    shared = [text for text, count in counts.items() if text in named or is_shared(text, count)]
    numbers = {text: number for number, text in enumerate(shared, 1)}
    return Shared(numbers, {do: numbers[text] for do, text in bodies.items()})


def action_lines(problem: Declaration, shared: Shared, page: str = "") -> Iterator[str]:
    """Yield the actions of a problem, those that are shared by their numbers."""
    link = f"[shared]({page}#shared-actions) {{}}"
    known, texts = shared.numbers, []
    for is_numbered, group in groupby(problem.actions, lambda each: told(each) in known):
        if is_numbered:
            texts.append(link.format(", ".join(str(known[told(each)]) for each in group)))
            continue
        for each in group:
            number = shared.bodies.get(each.do)
            other = each if number is None else each._replace(do=f"Do {link.format(number)}", untried="")
            texts.append(told(other))
    yield "- Actions:" if texts[1:] else f"- Actions: {texts[0]}."
    yield from (f"    - {text}." for text in texts if texts[1:])


def numbered(shared: Shared) -> str:
    return "\n".join(f"{number}. {text}." for text, number in shared.numbers.items())


def as_in(places: dict[str, str], code: str, text: str) -> str:
    """Return a text or, if it is long and an earlier problem has the same, which one. `places`: the problems that had
    the texts so far."""
    first = places.setdefault(text, code)
    return text if first == code or len(text.split()) < LONG else f"as for [{first}](#{first})"


def section(
    code: Declaration, trials: list[dict[str, Any]], shared: Shared, impacts: dict[str, str], cases: dict[str, str]
) -> str:
    lines = [f"### {code.code}", "", code.meaning, ""]
    unless = f" ({as_in(cases, code.code, code.unless)})" if code.unless else ""
    lines += [f"- **{code.severity}**{unless}" + ("" if code.family in TITLES else f"; family `{code.family}`")]
    lines += [f"- Impact: {as_in(impacts, code.code, code.consequence).replace('{offset}', 'N')}."]
    lines += action_lines(code, shared)
    told = [f"broker {trial['broker']}; consumer {consumer(trial)}." for trial in trials]
    told = ["nothing noticed." if text == UNNOTICED else text.removeprefix(STARTS) for text in told]
    lines += [f"- Tried: {text}" for text in told]
    said = [line for trial in trials[:1] for line in (*trial.get("brokerLog", []), *trial.get("consumerLog", []))]
    cause = next(filter(CAUSE.match, said), None)
    if cause is not None:
        lines += ["", "```text", cause.rpartition(LOADING)[2][:240], "```"]
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
    impacts, cases = dict[str, str](), dict[str, str]()
    parts = [HEAD.format(count=len(catalogue.findings()), shared=numbered(shared))]
    for family, inner in FAMILIES.items():
        parts.append(f"## {TITLES[family]}\n")
        for code in catalogue.findings().values():
            if code.family in (family, *inner):
                told = sorted(trials.get(code.code, []), key=telling)[:1]
                parts.append(section(code, told, shared, impacts, cases))
                if code.code == "zero-padding" and COORDINATORS.is_file():
                    known = {case["name"]: case for case in json.loads(COORDINATORS.read_text())}
                    parts[-1] += failover(known[FAILS])
    return "\n".join(parts)


if __name__ == "__main__":
    print(page(), end="")
