"""python -m tools.upgrade_trials JARS [--only OLD-NEW,…] [--out docs/upgrade-trials.json] [--keep DIR]

Takes a cluster of a broker and a controller through an upgrade and back, for each pair of releases: formatted and
started by the old release; started by the new one, and by the old one again; its features raised to the new release;
started by the old one; its features lowered to the old release; started by it. Records of each start what the broker
and the controller did, and what kdump.restart_plan says of a copy of their directories made before it.

JARS has a directory for each version with the jars of tools/kafka-jars.xml. Needs Java 17; a pair takes two minutes."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import kdump
from kdump.format.kafka_release import parse_release
from kdump.questions.restart_plan.answer import STOPPED, UNKNOWN
from tools.trials.recorded_results import RecordedResults, chosen, trial_options
from tools.trials.release import KRAFT, Release, ReleaseCluster
from tools.trials.release_record import telling
from tools.trials.wording import once

VERSIONS = ("3.9.1", "4.0.0", "4.3.1", "4.4.0")
OLD, NEW = "old", "new"
STEPS = (
    ("format", OLD, ()),
    ("upgrade", NEW, ()),
    ("return", OLD, ()),
    ("finalize", NEW, ("upgrade", NEW)),
    ("downgrade", OLD, ()),
    ("way-back", NEW, ("downgrade", OLD)),
    ("after-way-back", OLD, ()),
)
"""Steps by name: which release is started, and what kafka-features then does, to the level of which release."""
STOP_SECONDS = 60
CONTROLLER_SECONDS = 20
FEATURE_LINES = 8


class Pair(NamedTuple):
    """Two releases."""

    old: str
    new: str

    @property
    def name(self) -> str:
        return f"{self.old}-{self.new}"

    def version(self, which: str) -> str:
        return self.old if which == OLD else self.new


PAIRS = [Pair(*pair) for pair in itertools.combinations(VERSIONS, 2)]


def starts(pair: Pair, jars: Path, kept: Path) -> Iterator[dict[str, Any]]:
    """Yield what each start did, and what was predicted. Copies of the directories as they were before each start are
    in `kept`, by the name of the step."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        roots = {"controller": work / "controller", "broker": work / "broker"}
        ports: dict[str, int] = {}
        for step, which, features in STEPS:
            version = pair.version(which)
            cluster = ReleaseCluster(Release(version, KRAFT), jars, work, roots["controller"], [roots["broker"]])
            # Once the metadata has voters, it has their endpoints, too.
            ports = cluster.ports = ports or cluster.ports
            if step == "format":
                cluster.format_disks()
            for role, root in roots.items():
                shutil.copytree(root, kept / step / role)
            record: dict[str, Any] = {"name": pair.name, "step": step, "startedBy": version}
            with cluster:
                up = cluster.started()
                if not up:  # the broker may end before its controller does
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        cluster.processes["controller"].wait(CONTROLLER_SECONDS)
                for role in roots:
                    running = not cluster.ended(role) and (up or role == "controller")
                    record[role] = {"starts": running, "log": [] if running else telling(cluster.log(role))}
                if up and features:
                    action, level = features
                    printed = run_features(cluster, action, pair.version(level))
                    record["features"] = printed
                    if any("Could not" in line for line in printed):
                        record["unsafe"] = run_features(cluster, action, pair.version(level), "--unsafe")
                for process in reversed(cluster.processes.values()):
                    process.send_signal(signal.SIGTERM)
                    process.wait(timeout=STOP_SECONDS)
            yield record


def run_features(cluster: ReleaseCluster, action: str, version: str, *options: str) -> list[str]:
    """Return what kafka-features prints, the first lines."""
    printed = cluster.tool("FeatureCommand", action, "--release-version", version.rpartition(".")[0], *options)
    lines = [line for text in printed for line in text.splitlines() if line.strip() and "AppInfoParser" not in line]
    return once(lines)[:FEATURE_LINES]


def predicted(record: dict[str, Any], kept: Path) -> dict[str, Any]:
    """Return the result with predictions for both nodes, and the differences."""
    differences = []
    for role in ("controller", "broker"):
        directory = kept / record["step"] / role
        plan = kdump.restart_plan([str(directory)], kafka_version=parse_release(record["startedBy"]))
        record[role]["predicted"] = plan.verdict
        record[role]["reasons"] = [stop.exception.replace(f"{directory.parent}/", "…/") for stop in plan.allStops]
        starts = record[role]["starts"]
        if role == "broker" and not starts and not record["controller"]["starts"]:
            continue  # it waits for its controller, and ends with it
        if starts and plan.verdict == STOPPED:
            differences.append(f"{role}: starts, predicted: {record[role]['reasons'][:1]}")
        elif not starts and plan.verdict not in (STOPPED, UNKNOWN):
            differences.append(f"{role}: does not start, predicted: {plan.verdict}")
    return record | {"differences": differences}


def main() -> None:
    parser = trial_options(__doc__, "docs/upgrade-trials.json")
    parser.add_argument("--keep", type=Path, help="directory for copies of the disks before each start")
    options = parser.parse_args()
    results = RecordedResults(options.out, PAIRS)
    for pair in chosen(PAIRS, options.only):
        with tempfile.TemporaryDirectory() as name:
            kept = (options.keep or Path(name)) / pair.name
            rows = []
            for record in starts(pair, options.jars.resolve(), kept):
                rows.append(predicted(record, kept))
                print(
                    f"{pair.name} {record['step']}: {rows[-1]['differences'] or 'agrees'}", file=sys.stderr, flush=True
                )
            results.keep(pair.name, rows)


if __name__ == "__main__":
    main()
