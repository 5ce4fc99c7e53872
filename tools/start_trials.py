"""python -m tools.start_trials JARS [--only NAME,…] [--out docs/start-trials.json]

Starts a real node on copies of a broker's disk, as its own only controller, waits for its first checks, and compares
what it does to each partition with the course that restart-plan predicts: which offsets retention deletes, which
directories become stray, and where logs end. log.initial.task.delay.ms is 3 s, except in one case.

JARS has the jars of tools/kafka-test-jars.xml, for the tiered topic. Needs Java 17, 1 GB of memory and five minutes."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import kdump
from kdump.check.options import Options
from kdump.kafka.server_properties import ServerProperties
from kdump.log.internal_topics import METADATA_TOPIC, REMOTE_METADATA_TOPIC
from kdump.log.log_directory import META
from tools.corpus import unpack
from tools.trials.cluster import LOCAL_TIER, Cluster
from tools.trials.recorded_results import RecordedResults, chosen, trial_options

DISKS = unpack() / "disks"
TIERED = "kafka-4.3-tiered/disk"
DELAY = 3_000
"""log.initial.task.delay.ms of most cases."""
RAISES_LOG_START = ("startup-retention", "startup-remote-metadata-gone")
DELETED = re.compile(r"partition=(\S+?), .*Incremented log start offset to (\d+) due to segment deletion")


class Course(NamedTuple):
    """A start. `does`: to the disk before; `configs`: of the node; `disk`: below the corpus' disks."""

    name: str
    does: Callable[[Path], object] = lambda disk: None
    configs: tuple[tuple[str, str], ...] = ()
    delay: int = DELAY
    disk: str = "kafka-4.3/clean-1"


def copied(disk: Path, target: Path) -> Path:
    shutil.copytree(disk, target)
    for path in (target, *target.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)
    return target


def _torn(disk: Path) -> None:
    (disk / ".kafka_cleanshutdown").unlink(missing_ok=True)
    log = disk / "orders-none-0" / f"{0:020}.log"
    os.truncate(log, log.stat().st_size - 10)


def _without_remote_metadata(disk: Path) -> None:
    """Nothing is left of its only partition, not even in the checkpoints."""
    shutil.rmtree(disk / f"{REMOTE_METADATA_TOPIC}-0")
    for path in disk.glob("*-offset-checkpoint"):
        lines = path.read_text().splitlines()
        kept = [line for line in lines[2:] if not line.startswith(REMOTE_METADATA_TOPIC)]
        path.write_text("\n".join((*lines[:1], str(len(kept)), *kept, "")) if lines else "")


COURSES = (
    Course("healthy", configs=(("log.retention.ms", "-1"),)),
    Course("old-records"),
    Course("old-records-default-delay", delay=30_000),
    Course("retention-by-size", configs=(("log.retention.ms", "-1"), ("log.retention.bytes", "0"))),
    Course("torn-tail", _torn, (("log.retention.ms", "-1"),)),
    Course("unclean", lambda disk: (disk / ".kafka_cleanshutdown").unlink(), (("log.retention.ms", "-1"),)),
    Course("metadata-lost", lambda disk: shutil.rmtree(disk / "__cluster_metadata-0")),
    Course("tiered", configs=(("log.retention.ms", "-1"),), delay=40_000, disk=TIERED),
    Course("remote-metadata-lost", _without_remote_metadata, (("log.retention.ms", "-1"),), delay=40_000, disk=TIERED),
)


def tiered_configs(tier: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in LOCAL_TIER.format(tier=tier).split())


class CourseNode(Cluster):
    """The node of a course, with no configs but its own. Use it inside a `with` block, after the prediction."""

    def __init__(self, jars: Path, work: Path, course: Course, disk: Path) -> None:
        super().__init__(jars, work, work / "unused", [disk], combined=True)
        broker, controller = self.ports["broker"], self.ports["controller"]
        self.values = {
            "node.id": re.findall(r"node\.id=(\d+)", (disk / META).read_text())[0],
            "process.roles": "broker,controller",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(disk),
            "log.initial.task.delay.ms": str(course.delay),
            **({} if course.disk != TIERED else tiered_configs(work / "tier")),
            **dict(course.configs),
        }

    def _properties(self, node: int, role: str) -> str:
        return "".join(f"{name}={value}\n" for name, value in self.values.items())


def predicted(disk: Path, values: dict[str, str]) -> dict[str, Any]:
    """Return what restart-plan says of the first checks, the stray directories, and the ends of logs."""
    plan = kdump.restart_plan([str(disk)], Options(server=ServerProperties("server.properties", values)))
    checks = [event for event in plan.course.events if event.code in RAISES_LOG_START and event.loss is not None]
    logs = [log for log in plan.partitions if not (log.missing or log.state) and log.topic != METADATA_TOPIC]
    return {
        "deleted": {f"{each.topic}-{each.partition}": (each.loss.lastOffset or 0) + 1 for each in checks if each.loss},
        "stray": sorted(log.name for log in logs if log.stray),
        "ends": {log.name: log.logEndOffset for log in logs if not (log.stray or log.topic.startswith("__"))},
        "aborted": sorted(log.name for log in logs if log.openTransactions),
        "loses": plan.losesWithinHour,
    }


def happened(node: CourseNode, disk: Path, delay: int) -> dict[str, Any]:
    """Start the node, stop it after its first checks, and return the same of what it did."""
    with node:
        is_started = node.started()
        time.sleep(delay / 1000 + 5)
        node.processes["broker"].terminate()
        node.processes["broker"].wait(60)
    points = (disk / "recovery-point-offset-checkpoint").read_text().splitlines()[2:]
    ends = {f"{topic}-{number}": int(end) for topic, number, end in map(str.split, points)}
    return {
        "started": is_started,
        "deleted": {name: int(offset) for name, offset in DELETED.findall("\n".join(node.log("broker")))},
        "stray": sorted(each.name.rpartition(".")[0] for each in disk.glob("*-stray")),
        "ends": {name: end for name, end in ends.items() if not name.startswith("__")},
    }


def differences(expected: dict[str, Any], did: dict[str, Any]) -> list[str]:
    """Return what differs. The marker of a transaction that the coordinator may abort by then is predicted, too."""
    ends = {name: {end, end + 1} if name in expected["aborted"] else {end} for name, end in expected["ends"].items()}
    is_same = ends.keys() == did["ends"].keys() and all(end in ends[name] for name, end in did["ends"].items())
    return [*(key for key in ("deleted", "stray") if expected[key] != did[key]), *([] if is_same else ["ends"])]


def trial(jars: Path, course: Course) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        disk = copied(DISKS / course.disk, work / "disk")
        if course.disk == TIERED:
            copied(DISKS / course.disk / ".." / "tier", work / "tier")
        course.does(disk)
        node = CourseNode(jars, work, course, disk)
        expected = predicted(disk, node.values)
        did = happened(node, disk, course.delay)
        differs = differences(expected, did)
        print(course.name, f"DIFFERS: {differs} {expected} {did}" if differs else "as predicted", flush=True)
        return {"name": course.name, "predicted": expected, "happened": did, "differences": differs}


def main() -> None:
    options = trial_options(__doc__, "docs/start-trials.json").parse_args()
    record = RecordedResults(options.out, COURSES)
    for course in chosen(COURSES, options.only):
        record.keep(course.name, [trial(options.jars.resolve(), course)])


if __name__ == "__main__":
    main()
