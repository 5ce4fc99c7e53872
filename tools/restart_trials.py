"""python -m tools.restart_trials JARS DISKS [--only NAME,…] [--again] [--out docs/restart-trials.json]

Foretells with kdump.restart_plan what a broker does with a damaged copy of a disk, starts a real one on it, and records
both, and where they differ. docs/restart-plan.md shows the result as a table (KDUMP_REWRITE=1 in its test writes it).

JARS is a directory with the jars that tools/kafka-jars.xml names; DISKS holds kafka-4.3. The recipes are those of
tests/restart_damages.py. --only replaces those in OUT. --again starts no
broker: it foretells anew, and compares with what OUT has of one. Needs Java 17; each recipe takes about 15 s.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import kdump
from tools.trials.cluster import KAFKA, Cluster
from tools.trials.disk import files
from tools.trials.restart import differences, done, epochs_of, foretold, recorded, renamed


def trial(jars: Path, disks: Path, recipe: Any, recipes: Any) -> dict[str, Any]:
    """One recipe: the result, as it stands in the file."""
    base = importlib.import_module("tests.damages")
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        controller = recipes.copy_disk(disks / base.DISK_PATHS["clean-0"], work / "disk-0")
        root = recipes.copy_disk(disks / base.DISK_PATHS[recipe.disk], work / "disk-1")
        recipe.apply(root)
        second = recipes.second_directory(root)
        dirs = [root, *([second] if second.exists() else [])]
        plan = kdump.restart_plan(map(str, dirs))
        before = {path.name: files(path) for path in dirs}
        said = foretold(plan, before)
        with Cluster(jars, work, controller, dirs) as cluster:
            up = cluster.started()
            time.sleep(2)
            ends = cluster.ends() if up else {}
            after = {path.name: files(path) for path in dirs}
            did = done(cluster.log("broker"), up, dirs, after, before)
        if up:
            for key, facts in did["partitions"].items():
                path = work / (key.partition(".")[0] if key.endswith("-future") else key)
                if not facts["stray"]:
                    facts["epochs"] = epochs_of(path / "leader-epoch-checkpoint")
    result = {"name": recipe.name, "disk": recipe.disk, "what": recipe.what, "kafka": KAFKA}
    result |= {"verdict": plan.verdict, "status": plan.status, "ends": ends}
    return result | {"differences": differences(said, did)} | _short(said, did)


def again(disks: Path, recipe: Any, recipes: Any, known: dict[str, Any]) -> dict[str, Any]:
    """A result with what is foretold now, beside what the broker did then."""
    base = importlib.import_module("tests.damages")
    with tempfile.TemporaryDirectory() as name:
        root = recipes.copy_disk(disks / base.DISK_PATHS[recipe.disk], Path(name) / "disk-1")
        recipe.apply(root)
        second = recipes.second_directory(root)
        dirs = [root, *([second] if second.exists() else [])]
        plan = kdump.restart_plan(map(str, dirs))
        said = renamed(foretold(plan, {path.name: files(path) for path in dirs}), root.name)
    result = known | {"what": recipe.what, "verdict": plan.verdict, "status": plan.status}
    result["differences"] = differences(said, recorded(known))
    result["foretold"] = {name: said[name] for name in known["foretold"]}
    result["partitions"] = {
        key: facts | {"foretold": said["partitions"].get(key)} for key, facts in known["partitions"].items()
    }
    if not result["differences"]:
        result.pop("explained", None)
    return result


def _short(said: dict[str, Any], did: dict[str, Any]) -> dict[str, Any]:
    """What tells: partitions whose facts are like in an undamaged start are left out of the file."""
    told = {}
    for key, facts in said["partitions"].items():
        other = did["partitions"].get(key)
        if other is None and not did["starts"]:
            continue
        if other is None or other["truncated"] or other["stray"] or facts["truncated"] or not _plain(facts, other):
            told[key] = {"foretold": facts, "broker": other}
    rest = {name: did[name] for name in ("starts", "offline", "log", "cleaned")}
    ends = {key: facts["logEnd"] for key, facts in did["partitions"].items()}
    return {"foretold": {name: said[name] for name in ("starts", "offline", "reasons")}, "broker": rest} | {
        "partitions": told,
        "logEnds": ends,
    }


def _plain(facts: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(facts[name] == other.get(name) for name in ("logStart", "logEnd", "segments", "snapshots", "logs"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jars", type=Path)
    parser.add_argument("disks", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path, default=Path("docs/restart-trials.json"))
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    recipes = importlib.import_module("tests.restart_damages")
    only = set(filter(None, options.only.split(",")))
    every = recipes.chosen()
    results: dict[str, dict[str, Any]] = {}
    if options.out.exists():
        results = {result["name"]: result for result in json.loads(options.out.read_text())}
    names = [recipe.name for recipe in every]
    for recipe in every:
        if only and recipe.name not in only:
            continue
        if options.again:
            result = again(options.disks.resolve(), recipe, recipes, results[recipe.name])
        else:
            result = trial(options.jars.resolve(), options.disks.resolve(), recipe, recipes)
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
