"""A broker whose disk changes all the time, and the commands that are run over it."""

from __future__ import annotations

import re
import signal
import subprocess
import threading
import time
from pathlib import Path
from random import Random

from tools.trials.cluster import LOCAL_TIER, Cluster, classpath

CONFIGS = """
log.roll.ms=4000
log.retention.ms=6000
log.retention.check.interval.ms=500
log.segment.delete.delay.ms=1000
log.initial.task.delay.ms=500
log.cleaner.backoff.ms=200
log.flush.offset.checkpoint.interval.ms=1000
metadata.log.segment.ms=8000
metadata.log.max.record.bytes.between.snapshots=10000
metadata.max.retention.bytes=100000
transaction.state.log.segment.bytes=1048576
offsets.topic.segment.bytes=1048576
num.partitions=2
"""
"""Settings that make files come and go within seconds. They override those of Cluster, because the last value of a name
counts."""
TIERED = f"""{LOCAL_TIER}rlmm.config.remote.log.metadata.topic.num.partitions=4
remote.log.manager.task.interval.ms=1000
"""
SKIPPED = re.compile(r"trying to send transaction markers for (\S+), these partitions are likely deleted already")
SOURCE = Path(__file__).parent / "AtWork.java"


class Working(Cluster):
    """Combined node with two log directories, and clients that keep it busy, from the start of the `with` block to
    `stop`. `tiered`: copies its topics to remote storage, with little load; the jars have those of Kafka's tests."""

    def __init__(self, jars: Path, work: Path, seed: int, *, tiered: bool = False) -> None:
        self.log_dirs = [work / "d1"] if tiered else [work / "d1", work / "d2"]  # KIP-405: only one
        self.seed, self.tiered = seed, tiered
        self.tier = work / "tier"
        """Remote storage."""
        self.skipped: set[str] = set()
        """Transactional IDs whose markers a broker skipped that took a partition without a leader for a deleted one."""
        self.ways: list[str] = []
        """How the broker ended, each time."""
        super().__init__(jars, work, work / "unused", self.log_dirs, combined=True)

    def _properties(self, node: int, role: str) -> str:
        remote = TIERED.format(tier=self.tier) if self.tiered else ""
        return super()._properties(node, role) + CONFIGS + remote

    def java(self, name: str, *arguments: str, heap: str = "256m") -> list[str]:
        return super().java(name, *arguments, heap=heap)

    def __enter__(self) -> Working:
        self.tier.mkdir()
        self.format_disks()
        super().__enter__()
        if not self.started():
            raise RuntimeError("\n".join(self.log("broker")[-20:]))
        port = self.ports["broker"]
        command = [
            "java",
            "-Xmx128m",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            classpath(self.jars),
            str(SOURCE),
            f"127.0.0.1:{port}",
            str(self.seed),
            *(["tiered"] if self.tiered else []),
        ]
        with (self.work / "clients.log").open("wb") as log:
            self.processes["clients"] = subprocess.Popen(command, stdout=log, stderr=log)
        # Until there are topics, and a group has committed.
        while not (
            all(any(path.glob("*-*/*.log")) for path in self.log_dirs)
            and any(any(path.glob("__consumer_offsets-*/*.log")) for path in self.log_dirs)
        ):
            self.is_working()
            time.sleep(0.2)
        return self

    def is_working(self) -> None:
        """Raise RuntimeError if the broker or its clients have exited."""
        for name in ("broker", "clients"):
            if self.ended(name):
                raise RuntimeError(f"{name} ended: " + (self.work / f"{name}.log").read_text()[-2000:])

    def end_broker(self, *, kill: bool) -> None:
        """Kill the broker, or shut it down cleanly."""
        self.processes["broker"].send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        try:
            self.processes["broker"].wait(timeout=120)
        except subprocess.TimeoutExpired:  # an only controller may wait for itself
            self.processes["broker"].kill()
            self.processes["broker"].wait()
        self.note_skipped()

    def note_skipped(self) -> None:
        self.skipped.update(SKIPPED.findall("\n".join(self.log("broker"))))

    def start_broker(self) -> None:
        """Start the broker again, and wait until it is up. Raises RuntimeError if it does not start."""
        with (self.work / "broker.log").open("wb") as log:
            command = self.command("broker")
            self.processes["broker"] = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.work)
        if not self.started():
            raise RuntimeError("\n".join(self.log("broker")[-20:]))

    def come_and_go(self, ends: threading.Event, random: Random) -> None:
        """Shut the broker down, or kill it, and start it again, until the event is set; it is up then."""
        while not ends.wait(random.uniform(5, 30)):
            self.ways.append("kill" if random.random() < 0.5 else "stop")
            self.end_broker(kill=self.ways[-1] == "kill")
            ends.wait(random.uniform(0, 6))
            self.start_broker()

    def stop(self) -> None:
        """Stop the clients, and shut the broker down cleanly."""
        self.processes["clients"].kill()
        self.processes["clients"].wait()
        self.end_broker(kill=False)


def commands(dirs: list[Path], out: Path) -> list[tuple[str, list[str]]]:
    """Return every kdump command that reads a disk, with its usual options, for these log directories."""
    out.mkdir(parents=True, exist_ok=True)
    paths = [str(path) for path in dirs]
    state = ["--json", *paths]
    return [
        ("verify", ["verify", *state]),
        ("doctor", ["doctor", *state]),
        ("ls", ["ls", *state]),
        ("verify --jobs 2", ["verify", "--jobs", "2", *state]),
        ("ls --by segment", ["ls", "--by", "segment", *state]),
        ("stats", ["stats", *state]),
        ("ls --by topic", ["ls", "--by", "topic", *paths]),
        ("inspect", ["inspect", *state]),
        ("inspect --read-committed", ["inspect", "--read-committed", *state]),
        ("transactions", ["transactions", *state]),
        ("producers", ["producers", *state]),
        ("verify --crc", ["verify", "--crc", *state]),
        ("retention", ["retention", *state]),
        ("space", ["space", *state]),
        ("space, text", ["space", *paths]),
        ("groups", ["groups", *state]),
        ("cluster", ["cluster", *state]),
        ("restart-plan", ["restart-plan", *state]),
        ("diff", ["diff", "--json", paths[0], paths[0]]),
        ("reindex", ["reindex", *state]),
        ("reindex --out", ["reindex", "--out", str(out / "reindex"), *state]),
        ("salvage", ["salvage", "--out", str(out / "salvage"), *state]),
        ("carve", ["carve", *state]),
        ("report", ["report", "--out", str(out / "report.html"), *paths]),
        ("verify, text", ["verify", *paths]),
        ("scan", ["scan", "--json", "--out", str(out / "scan"), *paths]),
    ]


def remote_commands(dirs: list[Path], tier: Path) -> list[tuple[str, list[str]]]:
    """Return the commands that compare a disk with its remote storage."""
    state = ["--json", "--remote", str(tier), *map(str, dirs)]
    return [
        ("doctor --remote", ["doctor", *state]),
        ("verify --remote --quick", ["verify", "--quick", *state]),
        ("verify --remote", ["verify", *state]),
        ("ls --remote", ["ls", *state]),
        ("stats --remote", ["stats", *state]),
        ("find --remote", ["find", "offset >= 0", *state]),
        ("retention, tiered", ["retention", "--json", *map(str, dirs)]),
    ]
