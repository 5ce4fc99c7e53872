"""python -m tools.recovery_trials KAFKA PLACE [--only NAME,…] [--out docs/recovery-trials.json]

Measures how long a real broker takes to recover its logs after an unclean shutdown, with nothing of them in the page
cache, and compares that with `kdump restart-plan --estimate` and with what `--follow` shows meanwhile.

KAFKA contains VERSION/jars for each release of the cases, with the jars listed in tools/kafka-jars.xml. PLACE is a
directory with 20 GiB of space: the segments (1 to 5 GiB per case) are generated there once, and stay. Needs Java 17 and
root: a control group (blkio, version 1) limits how fast the disk is read. Takes about 25 minutes. On a machine that
does other things as well, run it with `nice -n -20`."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from kdump.questions.restart_plan.recovery.recovery_progress import RecoveryProgress, follow_recovery
from kdump.questions.restart_plan.recovery.recovery_time import Rates, RecoveryQuery, recovery_time, simulate
from kdump.questions.restart_plan.recovery.recovery_work import DirectoryWork, LogWork, recovery_works
from tools.trials.cluster import LOGGING, Cluster, classpath
from tools.trials.recovery_disks import MIB, DataSet, crashed_log, evict, write_checkpoints, write_data

NEWEST, OLDER = "4.3.1", "3.9.1"
CLUSTER_ID = "kdumpRecoveryTrials00A"
TOPICS = {"events": 40, "small": 3000}
"""Topics and their numbers of partitions."""
CONFIGS = "log.index.size.max.bytes=10485760\nauto.leader.rebalance.enable=false\n"
ROOT = Path(__file__).parent.parent
FACTS = ("segments", "bytes", "batches", "cachedBytes", "processors", "readSpeed", "readSpeedFrom")
LIMIT = 600
"""Seconds after which a recovery is given up."""

DATA = {
    data.name: data
    for data in (
        DataSet("16k", 10, 4, 128 * MIB, 16 << 10),
        DataSet("200b", 8, 1, 128 * MIB, 200),
        DataSet("1k", 8, 2, 64 * MIB, 1 << 10),
        DataSet("1m", 8, 2, 128 * MIB, 1 << 20, idempotent=False),
        DataSet("zstd", 8, 2, 64 * MIB, 64 << 10, "zstd"),
        DataSet("lz4", 8, 2, 64 * MIB, 32 << 10, "lz4"),
        DataSet("small", 3000, 1, MIB // 2, 16 << 10),
        DataSet("one", 1, 2, 1024 * MIB, 16 << 10),
    )
}


class Case(NamedTuple):
    """`speed`: MB/s that the disk delivers, 0: what it can. `logs`: of the data set, 0: all. `flushed`: segments of
    each log below the recovery point. `without`: endings of files that are missing."""

    name: str
    data: str
    threads: int
    speed: int
    logs: int = 0
    dirs: int = 1
    flushed: int = 0
    without: tuple[str, ...] = ()
    release: str = NEWEST


CASES = (
    Case("16k-1t-60", "16k", 1, 60, 2),
    Case("16k-1t-120", "16k", 1, 120, 4),
    Case("16k-1t-300", "16k", 1, 300, 8),
    Case("16k-1t", "16k", 1, 0),
    Case("16k-2t-120", "16k", 2, 120, 5),
    Case("16k-2t-300", "16k", 2, 300),
    Case("16k-2t", "16k", 2, 0),
    Case("16k-4t-300", "16k", 4, 300, 6),
    Case("16k-4t", "16k", 4, 0),
    Case("200b-1t-120", "200b", 1, 120),
    Case("200b-2t-300", "200b", 2, 300),
    Case("200b-4t", "200b", 4, 0),
    Case("1k-1t", "1k", 1, 0),
    Case("1k-2t-120", "1k", 2, 120),
    Case("1m-1t-300", "1m", 1, 300),
    Case("1m-2t", "1m", 2, 0),
    Case("zstd-1t-120", "zstd", 1, 120),
    Case("zstd-2t", "zstd", 2, 0),
    Case("lz4-2t-300", "lz4", 2, 300),
    Case("one-1t-300", "one", 1, 300),
    Case("one-2t", "one", 2, 0),
    Case("small-1t-120", "small", 1, 120),
    Case("small-2t-300", "small", 2, 300),
    Case("small-4t", "small", 4, 0),
    Case("flushed-2t-120", "16k", 2, 120, flushed=3),
    Case("snapshots-2t-300", "16k", 2, 300, 8, flushed=2, without=("snapshot",)),
    Case("indexes-2t-300", "16k", 2, 300, 4, without=("index", "timeindex")),
    Case("two-dirs-1t-120", "16k", 1, 120, 6, dirs=2),
    Case("two-dirs-2t-300", "16k", 2, 300, dirs=2),
    Case("older-2t-300", "16k", 2, 300, 6, release=OLDER),
    Case("older-1t", "1k", 1, 0, release=OLDER),
)


class Node(Cluster):
    """A broker that is its own controller, with the JVM's usual settings."""

    def __enter__(self) -> Node:
        super().__enter__()
        return self

    def java(self, name: str, *arguments: str, heap: str = "512m") -> list[str]:
        shown = "-Dorg.slf4j.simpleLogger.showDateTime=true"
        return ["java", f"-Xmx{heap}", f"-Xms{heap}", *LOGGING, shown, "-cp", classpath(self.jars), name, *arguments]

    def loaded(self, on_wait: Callable[[], None]) -> int:
        """Wait until the logs are loaded, and return the milliseconds that took, as the broker logs it."""
        until = time.monotonic() + LIMIT
        while time.monotonic() < until and not self.ended("broker"):
            found = re.search(r"Loaded \d+ logs in (\d+) ?ms", (self.work / "broker.log").read_text(errors="replace"))
            if found:
                return int(found[1])
            on_wait()
            time.sleep(0.5)
        raise RuntimeError("\n".join(self.log("broker")[-20:]))


