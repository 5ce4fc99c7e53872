"""Disks that were full, killed, or in which another cluster has a volume."""

from __future__ import annotations

import shutil

from tools.corpus import unpack
from tools.incident.disk import CLUSTER, FIXTURES, METADATA, ORDERS, PAYMENTS, SECOND_DIRECTORY, ZERO, Disk
from tools.incident.registry import incident


@incident("disk-full")
def disk_full(disk: Disk) -> None:
    """The disk was full when orders-none-0 rolled: the new segment and its indexes are empty, its producer snapshot is
    truncated, and recovery-point-offset-checkpoint could not be replaced."""
    disk.crashed(ORDERS, 0)
    end = disk.end(ORDERS)
    for suffix in ("log", "index", "timeindex"):
        disk.file(f"{ORDERS}/{end:020}.{suffix}").write_bytes(b"")
    snapshot = disk.file(f"{PAYMENTS}/{disk.end(PAYMENTS):020}.snapshot").read_bytes()
    disk.file(f"{ORDERS}/{end:020}.snapshot").write_bytes(snapshot[:20])
    disk.file("recovery-point-offset-checkpoint.tmp").write_bytes(b"0\n")


@incident("disk-full-now")
def disk_full_now(disk: Disk) -> None:
    """The broker was killed by a full disk: there is no clean-shutdown file. It had not yet deleted the files of an old
    segment of payments-0 and of the deleted topic audit; a stray directory of another deleted topic, and a heap dump,
    are there as well."""
    disk.crashed(ORDERS, 0)
    for suffix in ("log", "index", "timeindex"):
        shutil.copy(disk.file(f"{ORDERS}/{ZERO}.{suffix}"), disk.file(f"{PAYMENTS}/{ZERO}.{suffix}.deleted"))
    shutil.copytree(disk.file("ledger-0"), disk.file("audit-0.0f1e2d3c4b5a69788796a5b4c3d2e1f0-delete"))
    stray = disk.file("trades-0.1f1e2d3c4b5a69788796a5b4c3d2e1f0-stray")
    shutil.copytree(disk.file(ORDERS), stray)
    (stray / "partition.metadata").write_text("version: 0\ntopic_id: pP1dXJ1nQGmUFh2wsbRm4Q")
    disk.file("java_pid4711.hprof").write_bytes(b"JAVA PROFILE 1.0.2\0".ljust(1 << 20, b"\1"))


@incident("downgrade", "releases/4.3.1-kraft/clean")
def downgrade(disk: Disk) -> None:
    """Nothing is changed: disk-1 is that of a broker that was upgraded to 4.3.1, with metadata.version 4.3-IV0. disk-2
    is that of a broker of another cluster, with Kafka 4.1.0 and metadata.version 4.1-IV1."""
    shutil.copytree(unpack() / "releases" / "4.1.0-kraft" / "clean", disk.root.parent / "disk-2")


@incident("recovering-logs")
def recovering_logs(disk: Disk) -> None:
    """The broker was killed, and recovery-point-offset-checkpoint is empty, as after a power loss: the next startup
    recovers all segments of all logs."""
    disk.file(".kafka_cleanshutdown").unlink(missing_ok=True)
    disk.file("recovery-point-offset-checkpoint").write_bytes(b"")


@incident("inconsistent-cluster-id")
def inconsistent_cluster_id(disk: Disk) -> None:
    """The broker has two log directories. After a reboot, the volume that was mounted as disk-2 belongs to broker 1 of
    another cluster."""
    other = Disk(disk.root.parent / "disk-2")
    shutil.copytree(FIXTURES / "clean-2", other.root)
    shutil.rmtree(other.file(METADATA))
    other.file("bootstrap.checkpoint").unlink()
    other.file("ledger-0").rename(other.file("carts-0"))
    other.file("carts-0/partition.metadata").write_text("version: 0\ntopic_id: pP1dXJ1nQGmUFh2wsbRm4Q")
    for path in other.root.glob("*-checkpoint"):
        path.write_text(path.read_text().replace("ledger 0", "carts 0"))
    path = other.file("meta.properties")
    path.write_text(
        path.read_text()
        .replace(CLUSTER, "q0eGNDWzT3mZ8kZ6sXn1Lw")
        .replace("node.id=2", "node.id=1")
        .replace("oE8qcd_iUG6Hx2IlmSa0HQ", SECOND_DIRECTORY)
    )
