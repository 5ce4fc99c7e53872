"""Benchmark of `kdump scan` on many small partitions: a fleet of 6 brokers of 200 partitions, scanned, scanned again
unchanged, and with one partition changed; and a fleet of 100 brokers of 4,000 partitions with 20 segments each, which
is planned but not read. Run as python -m bench.fleet_partitions.

Reports CPU seconds and peak memory of the JVM, of the workers, and of kdump's own process, and the files of the result.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.broker_disks import many_partitions

KDUMP = str(Path(sys.executable).with_name("kdump"))
TICKS = os.sysconf("SC_CLK_TCK")
ENVIRONMENT = {"SPARK_DRIVER_MEMORY": "1g"}
FINDINGS = (0, 1)
"""Exit statuses of a scan that ran to its end."""


class Usage(NamedTuple):
    """CPU seconds and peak memory (MiB, largest process) of one kind of process."""

    seconds: float
    peak: int


class Measured(NamedTuple):
    """A command: elapsed seconds, and usage by kind: jvm, workers, driver."""

    elapsed: float
    of: dict[str, Usage]

    def text(self) -> str:
        parts = [f"{kind} {used.seconds:6.1f} s {used.peak:5} MiB" for kind, used in sorted(self.of.items())]
        return f"{self.elapsed:6.1f} s elapsed; CPU and peak: {', '.join(parts)}"


def measured(command: list[str], statuses: tuple[int, ...] = (0,)) -> Measured:
    """Run a command, and watch its processes. Ends the benchmark if its exit status is none of these."""
    began = time.monotonic()
    process = subprocess.Popen(command, env={**os.environ, **ENVIRONMENT}, stdout=subprocess.DEVNULL)
    seen: dict[int, tuple[str, float, int]] = {}
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.1):
            for each in _tree(process.pid):
                found = _usage(each, process.pid)
                if found is not None:
                    seen[each] = found

    thread = threading.Thread(target=watch)
    thread.start()
    process.wait()
    stop.set()
    thread.join()
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0])
    for kind, seconds, peak in seen.values():
        sums[kind][0] += seconds
        sums[kind][1] = max(sums[kind][1], peak)
    if process.returncode not in statuses:
        raise SystemExit(f"{' '.join(command)}: exit status {process.returncode}")
    return Measured(time.monotonic() - began, {kind: Usage(a, int(b)) for kind, (a, b) in sums.items()})


def _tree(root: int) -> Iterator[int]:
    """Yield a process and all processes below it."""
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield pid
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                waiting += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
        except OSError:
            continue


def _usage(pid: int, root: int) -> tuple[str, float, int] | None:
    """Return the kind of a process, its CPU seconds, and its peak memory in MiB."""
    try:
        name = os.path.basename(os.readlink(f"/proc/{pid}/exe"))  # not comm, which of a thread of Java is another
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        peak = int(Path(f"/proc/{pid}/status").read_text().partition("VmHWM:")[2].split()[0]) // 1024
    except (OSError, IndexError):
        return None
    kind = "jvm" if name == "java" else "driver" if pid == root else "workers"
    return kind, sum(map(int, fields[11:13])) / TICKS, peak


def small_fleet(root: Path, brokers: int, partitions: int) -> list[Path]:
    """Write the disks of a fleet: `partitions` partitions of 12 segments on each broker."""
    disks = []
    for number in range(brokers):
        disk = root / f"broker-{number}"
        disk.mkdir(parents=True)
        many_partitions(disk, partitions)
        properties(disk, number)
        disks.append(disk)
    return disks


def properties(disk: Path, number: int) -> None:
    ids = ("version=1", "cluster.id=" + 22 * "A", f"node.id={number}", f"directory.id={19 * 'A'}{number:03}")
    (disk / "meta.properties").write_text("\n".join(ids) + "\n")


def large_fleet(root: Path, brokers: int, partitions: int, segments: int) -> list[Path]:
    """Write disks that can be planned but have no batches: each broker's partitions are links to those of one disk,
    with empty segments."""
    source = root / "partitions"
    for number in range(partitions):
        here = source / f"topic-{number // 20:04}-{number % 20}"
        here.mkdir(parents=True)
        for segment in range(segments):
            for ending in ("log", "index", "timeindex"):
                (here / f"{segment * 1000:020}.{ending}").touch()
    disks = []
    for number in range(brokers):
        disk = root / f"large-{number}"
        disk.mkdir()
        for each in os.listdir(source):
            (disk / each).symlink_to(f"../partitions/{each}")
        (disk / "replication-offset-checkpoint").write_text("0\n0\n")
        properties(disk, number)
        disks.append(disk)
    return disks


def files_of(out: Path) -> str:
    sizes = [path.stat().st_size for path in out.rglob("*.parquet")]
    return f"{len(sizes)} Parquet files, {sum(sizes) / 1e6:.1f} MB"


ALONE = """
from kdump.spark.session import running

with running(None, {}) as spark:
    spark.sparkContext.parallelize([1], 1).map(str).collect()
"""
PLAN = """
import sys
from kdump.spark import scan
from kdump.spark.session import running
from kdump.spark.store import Store
from kdump.spark.task_runner import SparkTasks

class Planned(Exception):
    pass

def planned(*arguments):
    raise Planned

scan.read_chunk_file = planned
with running(None, {}) as spark:
    tasks = SparkTasks(spark)
    run = tasks.run
    def only_planned(tasks, *more):
        if tasks and tasks[0].func is planned:
            print(f"{len(tasks)} tasks", file=sys.stderr)
            raise Planned
        return run(tasks, *more)
    tasks.run = only_planned
    try:
        scan.scan(tasks, scan.ScanOptions(tuple(sys.argv[2:])), Store(sys.argv[1]))
    except Planned:
        pass
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.fleet_partitions", description=__doc__)
    parser.add_argument("--dir", help="write the disks below this directory")
    parser.add_argument("--brokers", type=int, default=6)
    parser.add_argument("--partitions", type=int, default=200)
    parser.add_argument("--large", type=int, default=100, help="number of brokers of the fleet that is planned")
    parser.add_argument("--large-partitions", type=int, default=4000)
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="kdump-fleet-", dir=options.dir))
    try:
        if options.brokers:
            _small(root, options)
        if options.large:
            _large(root, options)
    finally:
        shutil.rmtree(root)


def _small(root: Path, options: Any) -> None:
    disks = small_fleet(root / "small", options.brokers, options.partitions)
    out = root / "out"
    command = [KDUMP, "scan", *map(str, disks), "--out", str(out), "--quiet"]
    print(f"{options.brokers} brokers of {options.partitions} partitions with 12 segments")
    start = measured([sys.executable, "-c", ALONE])
    print(f"  Spark alone         {start.text()}")
    print(f"  first scan          {measured(command, FINDINGS).text()}; {files_of(out)}")
    print(f"  unchanged           {measured(command, FINDINGS).text()}; {files_of(out)}")
    changed = next((disks[0] / "topic-0000-0").glob("*.log"))
    data = changed.read_bytes()
    changed.unlink()  # it is a hard link
    changed.write_bytes(data)
    print(f"  one changed         {measured(command, FINDINGS).text()}; {files_of(out)}")


def _large(root: Path, options: Any) -> None:
    disks = large_fleet(root / "large", options.large, options.large_partitions, 20)
    command = [sys.executable, "-c", PLAN, str(root / "planned"), *map(str, disks)]
    print(f"{options.large} brokers of {options.large_partitions:,} partitions with 20 segments")
    print(f"  planned             {measured(command).text()}")


if __name__ == "__main__":
    main()
