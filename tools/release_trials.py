"""python -m tools.release_trials JARS DISKS [--only RECIPE,…] [--releases NAME,…] [--replace] [--again] …

Starts real brokers of every release of tools/trials/release.py on damaged copies of its disks, and brokers of one
release on the disk of another; records in docs/release-trials.json what they do, and the differences to what
kdump.restart_plan predicts.

JARS has a directory for each version with the jars of tools/kafka-jars.xml; DISKS are those of tests/corpus
(`releases`). The recipes are those of tests/questions/restart_plan/release_damages.py. --releases may name one of which
only DISKS has a directory. Startups whose result is recorded are left out without --replace. --logs DIR keeps the
brokers' logs, and --jobs N starts N brokers at a time. --again starts no broker: it compares what is recorded with the
current predictions. Needs Java 17; a startup takes about 8 s. Results are written as they come."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tools.trials.disk import files
from tools.trials.release import RELEASES, LoneController, ReleaseCluster, fresh_controller, named
from tools.trials.release_record import EXPLAINED, Start, compared, reduced, starts, telling
from tools.trials.restart import done, epochs_of

OUT = Path("docs/release-trials.json")
SETTINGS = """
log.retention.check.interval.ms=2147483647
log.initial.task.delay.ms=2147483647
log.cleaner.backoff.ms=600000
"""
"""What runs later than a startup should not change files before they are looked at."""


def trial(jars: Path, disks: Path, start: Start, logs: Path | None) -> dict[str, Any]:
    """Start a broker once, and return all facts about what it did."""
    damages = importlib.import_module("tests.damages")
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        source = disks / start.release
        release = named(start.started_by)
        root = damages.copy_disk(source / start.recipe.disk, work / "broker")
        keeper = work / release.keeper
        is_alone = start.recipe.disk == release.keeper
        if is_alone:
            nodes: ReleaseCluster = LoneController(release, jars, work, root)
        else:
            if (source / release.keeper).is_dir():
                damages.copy_disk(source / release.keeper, keeper)
            else:
                fresh_controller(release, jars, keeper, root)
            nodes = ReleaseCluster(release, jars, work, keeper, [root], configs=SETTINGS)
        start.recipe.apply(root)
        before = files(root)
        with nodes as cluster:
            up = cluster.started()
            if not up and not any(map(cluster.ended, cluster.processes)):
                raise TimeoutError(start.key)
            after = files(root)
            others = cluster.log("controller")
            lines = others if is_alone else cluster.log("broker")
        did = done(lines, up, [root], {"broker": after}, {"broker": before})
        for key, facts in did["partitions"].items():
            if not facts["stray"] and not facts.get("deleted"):
                own = work / key
                own = own if own.is_dir() else work / key.partition(".")[0]  # a -future one has replaced it
                facts["epochs"] = epochs_of(own / "leader-epoch-checkpoint")
        if not up and start.release != start.started_by:
            lines += others  # the controller may not read the metadata either
        did["log"] = telling(lines)
        if logs:
            logs.mkdir(parents=True, exist_ok=True)
            (logs / f"{start.key}.log").write_text("\n".join(lines) + "\n")
    did["files"] = {
        "deleted": sorted(set(before) - set(after)),
        "new": sorted(set(after) - set(before)),
        "written": sorted(path for path in before.keys() & after.keys() if before[path] != after[path]),
    }
    return did


def write(results: dict[str, dict[str, Any]], order: list[str], out: Path) -> None:
    """Write one line per startup."""
    text = ",\n".join(json.dumps(results[key], ensure_ascii=False) for key in order if key in results)
    out.with_suffix(".new").write_text(f"[\n{text}\n]\n")
    out.with_suffix(".new").replace(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jars", type=Path)
    parser.add_argument("disks", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--releases", default="")
    parser.add_argument("--logs", type=Path)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--replace", action="store_true")
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    only, releases = (set(filter(None, text.split(","))) for text in (options.only, options.releases))
    disks = options.disks.resolve()
    every = starts(disks, sorted(releases - set(RELEASES)))
    order = [start.key for start in every]
    results: dict[str, dict[str, Any]] = {}
    if options.out.exists():
        results = {result["key"]: result for result in json.loads(options.out.read_text())}
    lock = threading.Lock()

    def run(start: Start) -> None:
        if (only and start.recipe.name not in only) or (releases and start.release not in releases):
            return
        known = results.get(start.key)
        if options.again:
            if known is None:
                return
            result = known
        elif known is not None and not options.replace:
            return
        else:
            try:
                did = trial(options.jars.resolve(), disks, start, options.logs)
            except TimeoutError:  # which says nothing about the disk, but the machine is overloaded
                print(f"{start.key}: neither up nor exited in time, left out", file=sys.stderr, flush=True)
                return
            with lock:
                result = reduced(start, did, results)
        differing = compared(start, disks, result, results)
        with lock:
            result.pop("explained", None)
            reason = EXPLAINED.get(start.recipe.name)
            results[start.key] = (
                result | {"differences": differing} | ({"explained": reason} if differing and reason else {})
            )
            print(f"{start.key}: {differing or 'agrees'}", file=sys.stderr, flush=True)
            write(results, order, options.out)

    with ThreadPoolExecutor(options.jobs) as pool:
        undamaged = [start for start in every if start.is_undamaged]
        list(pool.map(run, undamaged))  # the others are stored as differences to these
        list(pool.map(run, [start for start in every if not start.is_undamaged]))


if __name__ == "__main__":
    main()
