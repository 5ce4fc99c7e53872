"""python -m tools.idle_trial JARS [--pairs 40] [--seconds 6] [--out build/idle-trial.json]

Measures what a broker at full load loses to `kdump verify --state --idle` on the same machine: a producer sends as fast
as it can, and half of the time, in random order within each pair of periods, a scrub of another disk runs; in the other
half it is stopped (SIGSTOP). Pairs during which other processes worked are not counted. JARS is a directory with the
jars listed in tools/kafka-jars.xml. Needs Java 17.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from bench.segments import MIB, repeat, split
from kdump.io.processor_share import machine_time
from tools.trials.cluster import TOOL, Cluster

ROOT = Path(__file__).parents[1]
CONFIGS = "auto.create.topics.enable=true\nlog.segment.bytes=104857600\nlog.retention.bytes=209715200\n"
SENT = re.compile(rb"(\d+) records sent, ")
REPORTING = 500
"""Milliseconds between two lines of the producer."""
SETTLE = 1.0
"""Seconds after a change that are not counted."""
OTHERS = 0.1
"""Processors that other processes may use in a pair that counts."""
WARM_UP = 30.0
"""Seconds until the virtual machines have compiled what they run."""


class Load:
    """A producer that sends as fast as it can, and how many records it has sent until when."""

    def __init__(self, cluster: Cluster) -> None:
        where = f"bootstrap.servers=127.0.0.1:{cluster.ports['broker']}"
        command = cluster.java(f"{TOOL}ProducerPerformance", "--topic", "load", "--num-records", "2000000000")
        command += ["--record-size", "100", "--throughput", "-1", "--reporting-interval", str(REPORTING)]
        command += ["--producer-props", where, "batch.size=65536", "linger.ms=5", "acks=1"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.sent: list[tuple[float, int]] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if found := SENT.match(line):
                self.sent.append((time.monotonic(), int(found[1])))

    def rate(self, start: float, end: float) -> float:
        """Return the records per second of the reports within a period."""
        counts = [count for at, count in self.sent if start < at <= end]
        times = [at for at, _ in self.sent if start < at <= end]
        if len(times) < 2:
            raise SystemExit("the producer reports nothing")
        return sum(counts[1:]) / (times[-1] - times[0])


class Scrub:
    """A scrub that begins again whenever it has ended, and runs between `go` and `pause` only."""

    def __init__(self, disk: Path, state: Path) -> None:
        self.disk, self.state = disk, state
        self.used = 0.0
        self._begin()

    def _begin(self) -> None:
        shutil.rmtree(self.state, ignore_errors=True)
        command = [sys.executable, "-m", "kdump", "verify", str(self.disk), "--state", str(self.state), "--idle"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def go(self, seconds: float) -> None:
        """Run for this many seconds."""
        self.process.send_signal(signal.SIGCONT)
        self.wait(seconds)
        self.process.send_signal(signal.SIGSTOP)

    def wait(self, seconds: float) -> None:
        """Wait in the same way whether it runs or not; it begins again if it has ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                self._begin()
            time.sleep(0.25)


def processor_time(pid: int) -> float:
    """Return the processor time of a process in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.idle_trial", description=__doc__)
    parser.add_argument("jars", type=Path)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--mib", type=int, default=2048, help="size of the disk that is checked")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "idle-trial.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kdump-") as name:
        work = Path(name)
        (work / "disk").mkdir()
        repeat(ROOT / "fixtures/clean-1/orders-none-0" / f"{0:020}.log", work / "one", options.mib * MIB)
        split(work / "one", work / "disk" / "orders-0", max(1, options.mib // 64))
        (work / "one").unlink()
        cluster = Cluster(options.jars, work, work / "unused", [work / "broker"], combined=True, configs=CONFIGS)
        cluster.format_disks()
        with cluster:
            if not cluster.started():
                raise SystemExit("\n".join(cluster.log("broker")[-20:]))
            load, scrub = Load(cluster), Scrub(work / "disk", work / "state")
            try:
                measured = Measured(cluster.processes["broker"].pid, load, scrub)
                result = measured.all(options.pairs, options.seconds)
            finally:
                load.process.kill()
                scrub.process.kill()
    text = json.dumps(result, indent=1)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text + "\n")
    print(text)


@dataclass
class Measured:
    """What the pairs of periods show."""

    broker: int
    load: Load
    scrub: Scrub
    own: float = 0.0
    """Processor time of the scrub in `time`, both in seconds."""
    time: float = 0.0
    pairs: list[tuple[float, float]] = field(default_factory=list)
    """Records per second without the scrub and with it."""

    def all(self, pairs: int, seconds: float) -> dict[str, object]:
        """Measure until so many pairs count, or four times as many have been measured."""
        self.scrub.go(WARM_UP)
        for number in range(4 * pairs):
            order = Random(number).sample((True, False), 2)
            rates, others = zip(*(self.period(runs, seconds) for runs in order), strict=True)
            by = dict(zip(order, rates, strict=True))
            counts = max(others) <= OTHERS
            if counts:
                self.pairs.append((by[False], by[True]))
            note = "" if counts else f" not counted: others used {max(others):.2f} processors"
            print(f"{len(self.pairs)}/{pairs}: {1 - by[True] / by[False]:+.1%}{note}", file=sys.stderr, flush=True)
            if len(self.pairs) == pairs:
                break
        losses = [1 - during / without for without, during in self.pairs]
        return {
            "pairs": len(losses),
            "processors": os.cpu_count(),
            "recordsPerSecond": round(statistics.mean(without for without, _ in self.pairs)),
            "loss": round(statistics.mean(losses), 4),
            "lossMedian": round(statistics.median(losses), 4),
            "standardError": round(statistics.stdev(losses) / len(losses) ** 0.5, 4),
            "scrubProcessors": round(self.own / self.time, 4),
        }

    def period(self, runs: bool, seconds: float) -> tuple[float, float]:
        """Return the records per second in a period, and how many processors others used."""
        began, before, busy = time.monotonic(), self._used(), machine_time()
        if runs:
            self.scrub.go(SETTLE + seconds)
        else:
            self.scrub.wait(SETTLE + seconds)
        after, busy, elapsed = self._used(), machine_time() - busy, time.monotonic() - began
        scrub = after[0] - before[0]
        if runs and scrub >= 0:  # else it has begun again
            self.own, self.time = self.own + scrub, self.time + elapsed
        return self.load.rate(began + SETTLE, time.monotonic()), (busy - sum(after) + sum(before)) / elapsed

    def _used(self) -> list[float]:
        return [processor_time(each) for each in (self.scrub.process.pid, self.load.process.pid, self.broker)]


if __name__ == "__main__":
    main()
