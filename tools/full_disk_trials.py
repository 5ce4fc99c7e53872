"""python -m tools.full_disk_trials JARS DISKS [--only NAME,…] [--again] [--out docs/full-disk-trials.json]

Starts a real broker with a log directory on a file system that is full or mounted read-only, and compares with
kdump.restart_plan whether it starts, and which log directory goes offline. docs/restart-plan.md contains the result as
a table (its test writes it if KDUMP_REWRITE=1 is set).

JARS is a directory with the jars listed in tools/kafka-jars.xml; DISKS contains kafka-4.3. Needs Java 17 and root, to
mount file systems in memory; each case takes half a minute. --again starts no broker: it predicts again, and compares
with what OUT records of the broker."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from kdump.questions.restart_plan.answer import STOPPED
from kdump.questions.restart_plan.run import restart_plan
from tools.trials.cluster import KAFKA, Cluster
from tools.trials.node import Node
from tools.trials.predict import public_directory
from tools.trials.recorded_results import RecordedResults, chosen, trial_options
from tools.trials.restart import OFFLINE, _tells

Result = dict[str, Any]
CHECKPOINT_SECONDS = 12
"""replica.high.watermark.checkpoint.interval.ms is 5000."""
MOUNT_SIZE = "64m"


class Case(NamedTuple):
    """`place`: which directory is on the file system: all, second (of two log directories), metadata (metadata.log.dir
    apart from log.dirs). `free`: bytes left free there; None: it is mounted read-only."""

    name: str
    disk: str
    what: str
    place: str
    free: int | None


CASES = (
    Case("full", "clean-1", "the only log directory has no free space", "all", 0),
    Case("full-crash", "crash-1", "the only log directory has no free space, after kill -9", "all", 0),
    Case("full-second", "clean-1", "the second of two log directories has no free space", "second", 0),
    Case(
        "full-second-crash",
        "crash-1",
        "the second of two log directories has no free space, after kill -9",
        "second",
        0,
    ),
    Case("full-metadata", "clean-1", "metadata.log.dir has no free space", "metadata", 0),
    Case("some-space", "clean-1", "the second of two log directories has 1 MiB of free space", "second", 1 << 20),
    Case("read-only", "clean-1", "the only log directory is mounted read-only", "all", None),
    Case("read-only-second", "clean-1", "the second of two log directories is mounted read-only", "second", None),
    Case("read-only-metadata", "clean-1", "metadata.log.dir is mounted read-only", "metadata", None),
)


def node_of(case: Case, root: Path) -> tuple[Node, Path]:
    """Return the node, and the directory that is to be on the file system."""
    recipes = importlib.import_module("tests.questions.restart_plan.restart_recipe")
    if case.place == "second":
        other = recipes.second(root, "orders-lz4-0", "orders-zstd-0")
        return Node((root, other)), other
    if case.place == "metadata":
        apart = recipes.metadata_apart(root)
        return Node((root,), apart), apart
    return Node((root,)), root


@contextmanager
def mounted(directory: Path, free: int | None) -> Iterator[None]:
    """Move the directory to a file system in memory with so many free bytes, or read-only."""
    aside = directory.with_name(directory.name + "-aside")
    directory.rename(aside)
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={MOUNT_SIZE}", "tmpfs", str(directory)], check=True)
    try:
        subprocess.run(["cp", "-a", "--sparse=always", f"{aside}/.", str(directory)], check=True)
        shutil.rmtree(aside)
        if free is None:
            subprocess.run(["mount", "-o", "remount,ro", str(directory)], check=True)
        else:
            state = os.statvfs(directory)
            with (directory / "filler").open("wb") as filler:
                filler.write(bytes(max(0, state.f_bavail * state.f_frsize - free)))
        yield
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=True)


def trial(jars: Path, disks: Path, case: Case, known: Result | None = None) -> Result:
    """Run a case; with a `known` result, without a broker."""
    damages = importlib.import_module("tests.damages")
    with public_directory() as work:
        controller = damages.copy_disk(disks / damages.DISK_PATHS["clean-0"], work / "disk-0")
        root = damages.copy_disk(disks / damages.DISK_PATHS[case.disk], work / "disk-1")
        node, place = node_of(case, root)
        with mounted(place, case.free):
            plan = restart_plan(map(str, node.paths))
            said = {"starts": plan.verdict != STOPPED, "offline": sorted(map(os.path.basename, plan.offline))}
            did = _started(jars, work, controller, node) if known is None else known["broker"]
    differences = [
        f"{fact}: predicted {said[fact]}, the broker {did[fact]}" for fact in said if said[fact] != did[fact]
    ]
    if not did["starts"] and not said["starts"]:
        differences = []
    reasons = [stop.exception.replace(f"{work}/", "…/") for stop in plan.allStops]
    result: Result = {"name": case.name, "disk": case.disk, "what": case.what, "kafka": KAFKA}
    return result | {"predicted": said | {"reasons": reasons}, "broker": did, "differences": differences}


def _started(jars: Path, work: Path, controller: Path, node: Node) -> Result:
    """Start the broker, and return what it did."""
    with Cluster(jars, work, controller, node.dirs, metadata=node.metadata) as cluster:
        up = cluster.started()
        if up:
            time.sleep(CHECKPOINT_SECONDS)
            up = not cluster.ended("broker")
        lines = cluster.log("broker")
    told = [line for line in lines if _tells(line)][:6] or ([] if up else lines[-6:])
    offline = sorted({*_offline(lines)} & {path.name for path in node.dirs})
    return {"starts": up, "offline": offline, "log": [line[:240] for line in told]}


def _offline(lines: list[str]) -> list[str]:
    return re.findall(OFFLINE, "\n".join(lines))


def main() -> None:
    parser = trial_options(__doc__, "docs/full-disk-trials.json")
    parser.add_argument("disks", type=Path)
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    record = RecordedResults(options.out, CASES)
    for case in chosen(CASES, options.only):
        recorded = record.by_name[case.name][0] if options.again else None
        result = trial(options.jars.resolve(), options.disks.resolve(), case, recorded)
        print(f"{case.name}: {result['differences'] or 'agrees'}", file=sys.stderr, flush=True)
        record.keep(case.name, [result])


if __name__ == "__main__":
    main()