def node(jars: Path, work: Path, dirs: list[Path], threads: int = 2) -> Node:
    configs = f"{CONFIGS}num.recovery.threads.per.data.dir={threads}\n"
    return Node(jars, work, work, dirs, metadata=work / "metadata", combined=True, configs=configs)


def template(jars: Path, place: Path) -> Path:
    """Return a directory with the files of a node that has the topics, created once by a broker of the oldest release,
    whose metadata all of them read."""
    work = place / "template"
    if (work / "complete").exists():
        return work
    shutil.rmtree(work, ignore_errors=True)
    dirs = [work / "0", work / "1"]
    for each in (work / "metadata", *dirs):
        each.mkdir(parents=True)
    broker = node(jars, work, dirs)
    broker.format_disks(CLUSTER_ID)
    with broker:
        if not broker.started():
            raise RuntimeError("\n".join(broker.log("broker")[-20:]))
        for topic, count in TOPICS.items():
            create = ("--create", "--topic", topic, "--partitions", str(count), "--replication-factor", "1")
            print(*broker.tool("TopicCommand", *create, timeout=120), file=sys.stderr)
        broker.processes["broker"].terminate()
        broker.processes["broker"].wait(60)
    (work / "complete").touch()
    return work


def make(case: Case, base: Path, data: Path, work: Path) -> list[Path]:
    """Create the log directories of a case, as they are after a crash; return them."""
    shutil.copytree(base / "metadata", work / "metadata")
    topic = "small" if case.data == "small" else "events"
    dirs = [work / str(number) for number in range(case.dirs)]
    points: dict[Path, dict[tuple[str, int], int]] = {}
    for number, path in enumerate(dirs):
        path.mkdir()
        shutil.copyfile(base / str(number) / "meta.properties", path / "meta.properties")
        points[path] = {}
    for number in range(case.logs or DATA[case.data].logs):
        path = dirs[number % case.dirs]
        target = path / f"{topic}-{number}"
        target.mkdir()
        known = next(base.glob(f"[01]/{topic}-{number}/partition.metadata"))
        shutil.copyfile(known, target / known.name)
        source = data / str(number)
        points[path][topic, number] = crashed_log(source, target, flushed=case.flushed, without=case.without)
    for path in dirs:
        write_checkpoints(path, points[path])
    return dirs


