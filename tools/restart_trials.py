"""python -m tools.restart_trials JARS DISKS [--only NAME,…] [--again] [--out docs/restart-trials.json]

Predicts with kdump.restart_plan what a broker does with a damaged copy of a disk, starts a real broker on it, and
records both, and their differences. docs/restart-plan.md contains the result as a table (its test writes the table if
KDUMP_REWRITE=1 is set).

JARS is a directory with the jars listed in tools/kafka-jars.xml; DISKS contains kafka-4.3. The recipes are those of
tests/questions/restart_plan/restart_damages.py. --only replaces only the given ones in OUT. --again starts no broker:
it predicts again, and compares with what OUT records of the broker. Needs Java 17; each recipe takes about 15 s."""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

from tools.trials.cluster import KAFKA, Cluster
from tools.trials.disk import files
from tools.trials.node import USER, Node
from tools.trials.predict import plan_of, public_directory
from tools.trials.recorded_results import trial_options
from tools.trials.restart import differences, done, epochs_of, recorded
from tools.trials.storage import compile_storage


def applied(disks: Path, recipe: Any, work: Path) -> Node:
    """Return the node of a recipe, on a damaged copy of the disk in `work`."""
    damages = importlib.import_module("tests.damages")
    node: Node = recipe.node(damages.copy_disk(disks / damages.DISK_PATHS[recipe.disk], work / "disk-1"))
    return node


def trial(jars: Path, disks: Path, recipe: Any) -> dict[str, Any]:
    """Run one recipe and return the result, in the form in which it is stored."""
    damages = importlib.import_module("tests.damages")
    with public_directory() as work:
        controller = damages.copy_disk(disks / damages.DISK_PATHS["clean-0"], work / "disk-0")
        node = applied(disks, recipe, work)
        said, before = plan_of(node)
        user = USER if node.user else None
        if "NoStorage" in node.configs:
            compile_storage(jars)
        with Cluster(
            jars,
            work,
            controller,
            node.dirs,
            metadata=node.metadata,
            user=user,
            combined=node.combined,
            configs=node.configs,
        ) as cluster:
            up = cluster.started()
            time.sleep(node.wait)
            ends = cluster.ends() if up else {}
            after = {path.name: files(path) for path in node.dirs}
            did = done(cluster.log("broker"), up, node.dirs, after, before)
        if up:
            for key, facts in did["partitions"].items():
                path = work / (key.partition(".")[0] if key.endswith("-future") else key)
                if not facts["stray"]:
                    facts["epochs"] = epochs_of(path / "leader-epoch-checkpoint")
    result: dict[str, Any] = {"name": recipe.name, "disk": recipe.disk, "what": recipe.what, "kafka": KAFKA}
    result |= {"verdict": said.pop("verdict"), "status": said.pop("status"), "ends": ends}
    return result | {"differences": differences(said, did)} | _short(said, did)


def again(disks: Path, recipe: Any, known: dict[str, Any]) -> dict[str, Any]:
    """Return a result with the current prediction, compared with the recorded behavior of the broker."""
    with public_directory() as work:
        said, _ = plan_of(applied(disks, recipe, work))
    result = known | {"what": recipe.what, "verdict": said.pop("verdict"), "status": said.pop("status")}
    result["differences"] = differences(said, recorded(known))
    result["predicted"] = {name: said[name] for name in known["predicted"]}
    result["partitions"] = {
        key: facts | {"predicted": said["partitions"].get(key)} for key, facts in known["partitions"].items()
    }
    if not result["differences"]:
        result.pop("explained", None)
    return result


def _short(said: dict[str, Any], did: dict[str, Any]) -> dict[str, Any]:
    """Return what is stored of both. Partitions that are neither truncated nor stray are left out if prediction and
    broker agree."""
    told = {}
    for key, facts in said["partitions"].items():
        other = did["partitions"].get(key)
        if other is None and not did["starts"]:
            continue
        if other is None or other["truncated"] or other["stray"] or facts["truncated"] or not _plain(facts, other):
            told[key] = {"predicted": facts, "broker": other}
    rest = {name: did[name] for name in ("starts", "offline", "log", "cleaned")}
    ends = {key: facts["logEnd"] for key, facts in did["partitions"].items()}
    return {"predicted": {name: said[name] for name in ("starts", "offline", "reasons")}, "broker": rest} | {
        "partitions": told,
        "logEnds": ends,
    }


def _plain(facts: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(facts[name] == other.get(name) for name in ("logStart", "logEnd", "segments", "snapshots", "logs"))


def main() -> None:
    parser = trial_options(__doc__, "docs/restart-trials.json")
    parser.add_argument("disks", type=Path)
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    only = set(filter(None, options.only.split(",")))
    every = importlib.import_module("tests.questions.restart_plan.restart_damages").chosen()
    results: dict[str, dict[str, Any]] = {}
    if options.out.exists():
        results = {result["name"]: result for result in json.loads(options.out.read_text())}
    names = [recipe.name for recipe in every]
    for recipe in every:
        if only and recipe.name not in only:
            continue
        if options.again:
            result = again(options.disks.resolve(), recipe, results[recipe.name])
        else:
            result = trial(options.jars.resolve(), options.disks.resolve(), recipe)
        print(f"{recipe.name}: {result['verdict']}: {result['differences'] or 'agrees'}", file=sys.stderr, flush=True)
        known = results.get(recipe.name, {})
        if known.get("explained") and result["differences"]:
            result["explained"] = known["explained"]
        results[recipe.name] = result
        text = json.dumps([results[name] for name in names if name in results], indent=1, ensure_ascii=False)
        options.out.with_suffix(".new").write_text(text + "\n")
        options.out.with_suffix(".new").replace(options.out)


if __name__ == "__main__":
    main()
