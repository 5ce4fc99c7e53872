"""python -m tools.broker_trials JARS DISKS [--only CODE,…] [--out docs/broker-trials.json] [--compare]

Starts a real Kafka broker on a copy of a disk damaged by each recipe of tests/damages.py, consumes the damaged
partition with Kafka's own console consumer, and records what both did.

JARS is a directory with the jars listed in tools/kafka-jars.xml. DISKS contains kafka-4.3 and kafka-2.8-legacy. --only
takes codes or names of recipes and replaces only their results in OUT. --compare writes nothing: it prints where the
broker or consumer behaves differently than in OUT, and then exits with 1. Needs Java 17 and, for all recipes, about an
hour."""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from pathlib import Path
from typing import Any

from tools.trials.probe import Result
from tools.trials.recorded_results import trial_options
from tools.trials.trial import Lab


def order(result: Result) -> tuple[str, str]:
    return result["code"], result["name"]


def save(out: Path, results: dict[str, Result]) -> None:
    text = json.dumps(sorted(results.values(), key=order), indent=2, ensure_ascii=False)
    out.with_suffix(".new").write_text(text + "\n")
    out.with_suffix(".new").replace(out)


def compare(lab: Lab, chosen: list[Any], known: dict[str, Result]) -> int:
    """Return 0 if broker and consumer behave as recorded, else 1."""
    differing = 0
    for group in lab.groups(chosen):
        for result in lab.run(group):
            before = known.get(result["name"], {})
            for what in ("broker", "consumer"):
                if result[what] != before.get(what):
                    differing += 1
                    print(f"{result['name']}: {what}: {result[what]!r}, before {before.get(what)!r}")
    return int(differing > 0)


def main() -> None:
    parser = trial_options(__doc__, "docs/broker-trials.json")
    parser.add_argument("disks", type=Path)
    parser.add_argument("--compare", action="store_true")
    options = parser.parse_args()
    recipes = importlib.import_module("tests.damages")
    only = set(filter(None, options.only.split(",")))
    every = [*recipes.DAMAGES, *recipes.DOUBTS]
    chosen = [damage for damage in every if not only or damage.code in only or damage.name in only]
    lab = Lab(options.jars.resolve(), options.disks.resolve(), recipes, lambda text: print(text, file=sys.stderr))
    results: dict[str, Result] = {}
    if options.compare:
        sys.exit(compare(lab, chosen, {result["name"]: result for result in json.loads(options.out.read_text())}))
    if only and options.out.exists():
        results = {result["name"]: result for result in json.loads(options.out.read_text())}
    names = {damage.name for damage in every}
    results = {name: result for name, result in results.items() if name in names}
    doubts = {damage.name for damage in recipes.DOUBTS}
    for group in lab.groups(chosen):
        try:
            found = lab.run(group)
        except Exception:  # the next groups may work
            traceback.print_exc()
            continue
        for result in found:
            if result["name"] in doubts:
                result["doubt"] = True
            results[result["name"]] = result
        save(options.out, results)


if __name__ == "__main__":
    main()
