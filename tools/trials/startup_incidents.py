"""Damage to a log directory, each of which stops the startup of its broker."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from kdump.format.known_releases import known
from kdump.log.log_directory import META
from tests.craft import fix_crc, split, with_metadata_record
from tools.incident.disk import CLUSTER, METADATA, ORDERS, PAYMENTS, SECOND_DIRECTORY, USERS, ZERO, Disk
from tools.metadata_trials import Entry, value_of
from tools.trials.node import Node

GARBAGE = b"\xff\xfe garbage\n"
OTHER_CLUSTER = "q0eGNDWzT3mZ8kZ6sXn1Lw"


def with_property(text: str, name: str, value: str) -> str:
    """Return the text of a properties file with another value of a property."""
    return re.sub(rf"(?m)^{re.escape(name)}=.*$", f"{name}={value}", text)


def set_property(path: Path, name: str, value: str) -> str:
    """Set a property in a file; return what was done."""
    path.write_text(with_property(path.read_text(), name, value))
    return f"{name}={value} is set in {path}"


def on_small_file_system(disk: Disk) -> None:
    """Move the log directory to a file system of its own, of 64 MiB."""
    before = disk.root.rename(disk.root.with_name(f"{disk.root.name}-before"))
    disk.root.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", disk.root], check=True)
    subprocess.run(["cp", "-a", "--sparse=always", f"{before}/.", disk.root], check=True)


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


def epochs_version(disk: Disk) -> None:
    """One bit has flipped in the version of a leader-epoch-checkpoint."""
    disk.flip(disk.file(f"{ORDERS}/leader-epoch-checkpoint"), 0, 2)


def epochs_count(disk: Disk) -> None:
    """The count of a leader-epoch-checkpoint is wrong, after a clean shutdown."""
    path = disk.file(f"{USERS}/leader-epoch-checkpoint")
    version, _, *entries = path.read_text().splitlines()
    path.write_text("\n".join((version, "9", *entries, "")))


def recovery_points_unreadable(disk: Disk) -> None:
    """recovery-point-offset-checkpoint has bytes that are not UTF-8, and the broker was killed."""
    disk.file("recovery-point-offset-checkpoint").write_bytes(GARBAGE)
    disk.file(".kafka_cleanshutdown").unlink()


def marker_damaged(disk: Disk) -> None:
    """Two bits flipped in the first COMMIT marker of a partition, of which there is a backup."""
    shutil.copytree(disk.file(PAYMENTS), disk.root.parent / "backup")
    at = next(position for position, header in disk.batches(PAYMENTS) if header.attributes & 0x20)
    for bit in (1, 2):
        disk.flip(disk.log(PAYMENTS), at + 62, bit)


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


def meta_escape(disk: Disk) -> None:
    """meta.properties ends with an invalid escape."""
    path = disk.file(META)
    path.write_text(path.read_text() + "x=\\u00\n")


def meta_reserved(disk: Disk) -> None:
    """The directory.id in meta.properties is a reserved one."""
    set_property(disk.file(META), "directory.id", "AAAAAAAAAAAAAAAAAAAAAQ")


def partition_twice(disk: Disk) -> Node:
    """A partition was copied to the second log directory of the broker."""
    node = second_directory(disk)
    shutil.copytree(disk.file(ORDERS), node.dirs[1] / ORDERS)
    return node


def segment_too_large(disk: Disk) -> None:
    """A .log was extended to more than 2 GiB, with zeros."""
    os.truncate(disk.file(f"{ORDERS}/{ZERO}.log"), (1 << 31) + 4096)


def segments_overlap(disk: Disk) -> None:
    """A copy of the end of a segment is a second segment."""
    position, header = disk.batches(ORDERS)[3]
    path = disk.file(f"{ORDERS}/{header.baseOffset:020}.log")
    path.write_bytes(disk.file(f"{ORDERS}/{ZERO}.log").read_bytes()[position:])


def metadata_snapshot_short(disk: Disk) -> None:
    """The newest metadata snapshot has 40 bytes."""
    os.truncate(newest_snapshot(disk), 40)


def newest_snapshot(disk: Disk) -> Path:
    return max(disk.file(METADATA).glob("*.checkpoint"))


def snapshots_gone(disk: Disk) -> None:
    """A partition with an open transaction has no .snapshot, after a clean shutdown."""
    for path in disk.file(PAYMENTS).glob("*.snapshot"):
        path.unlink()


def topic_id_wrong(disk: Disk) -> None:
    """The topic ID in a partition.metadata has one wrong character."""
    path = disk.file(f"{ORDERS}/partition.metadata")
    text = path.read_text()
    at = text.index("topic_id: ") + 12
    path.write_text(text[:at] + ("x" if text[at] != "x" else "y") + text[at + 1 :])


def with_config(disk: Disk, topic: str, name: str, value: str) -> None:
    """Set a topic's config in the metadata log of the controller."""
    path = max((disk.root.parent / "disk-0" / METADATA).glob("*.log"))
    values = {"resourceType": 2, "resourceName": topic, "name": name, "value": value}
    path.write_bytes(with_metadata_record(path.read_bytes(), value_of(Entry("ConfigRecord", values), known((4, 3)))))


def config_invalid(disk: Disk) -> None:
    """A topic has segment.bytes=1: a release that checks less accepted it."""
    with_config(disk, "orders-none", "segment.bytes", "1")


def state_is_deleted(disk: Disk) -> None:
    """__consumer_offsets has cleanup.policy=delete, and a retention.ms of 30 days."""
    with_config(disk, "__consumer_offsets", "cleanup.policy", "delete")
    with_config(disk, "__consumer_offsets", "retention.ms", "2592000000")


