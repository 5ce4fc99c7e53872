"""python -m tools.start_trials JARS [--only NAME,…] [--out docs/start-trials.json]

Starts a real node on copies of a broker's disk, as its own only controller, waits for its first checks, and compares
what it does to each partition with the course that restart-plan predicts: which offsets retention deletes, which
directories become stray, and where logs end. JARS has those listed in tools/kafka-jars.xml. log.initial.task.delay.ms
is 3 s, except in one case.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import kdump
from kdump.check.options import Options
from kdump.kafka.server_properties import ServerProperties
from kdump.log.internal_topics import METADATA_TOPIC
from tools.corpus import unpack
from tools.trials.cluster import LOGGING, free_port

ROOT = Path(__file__).parent.parent
DISK = unpack() / "disks" / "kafka-4.3" / "clean-1"
DELAY = 3_000
"""log.initial.task.delay.ms of most cases."""
STARTED = "Kafka Server started"
DELETED = re.compile(r"partition=(\S+?), .*Incremented log start offset to (\d+) due to segment deletion")


class Course(NamedTuple):
    """A start. `does`: to the disk before; `configs`: of the node."""

    name: str
    does: Callable[[Path], object] = lambda disk: None
    configs: tuple[tuple[str, str], ...] = ()
    delay: int = DELAY


def copied(disk: Path, target: Path) -> Path:
    shutil.copytree(disk, target)
    for path in (target, *target.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)
    return target


def _torn(disk: Path) -> None:
    (disk / ".kafka_cleanshutdown").unlink(missing_ok=True)
    log = disk / "orders-none-0" / f"{0:020}.log"
    os.truncate(log, log.stat().st_size - 10)


COURSES = (
    Course("healthy", configs=(("log.retention.ms", "-1"),)),
    Course("old-records"),
    Course("old-records-default-delay", delay=30_000),
    Course("retention-by-size", configs=(("log.retention.ms", "-1"), ("log.retention.bytes", "0"))),
    Course("torn-tail", _torn, (("log.retention.ms", "-1"),)),
    Course("unclean", lambda disk: (disk / ".kafka_cleanshutdown").unlink(), (("log.retention.ms", "-1"),)),
    Course("metadata-lost", lambda disk: shutil.rmtree(disk / "__cluster_metadata-0")),
)


def configured(course: Course, disk: Path) -> dict[str, str]:
    """Return the server.properties of the node."""
    broker, controller = free_port(), free_port()
    return {
        "node.id": re.findall(r"node\.id=(\d+)", (disk / "meta.properties").read_text())[0],
        "process.roles": "broker,controller",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(disk),
        "log.initial.task.delay.ms": str(course.delay),
        **dict(course.configs),
    }


def predicted(disk: Path, values: dict[str, str]) -> dict[str, Any]:
    """Return what restart-plan says of the first checks, the stray directories, and the ends of logs."""
    plan = kdump.restart_plan([str(disk)], Options(server=ServerProperties("server.properties", values)))
    checks = [event for event in plan.course.events if event.code == "startup-retention" and event.loss is not None]
    logs = [log for log in plan.partitions if not (log.missing or log.state) and log.topic != METADATA_TOPIC]
    return {
        "deleted": {f"{each.topic}-{each.partition}": (each.loss.lastOffset or 0) + 1 for each in checks if each.loss},
        "stray": sorted(log.name for log in logs if log.stray),
        "ends": {log.name: log.logEndOffset for log in logs if not (log.stray or log.topic.startswith("__"))},
        "aborted": sorted(log.name for log in logs if log.openTransactions),
        "loses": plan.losesWithinHour,
    }


def happened(jars: Path, disk: Path, values: dict[str, str], place: Path, delay: int) -> dict[str, Any]:
    """Start the node, stop it after its first checks, and return the same of what it did."""
    (place / "server.properties").write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    log = place / "server.log"
    with open(log, "w") as out:
        command = ("java", "-Xmx512m", *LOGGING, "-cp", f"{jars}/*", "kafka.Kafka", str(place / "server.properties"))
        node = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 120
        while STARTED not in log.read_text() and time.monotonic() < deadline and node.poll() is None:
            time.sleep(0.5)
        time.sleep(delay / 1000 + 5)
    finally:
        node.terminate()
        node.wait(60)
    text = log.read_text()
    points = (disk / "recovery-point-offset-checkpoint").read_text().splitlines()[2:]
    ends = {f"{topic}-{number}": int(end) for topic, number, end in map(str.split, points)}
    return {
        "started": STARTED in text,
        "deleted": {name: int(offset) for name, offset in DELETED.findall(text)},
        "stray": sorted(each.name.rpartition(".")[0] for each in disk.glob("*-stray")),
        "ends": {name: end for name, end in ends.items() if not name.startswith("__")},
    }


def differences(said: dict[str, Any], did: dict[str, Any]) -> list[str]:
    """Return what differs. The marker of a transaction that the coordinator may abort by then is predicted, too."""
    ends = {name: {end, end + 1} if name in said["aborted"] else {end} for name, end in said["ends"].items()}
    is_same = ends.keys() == did["ends"].keys() and all(end in ends[name] for name, end in did["ends"].items())
    return [*(key for key in ("deleted", "stray") if said[key] != did[key]), *([] if is_same else ["ends"])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jars", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "start-trials.json")
    options = parser.parse_args()
    rows = []
    for course in COURSES:
        if options.only and course.name not in options.only.split(","):
            continue
        with tempfile.TemporaryDirectory() as made:
            place = Path(made)
            disk = copied(DISK, place / "disk")
            course.does(disk)
            values = configured(course, disk)
            said = predicted(disk, values)
            did = happened(options.jars, disk, values, place, course.delay)
            differs = differences(said, did)
            rows.append({"name": course.name, "predicted": said, "happened": did, "differences": differs})
            print(course.name, "as predicted" if not differs else f"DIFFERS: {differs} {said} {did}", flush=True)
    options.out.write_text("[\n" + ",\n".join(json.dumps(row, sort_keys=True) for row in rows) + "\n]\n")


if __name__ == "__main__":
    main()
