"""A controller and three brokers on new disks, each of which can be killed, stopped and started."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tools.trials.cluster import COMMON, LISTENERS, START_SECONDS, Cluster, free_port

if TYPE_CHECKING:
    from typing_extensions import Self

BROKERS = ("broker-1", "broker-2", "broker-3")
WARMING_SECONDS = 8
"""Seconds that a broker needs after startup to be in sync again."""


class Replicas(Cluster):
    """Three brokers and their controller. `settings`: lines of the brokers' properties, read at each startup; `common`:
    of all nodes'."""

    def __init__(self, jars: Path, work: Path, settings: str, *, common: str = "") -> None:
        super().__init__(jars, work, work / "disk-0", [])
        self.settings, self.common = settings, common
        self.ports = {role: free_port() for role in ("controller", *BROKERS)}
        self.dirs = {role: [work / f"disk-{node}"] for node, role in enumerate(self.ports)}

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{self.ports[role]}" for role in BROKERS)

    def __enter__(self) -> Self:
        cluster = self._run("kafka.tools.StorageTool", "random-uuid").split()[-1]
        for role in self.ports:
            self.configure(role)
            path = str(self.work / f"{role}.properties")
            self._run("kafka.tools.StorageTool", "format", "--cluster-id", cluster, "--config", path)
        for role in self.ports:
            self.start(role)
        return self

    def _run(self, *arguments: str) -> str:
        return subprocess.run(self.java(*arguments), capture_output=True, text=True, check=True, timeout=120).stdout

    def configure(self, role: str) -> None:
        node, controller = list(self.ports).index(role), self.ports["controller"]
        kind = role.split("-")[0]
        text = COMMON.format(node=node, roles=kind, voter=0, port=controller, dirs=self.dirs[role][0])
        text += LISTENERS[kind].format(port=self.ports[role], controller=controller)
        (self.work / f"{role}.properties").write_text(text + self.common + (self.settings if kind == "broker" else ""))

    def start(self, role: str) -> None:
        """Start the broker or controller with the current settings; its log file is overwritten."""
        self.configure(role)
        with (self.work / f"{role}.log").open("wb") as log:
            command = self.java("kafka.Kafka", str(self.work / f"{role}.properties"))
            self.processes[role] = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.work)

    def wait(self, *roles: str) -> None:
        """Wait until these brokers are up. Raises RuntimeError if one exits or takes too long."""
        until = time.monotonic() + START_SECONDS
        for role in roles:
            while not any("Kafka Server started" in line for line in self.log(role)):
                if self.ended(role) or time.monotonic() > until:
                    raise RuntimeError(f"{role} does not start:\n" + "\n".join(self.log(role)[-30:]))
                time.sleep(0.5)
        time.sleep(WARMING_SECONDS)

    def kill(self, role: str) -> None:
        self.processes[role].kill()
        self.processes[role].wait()

    def stop(self, role: str) -> None:
        """Shut down cleanly: the broker hands over its leaderships first."""
        self.processes[role].terminate()
        self.processes[role].wait(timeout=120)

    def elect(self) -> None:
        """Make the preferred replica of every partition its leader."""
        arguments = ("--bootstrap-server", self.bootstrap, "--election-type", "preferred", "--all-topic-partitions")
        subprocess.run(
            self.java("org.apache.kafka.tools.LeaderElectionCommand", *arguments),
            check=False,
            timeout=120,
            capture_output=True,
        )
