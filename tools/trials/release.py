"""Brokers of older releases, and of both modes: a broker and its controller, or its ZooKeeper, on copied
directories."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from kdump.state.releases import TRIED
from tools.trials.cluster import Cluster

ZOOKEEPER, KRAFT = "zk", "kraft"


class Release(NamedTuple):
    """A release, as in 3.9.1, and its mode."""

    version: str
    mode: str

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(map(int, self.version.split(".")))

    @property
    def keeper(self) -> str:
        """The directory of the node that keeps the cluster's metadata."""
        return "zookeeper" if self.mode == ZOOKEEPER else "controller"


def named(name: str) -> Release:
    """Return the release of a name such as 3.9.1-kraft."""
    version, _, mode = name.partition("-")
    return Release(version, mode)


RELEASES = {name: named(name) for name in TRIED}
"""The releases of which there are brokers' disks (tests/corpus/README.md), by the names of their directories."""

OLDER = """
transactional.id.expiration.ms=2147483647
transaction.abort.timed.out.transaction.cleanup.interval.ms=2147483647
zookeeper.session.timeout.ms=6000
group.initial.rebalance.delay.ms=0
"""
"""Settings in addition to those of Cluster: nothing expires, so that the disk stays as it was until a recipe has
changed it. A release ignores those that it does not have."""
BROKER_OF_ZOOKEEPER = """
broker.id={node}
zookeeper.connect=127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port}
"""
KEEPER = """
dataDir={directory}
clientPort={port}
clientPortAddress=127.0.0.1
admin.enableServer=false
tickTime=1000
"""
NOT_OF_ZOOKEEPER = ("node.id", "process.roles", "controller.", "listeners=", "inter.broker.listener")


class ReleaseCluster(Cluster):
    """A Cluster of any release. With ZooKeeper, the controller's process is that of ZooKeeper, and its directory
    ZooKeeper's dataDir."""

    start_seconds: float = 120

    def __init__(
        self,
        release: Release,
        jars: Path,
        work: Path,
        keeper: Path,
        dirs: Sequence[Path],
        *,
        configs: str = "",
        user: int | None = None,
        combined: bool = False,
    ) -> None:
        super().__init__(
            jars / release.version, work, keeper, dirs, configs=OLDER + configs, user=user, combined=combined
        )
        self.release = release

    def command(self, role: str) -> list[str]:
        if role == "controller" and self.release.mode == ZOOKEEPER:
            main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
            command = self.java(main, str(self.work / f"{role}.properties"), heap="200m")
            return [command[0], "-Dzookeeper.preAllocSize=64", *command[1:]]
        return super().command(role)

    def _properties(self, node: int, role: str) -> str:
        if self.release.mode != ZOOKEEPER:
            return super()._properties(node, role)
        if role == "controller":
            return KEEPER.format(directory=self.dirs[role][0], port=self.ports[role])
        ports = {"controller": self.ports["controller"], "port": self.ports["broker"]}
        lines = super()._properties(node, role).splitlines()
        lines = [line for line in lines if not line.startswith(NOT_OF_ZOOKEEPER)]
        return "\n".join(lines) + BROKER_OF_ZOOKEEPER.format(node=node, **ports)


class LoneController(ReleaseCluster):
    """A controller of any release, without a broker."""

    def __init__(self, release: Release, jars: Path, work: Path, directory: Path) -> None:
        super().__init__(release, jars, work, directory, [])
        del self.ports["broker"]


def fresh_controller(release: Release, jars: Path, directory: Path, root: Path) -> None:
    """Create the directory of a controller without topics, of the cluster that the broker's `root` belongs to."""
    found = re.search(r"^cluster\.id=(\S+)", (root / "meta.properties").read_text(), re.MULTILINE)
    directory.mkdir()
    ReleaseCluster(release, jars, directory.parent, directory, [root]).format_disks(
        found[1] if found else "", "controller"
    )