class Throttled:
    """A control group in which the device of a directory delivers so many bytes per second (0: what it can)."""

    ROOT = Path("/sys/fs/cgroup/blkio")

    def __init__(self, directory: Path, per_second: int) -> None:
        self.group = self.ROOT / "kdump-trial" if per_second else self.ROOT
        if per_second:
            self.group.mkdir(exist_ok=True)
            number = os.stat(directory).st_dev
            device = f"{os.major(number)}:{os.minor(number)}"
            (self.group / "blkio.throttle.read_bps_device").write_text(f"{device} {per_second}")

    def __enter__(self) -> None:
        (self.group / "cgroup.procs").write_text(str(os.getpid()))

    def __exit__(self, *_error: object) -> None:
        (self.ROOT / "cgroup.procs").write_text(str(os.getpid()))


def trial(kafka: Path, place: Path, case: Case) -> dict[str, Any]:
    """Run one case and return the result."""
    base = template(kafka / OLDER / "jars", place)
    data = write_data(DATA[case.data], place / "data")
    work = place / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    try:
        dirs = make(case, base, data, work)
        texts = list(map(str, dirs))
        evict(work)
        with Throttled(work, case.speed * 1_000_000):
            estimated, _ = recovery_time(texts, RecoveryQuery(case.threads))
            works = recovery_works(texts)
            evict(work)
            seen: list[RecoveryProgress] = []
            with node(kafka / case.release / "jars", work, dirs, case.threads) as broker:
                process = broker.processes["broker"].pid
                follower = follow_recovery(works, 0, sleep=lambda _seconds: None)

                def look() -> None:
                    if "Loading logs from" in (work / "broker.log").read_text(errors="replace"):
                        seen.extend(islice(follower, 1))

                milliseconds = broker.loaded(look)
                assert all(each.process == process for each in seen)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    result: dict[str, Any] = case._asdict() | {key: getattr(estimated, key) for key in FACTS}
    result |= {
        "estimated": estimated.seconds,
        "estimatedLeast": estimated.secondsLeast,
        "estimatedMost": estimated.secondsMost,
    }
    return result | {"actual": milliseconds / 1000, "shown": progress(seen)}


def modelled(result: dict[str, Any]) -> float:
    """Return the estimate of the current model for a recorded result, whose disk need not be there."""
    data = DATA[result["data"]]
    segments = data.segments - result["flushed"]
    size = result["bytes"] // result["segments"]
    works = [DirectoryWork(str(ROOT), clean=False) for _ in range(result["dirs"])]
    for number in range(result["logs"] or data.logs):
        logs = works[number % len(works)].logs
        log = LogWork("t", number, f"t-{number}", str(ROOT), len(logs) + 1, data.segments)
        log.bases.extend(range(segments))
        log.sizes.extend([size] * segments)
        log.againBytes = log.bytes if "index" in result["without"] else 0
        log.producerBytes = size * result["flushed"] if "snapshot" in result["without"] else 0
        logs.append(log)
    uncached = 1 - result["cachedBytes"] / result["bytes"]
    batch_size = result["bytes"] // result["batches"]
    rates = Rates(result["readSpeed"], batch_size, uncached, result["processors"])
    return simulate(works, result["threads"], rates)[0]


def progress(seen: list[RecoveryProgress]) -> list[list[float]]:
    """Return up to ten times what --follow showed: the share of the time that had passed, and of the bytes."""
    moving = [each for each in seen if each.bytesDone]
    if len(moving) < 2:
        return []
    first, last = moving[0].time, moving[-1].time
    every = moving[:: max(1, len(moving) // 10)]
    return [
        [round((each.time - first) / max(1, last - first), 2), round(each.bytesDone / each.bytes, 2)] for each in every
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kafka", type=Path)
    parser.add_argument("place", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path, default=Path("docs/recovery-trials.json"))
    options = parser.parse_args()
    only = set(filter(None, options.only.split(",")))
    results: dict[str, Any] = {}
    if options.out.exists():
        results = {result["name"]: result for result in json.loads(options.out.read_text())}
    for case in CASES:
        if only and case.name not in only:
            continue
        result = trial(options.kafka.resolve(), options.place.resolve(), case)
        ratio = result["estimated"] / result["actual"]
        print(
            f"{case.name}: estimated {result['estimated']} s, took {result['actual']} s ({ratio:.2f}), "
            f"read speed {result['readSpeed'] / 1e6:.0f}; {result['shown']}",
            file=sys.stderr,
            flush=True,
        )
        results[case.name] = result
        rows = [json.dumps(results[case.name]) for case in CASES if case.name in results]
        options.out.write_text("[\n" + ",\n".join(rows) + "\n]\n")


if __name__ == "__main__":
    main()
