"""python -m tools.remedy_trials JARS DISKS [--only NAME,…] [--out docs/remedy-trials.json]

Tries the actions that the catalogue of findings recommends, and those that it warns against: damages a copy of a disk,
removes or renames the files listed in a recipe of tests/remedies.py, starts a real broker, reads the partition, stops
the broker cleanly and runs `kdump verify` on the result.

JARS is a directory with the jars listed in tools/kafka-jars.xml. DISKS contains kafka-4.3. Needs Java 17, a C compiler
and about ten minutes."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tools.trials import cluster as clusters
from tools.trials.cluster import KAFKA, Cluster
from tools.trials.disk import files
from tools.trials.recorded_results import trial_options
from tools.trials.trial import decisive
from tools.trials.wording import ranges

STOP_SECONDS = 60
IDLE_MS = 12_000
"""Time in ms after which a consumer without new records stops. It is long because no other copy shows what the consumer
should read."""
TRANSACTIONAL = ("payments-0",)
Result = dict[str, Any]


def left(root: Path, partition: str) -> list[str]:
    """Return the codes that verify reports for the partition, except informational ones."""
    command = [sys.executable, "-m", "kdump", "verify", "--json", str(root)]
    lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    rows = [row for row in map(json.loads, lines) if row["type"] == "finding" and row["severity"] != "info"]
    return sorted({row["code"] for row in rows if f"{row['topic']}-{row['partition']}" == partition})


def read(cluster: Cluster, partition: str) -> Result:
    """Return the offsets that a consumer reads, and those that a read_committed one reads."""
    found: Result = {}
    for key, committed in (("consumed", False), ("consumedCommitted", True)):
        if committed and partition not in TRANSACTIONAL:
            continue
        reading = cluster.consume(partition, committed=committed)
        found[key] = ranges(sorted(set(reading.offsets)))
        if reading.lines:
            found[f"{key}Log"] = reading.lines[:2]
    return found


@contextmanager
def bad_sector(work: Path, where: tuple[str, int] | None) -> Iterator[None]:
    """Make processes that start inside the block fail to read 4,096 bytes of a file (tools/trials/unreadable.c)."""
    if where is None:
        yield
        return
    library = work / "unreadable.so"
    source = Path(__file__).parent / "trials" / "unreadable.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    changed = {"LD_PRELOAD": str(library), "EIO_FILE": f"/{where[0]}", "EIO_FROM": str(where[1])}
    os.environ.update(changed)
    try:
        yield
    finally:
        for name in changed:
            del os.environ[name]


def run(group: list[Any], recipes: Any, jars: Path, disks: Path, usual: set[str]) -> list[Result]:
    """Start the broker once for all remedies of `group`, which concern different partitions."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        copies = {node: disks / "kafka-4.3" / f"clean-{node}" for node in (0, 1)}
        controller, root = (recipes.copy_disk(copies[node], work / f"disk-{node}") for node in (0, 1))
        for remedy in group:
            if remedy.damage:
                recipes.BY_NAME[remedy.damage].apply(root)
            remedy.apply(root)
        before = files(root)
        with bad_sector(work, group[0].unreadable), Cluster(jars, work, controller, [root]) as cluster:
            up = cluster.started()
            starts, ends = (cluster.ends("earliest"), cluster.ends()) if up else ({}, {})
            with ThreadPoolExecutor(3) as pool:
                readings = list(pool.map(lambda remedy: read(cluster, remedy.partition) if up else {}, group))
            after = files(root)
            process = cluster.processes["broker"]
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
            lines = cluster.log("broker")
        results = []
        for remedy, reading in zip(group, readings):
            what = recipes.BY_NAME[remedy.damage].what if remedy.damage else ""
            result: Result = {"code": remedy.code, "name": remedy.name, "what": what, "did": remedy.did, "kafka": KAFKA}
            result |= {"broker": "starts" if up else "exits"}
            if up:
                result |= {"logStart": starts.get(remedy.partition), "logEnd": ends.get(remedy.partition)} | reading
                epochs = root / remedy.partition / "leader-epoch-checkpoint"
                result["epochs"] = epochs.read_text().split("\n")[2:-1] if epochs.exists() else None
                mine = [file for file in sorted({*before, *after}) if file.startswith(remedy.partition + "/")]
                mine = [file for file in mine if file.endswith((".log", "index", ".snapshot"))]
                result["sizes"] = {
                    Path(file).name: [before.get(file, [None])[0], after.get(file, [None])[0]] for file in mine
                }
                result["left"] = left(root, remedy.partition)
            told = decisive(lines, usual, (remedy.partition,) if up else ())
            if not up:
                told = [
                    line[:600] for line in lines if re.match(r"(\[?ERROR|Caused by|[\w.$]+(Exception|Error)\b)", line)
                ][:6]
            results.append(result | {"brokerLog": told})
        return results


def main() -> None:
    parser = trial_options(__doc__, "docs/remedy-trials.json")
    parser.add_argument("disks", type=Path)
    options = parser.parse_args()
    clusters.IDLE_MS = IDLE_MS
    recipes: Any = importlib.import_module("tests.remedies")
    only = set(filter(None, options.only.split(",")))
    chosen = [remedy for remedy in recipes.REMEDIES if not only or remedy.name in only]
    together = [remedy for remedy in chosen if not remedy.alone]
    groups = [*([together] if together else []), *([remedy] for remedy in chosen if remedy.alone)]
    names = {remedy.name for remedy in recipes.REMEDIES}
    results: dict[str, Result] = {}
    if only and options.out.exists():
        results = {row["name"]: row for row in json.loads(options.out.read_text()) if row["name"] in names}
    for group in groups:
        print(", ".join(remedy.name for remedy in group), file=sys.stderr)
        for row in run(group, recipes, options.jars.resolve(), options.disks.resolve(), set()):
            results[row["name"]] = row
        ordered = sorted(results.values(), key=lambda row: (row["code"], row["name"]))
        options.out.write_text(json.dumps(ordered, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