def disk_full(disk: Disk) -> None:
    """The file system of the log directory is full; a -delete directory has a third of it."""
    on_small_file_system(disk)
    shutil.copytree(disk.file("large-0"), disk.file("large-0.0123456789abcdef0123456789abcdef-delete"))
    used = os.statvfs(disk.root)
    size = (used.f_blocks - used.f_bfree) * used.f_frsize
    subprocess.run(["mount", "-o", f"remount,size={size}", disk.root], check=True)


def second_directory(disk: Disk, meta: str = "") -> Node:
    """Return the broker with a second log directory, which is new except for its meta.properties. `meta`: its contents,
    by default those of the first; the directory.id is another one."""
    second = disk.root.with_name(f"{disk.root.name}-second")
    second.mkdir()
    (second / META).write_text(with_property(meta or disk.file(META).read_text(), "directory.id", SECOND_DIRECTORY))
    (second / ".kafka_cleanshutdown").touch()
    return Node((disk.root, second))


def node_id_of_two(disk: Disk) -> Node:
    """log.dirs has a log directory of another node of the cluster."""
    return second_directory(disk, disk.file(META).read_text().replace("node.id=1", "node.id=2"))


def metadata_log_twice(disk: Disk) -> Node:
    """The second log directory has a copy of the metadata log."""
    node = second_directory(disk)
    shutil.copytree(disk.file(METADATA), node.dirs[1] / METADATA)
    return node


def directory_id_wrong(disk: Disk) -> None:
    """The directory.id in meta.properties has one wrong character."""
    path = disk.file(META)
    path.write_text(path.read_text().replace("directory.id=NC", "directory.id=NB"))


def data_in_transaction(disk: Disk) -> None:
    """A data batch of an open transaction is not transactional: its bit is gone, and the checksum matches."""
    path = disk.log(PAYMENTS)
    batches = split(path.read_bytes())
    seen: set[bytes] = set()
    for number, data in enumerate(batches):
        attributes, producer = int.from_bytes(data[21:23], "big"), data[43:51]
        if attributes & 0x30 == 0x10 and producer in seen:
            batches[number] = fix_crc(data[:21] + (attributes & ~0x10).to_bytes(2, "big") + data[23:])
            break
        seen = seen - {producer} if attributes & 0x20 else seen | {producer}
    path.write_bytes(b"".join(batches))


def read_only(disk: Disk) -> None:
    """The file system of the log directory is mounted read-only."""
    on_small_file_system(disk)
    subprocess.run(["mount", "-o", "remount,ro", disk.root], check=True)


def cluster_id_of_two(disk: Disk) -> Node:
    """log.dirs has a log directory of another cluster."""
    return second_directory(disk, disk.file(META).read_text().replace(CLUSTER, OTHER_CLUSTER))


def directory_is_file(disk: Disk) -> Node:
    """There is a file in place of the second log directory, which had no partitions."""
    second = disk.root.with_name(f"{disk.root.name}-second")
    second.touch()
    return Node((disk.root, second))


def broken_link(disk: Disk) -> None:
    """A partition's directory is a link to another file system, which is not mounted."""
    shutil.move(disk.file(ORDERS), disk.root.parent / "volume")
    disk.file(ORDERS).symlink_to(disk.root.parent / "mounted")


def lost_and_found(disk: Disk) -> None:
    """The log directory is a file system, with its lost+found."""
    disk.file("lost+found").mkdir()


def segment_renamed_and_damaged(disk: Disk) -> None:
    """A segment that starts at 0 is named 5, and a bit flipped in it."""
    disk.flip(disk.log(ORDERS), disk.batches(ORDERS)[2][0] + 90)
    for path in disk.file(ORDERS).glob(f"{ZERO}.*"):
        path.rename(path.with_name(f"{5:020}{path.suffix}"))


def snapshots_gone_and_bit(disk: Disk) -> None:
    """A partition with an open transaction has no .snapshot, and a bit flipped in another log."""
    snapshots_gone(disk)
    disk.flip(disk.log(ORDERS), disk.batches(ORDERS)[2][0] + 90)


def index_full(disk: Disk) -> None:
    """A topic has segment.index.bytes=8, which is room for one entry, and the .index of a segment is gone."""
    with_config(disk, "orders-none", "segment.index.bytes", "8")
    disk.file(f"{ORDERS}/{ZERO}.index").unlink()


def record_unreadable(disk: Disk) -> None:
    """The broker's metadata log ends with a record of an unknown type, which the controller does not have."""
    path = max(disk.file(METADATA).glob("*.log"))
    path.write_bytes(with_metadata_record(path.read_bytes(), b"\x01\x7b\x00\x00"))


def topic_id_unknown(disk: Disk) -> None:
    """The partition.metadata of ledger-0 is missing, and so is the metadata log, which the broker fetches again."""
    disk.file("ledger-0/partition.metadata").unlink()
    shutil.rmtree(disk.file(METADATA))


def metadata_bit(disk: Disk) -> None:
    """A bit flipped in the metadata log of the only controller."""
    controller = Disk(disk.root.parent / "disk-0")
    batches = controller.batches(METADATA)
    controller.flip(controller.log(METADATA), batches[len(batches) // 2][0] + 70)


def directory_copied(disk: Disk) -> Node:
    """log.dirs has a copy of the log directory, too."""
    second = disk.root.with_name(f"{disk.root.name}-second")
    shutil.copytree(disk.root, second)
    return Node((disk.root, second))
