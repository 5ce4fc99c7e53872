"""Damage to a log directory, each of which stops the startup of its broker."""

from __future__ import annotations

import shutil

from kdump.log.log_directory import META
from tools.incident.disk import METADATA, ORDERS, PAYMENTS, ZERO, Disk

GARBAGE = b"\xff\xfe garbage\n"


def file_name(disk: Disk) -> None:
    """A file abc.log, which no broker wrote, is in a partition's directory."""
    disk.file(f"{ORDERS}/abc.log").touch()


def directory_name(disk: Disk) -> None:
    """A directory whose name is not that of a partition is in the log directory."""
    disk.file("backup").mkdir()


def clean_mark_is_directory(disk: Disk) -> None:
    """There is a directory with a file in place of .kafka_cleanshutdown."""
    disk.file(".kafka_cleanshutdown").unlink()
    disk.file(".kafka_cleanshutdown").mkdir()
    disk.file(".kafka_cleanshutdown/file").touch()


def checkpoint_is_directory(disk: Disk) -> None:
    """There is a directory in place of recovery-point-offset-checkpoint."""
    disk.file("recovery-point-offset-checkpoint").unlink()
    disk.file("recovery-point-offset-checkpoint").mkdir()


def checkpoint_unreadable(disk: Disk) -> None:
    """replication-offset-checkpoint has bytes that are not UTF-8."""
    disk.file("replication-offset-checkpoint").write_bytes(GARBAGE)


def start_checkpoint_unreadable(disk: Disk) -> None:
    """log-start-offset-checkpoint has a version that does not exist."""
    disk.file("log-start-offset-checkpoint").write_text("7\n0\n")


def epochs_unreadable(disk: Disk) -> None:
    """The leader-epoch-checkpoint of a partition has bytes that are not UTF-8."""
    disk.file(f"{ORDERS}/leader-epoch-checkpoint").write_bytes(GARBAGE)


def topic_id_unreadable(disk: Disk) -> None:
    """The partition.metadata of a partition has bytes that are not UTF-8."""
    disk.file(f"{ORDERS}/partition.metadata").write_bytes(GARBAGE)


def topic_id_missing(disk: Disk) -> None:
    """The partition.metadata of a partition is missing."""
    disk.file(f"{ORDERS}/partition.metadata").unlink()


def txn_index_invalid(disk: Disk) -> None:
    """An entry of a .txnindex has version 256, and the broker was killed."""
    disk.crashed(PAYMENTS, 0)
    path = disk.file(f"{PAYMENTS}/{ZERO}.txnindex")
    path.write_bytes((256).to_bytes(2, "big") + path.read_bytes()[2:])


def meta_missing(disk: Disk) -> None:
    """meta.properties is missing."""
    disk.file(META).unlink()


def meta_unreadable(disk: Disk) -> None:
    """meta.properties is empty, as after a crash during its first write."""
    disk.file(META).write_bytes(b"")


def meta_without_cluster(disk: Disk) -> None:
    """meta.properties has no cluster.id."""
    path = disk.file(META)
    path.write_text("".join(f"{line}\n" for line in path.read_text().splitlines() if "cluster.id" not in line))


def quorum_state_unreadable(disk: Disk) -> None:
    """quorum-state is empty."""
    disk.file(f"{METADATA}/quorum-state").write_bytes(b"")


def bootstrap_unreadable(disk: Disk) -> None:
    """bootstrap.checkpoint has a flipped bit."""
    disk.flip(disk.file("bootstrap.checkpoint"), 70)


def metadata_log_is_file(disk: Disk) -> None:
    """There is a file in place of __cluster_metadata-0."""
    shutil.move(disk.file(METADATA), disk.root.parent / "metadata-elsewhere")
    disk.file(METADATA).touch()


def partition_is_file(disk: Disk) -> None:
    """There is a file in place of a partition's directory, which is in a backup."""
    shutil.move(disk.file(ORDERS), disk.root.parent / "backup")
    disk.file(ORDERS).touch()


def index_not_sorted(disk: Disk) -> None:
    """Two entries of an .index have changed places."""
    path = disk.file(f"{ORDERS}/{ZERO}.index")
    data = path.read_bytes()
    path.write_bytes(data[8:16] + data[:8] + data[16:])


def time_index_not_sorted(disk: Disk) -> None:
    """Two entries of a .timeindex have changed places."""
    path = disk.file(f"{ORDERS}/{ZERO}.timeindex")
    data = path.read_bytes()
    path.write_bytes(data[12:24] + data[:12] + data[24:])


def time_index_mismatch(disk: Disk) -> None:
    """The timestamp of the first entry of a .timeindex is that of no record."""
    path = disk.file(f"{ORDERS}/{ZERO}.timeindex")
    data = path.read_bytes()
    path.write_bytes((int.from_bytes(data[:8], "big") - 5).to_bytes(8, "big") + data[8:])


def node_id_wrong(disk: Disk) -> None:
    """meta.properties has another node.id than that of the broker."""
    path = disk.file(META)
    path.write_text(path.read_text().replace("node.id=1", "node.id=7"))


def index_beyond_log(disk: Disk) -> None:
    """The last entry of an .index points past the end of the .log."""
    path = disk.file(f"{ORDERS}/{ZERO}.index")
    path.write_bytes(path.read_bytes()[:-4] + (1_000_000).to_bytes(4, "big"))
