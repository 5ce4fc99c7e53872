"""A cluster whose first broker has its log directory on a small file system of its own, which can be filled."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from tools.trials.cluster import COMMON, LISTENERS, Cluster, free_port

SOURCE = Path(__file__).parent / "FillDisk.java"
FULL, OTHER = "broker", "broker-2"
SETTINGS = """
log.initial.task.delay.ms=30000
log.retention.check.interval.ms=10000
log.segment.delete.delay.ms=60000
log.index.size.max.bytes=10485760
log.segment.bytes=67108864
log.flush.offset.checkpoint.interval.ms=60000
controlled.shutdown.enable=true
unclean.leader.election.enable=false
log.retention.ms=604800000
min.insync.replicas=1
group.initial.rebalance.delay.ms=0
"""
"""Kafka's own defaults where COMMON has others, but for the interval of the retention check and the segment size."""


class NoMount(Exception):
    """Raised if this machine refuses to mount a file system."""


class SmallFileSystem:
    """A file system of `size` bytes at `path`: ext4 in a file, or else a tmpfs."""

    def __init__(self, path: Path, size: int) -> None:
        self.path, self.size = path, size
        self.kind = ""

    def __enter__(self) -> SmallFileSystem:
        self.path.mkdir(parents=True)
        image = self.path.with_suffix(".img")
        with image.open("wb") as file:
            file.truncate(self.size)
        # The reserved blocks that mke2fs leaves by default are for root: the broker of a trial is root.
        made = subprocess.run(
            ["mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", image], capture_output=True, check=False
        )
        tries: list[tuple[str, list[str | Path]]] = (
            [("ext4", ["mount", "-o", "loop", image, self.path])] if made.returncode == 0 else []
        )
        tries.append(("tmpfs", ["mount", "-t", "tmpfs", "-o", f"size={self.size}", "tmpfs", self.path]))
        for self.kind, command in tries:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return self
        raise NoMount(done.stderr.strip())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        subprocess.run(["umount", self.path], check=False, capture_output=True)
        self.path.with_suffix(".img").unlink(missing_ok=True)

    @property
    def free(self) -> int:
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize

    def fill(self, name: str, leave: int = 0) -> None:
        """Write a file until only `leave` bytes are free."""
        block = bytes(1 << 16)
        with (self.path / name).open("ab", buffering=0) as file:
            try:
                while (room := self.free - leave) > 0:
                    file.write(block[: min(room, len(block))])
            except OSError:
                pass
            os.fsync(file.fileno())


class FullDisk(Cluster):
    """A controller and a broker, or two, on new disks. The first broker's log directory is `disk`/kafka."""

    def __init__(self, jars: Path, work: Path, disk: SmallFileSystem, *, brokers: int = 1, configs: str = "") -> None:
        self.disk = disk
        self.root = disk.path / "kafka"
        super().__init__(jars, work, work / "controller-disk", [self.root], configs=SETTINGS + configs)
        names = [FULL, OTHER][:brokers]
        self.ports = {role: free_port() for role in ("controller", *names)}
        self.dirs = {"controller": [work / "controller-disk"], FULL: [self.root], OTHER: [work / "other-disk"]}

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for role, port in self.ports.items() if role != "controller")

    def __enter__(self) -> FullDisk:
        cluster = "AAAAAAAAAAAAAAAAAAAAAQ"
        for node, role in enumerate(self.ports):
            kind = role.split("-")[0]
            text = COMMON.format(node=node, roles=kind, voter=0, port=self.ports["controller"], dirs=self.dirs[role][0])
            text += LISTENERS[kind].format(port=self.ports[role], controller=self.ports["controller"])
            (self.work / f"{role}.properties").write_text(text + (self.configs if kind == "broker" else ""))
            self.java_run("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self.properties(role)))
        for role in self.ports:
            self.start(role)
        for role in self.ports:
            if role != "controller":
                self.wait(role)
        return self

    def properties(self, role: str) -> Path:
        return self.work / f"{role}.properties"

    def start(self, role: str) -> None:
        with (self.work / f"{role}.log").open("wb") as log:
            command = self.java("kafka.Kafka", str(self.properties(role)))
            self.processes[role] = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.work)

    def is_up(self, role: str, seconds: float) -> bool:
        """Wait until the broker has started. Returns False if it exits first, or takes longer."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.ended(role):
            if any("Kafka Server started" in line for line in self.log(role)):
                return True
            time.sleep(0.3)
        return False

    def wait(self, role: str) -> None:
        if not self.is_up(role, 120):
            raise RuntimeError(f"{role} does not start:\n" + "\n".join(self.log(role)[-30:]))

    def stop(self, role: str) -> None:
        self.processes[role].terminate()
        self.processes[role].wait(timeout=120)

    def kill(self, role: str) -> None:
        self.processes[role].kill()
        self.processes[role].wait()

    def create(self, topic: str, partitions: int, *, on: str = "", configs: Mapping[str, str] | None = None) -> None:
        """Create a topic. `on`: the replicas of each partition as for --replica-assignment, or those of one for all."""
        arguments = ["--create", "--topic", topic]
        if on:
            arguments += ["--replica-assignment", on if "," in on else ",".join([on] * partitions)]
        else:
            arguments += ["--partitions", str(partitions), "--replication-factor", "1"]
        for name, value in (configs or {}).items():
            arguments += ["--config", f"{name}={value}"]
        self.java_run("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", self.bootstrap, *arguments)

    def alive(self) -> str:
        role = next(role for role in self.ports if role != "controller" and not self.ended(role))
        return f"127.0.0.1:{self.ports[role]}"

    def delete(self, topic: str) -> None:
        arguments = ["--delete", "--topic", topic]
        self.java_run("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", self.alive(), *arguments)

    def fill(self, acked: Path, *topics: str) -> str:
        """Write records as FillDisk.java describes. Returns full or done."""
        command = [*self.java("-", heap="500m")[:-1], str(SOURCE), self.bootstrap, "fill", str(acked), *topics]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        if done.returncode:
            raise RuntimeError(done.stderr[-3000:])
        return done.stdout.strip().splitlines()[-1]

    def check(self, acked: Path) -> dict[str, dict[str, int]]:
        """Read everything that was acknowledged. Returns, by partition, the counts of FillDisk.java."""
        command = [*self.java("-", heap="500m")[:-1], str(SOURCE), self.bootstrap, "check", str(acked)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        if done.returncode:
            raise RuntimeError(done.stderr[-3000:])
        names = ("acknowledged", "served", "wrong", "missing", "logStart", "logEnd", "keys")
        rows = (line.split() for line in done.stdout.splitlines())
        return {row[0]: dict(zip(names, map(int, row[1:]), strict=False)) for row in rows}
