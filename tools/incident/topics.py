"""Topics and replicas that were deleted, created again, moved, or that diverge; keys that were deleted."""

from __future__ import annotations

import shutil
from base64 import urlsafe_b64decode
from functools import partial

from kdump.format.batch_header import BATCH_HEADER
from kdump.format.index import TIME_INDEX_ENTRY
from tools.corpus import unpack
from tools.incident.batches import changed, record, with_values
from tools.incident.disk import (
    DIRECTORY,
    FIXTURES,
    METADATA,
    ORDERS,
    ORDERS_ZSTD,
    SECOND_DIRECTORY,
    USERS,
    Disk,
    change_metadata,
)
from tools.incident.registry import incident


def appended(disk: Disk, batch: bytes, later: int) -> None:
    """Append a batch to the metadata log, `later` (ms) than its last one."""
    time = disk.batches(METADATA)[-1][1].maxTimestamp + later
    times = {"baseTimestamp": time, "maxTimestamp": time}
    disk.append(disk.log(METADATA), changed(batch, baseOffset=disk.end(METADATA), **times))


def removed(disk: Disk, topic: str) -> bytes:
    """Delete a topic in the metadata log; return its ID."""
    topic_id = urlsafe_b64decode(disk.file(f"{topic}-0/partition.metadata").read_text().split()[-1] + "==")
    removal = b"\1\x09\0" + topic_id + b"\0"  # RemoveTopicRecord, version 0
    headers = [header for _, header in disk.batches(METADATA)]
    single = max(n for n, each in enumerate(headers) if each.recordCount == 1 and not each.isControlBatch)
    appended(disk, with_values(disk.batch(METADATA, single), lambda *_: removal), 20_000)
    return topic_id


@incident("recreated-topic")
def recreated_topic(disk: Disk) -> None:
    """The topic trimmed was deleted and created again while this broker was down, so that partition.metadata contains
    the ID of the old topic. A -stray directory of a deleted topic is there as well."""
    old, created = removed(disk, "trimmed"), urlsafe_b64decode("pP1dXJ1nQGmUFh2wsbRm4Q==")
    numbers = range(len(disk.batches(METADATA)))
    creation = next(batch for batch in map(partial(disk.batch, METADATA), numbers) if b"\x08trimmed" + old in batch)
    appended(disk, with_values(creation, lambda _, value: value.replace(old, created)), 1_000)
    stray = disk.file("audit-0.0f1e2d3c4b5a69788796a5b4c3d2e1f0-stray")
    shutil.copytree(disk.file("ledger-0"), stray)


@incident("deleted-topic")
def deleted_topic(disk: Disk) -> None:
    """The topic users was deleted by mistake, and the broker was stopped before the minute was over after which it
    deletes the files."""
    removed(disk, "users")
    disk.file("users-0").rename(disk.file("users-0.5d0c1b2a394857667584938271605f4e-delete"))
    for path in disk.root.glob("*-checkpoint"):
        version, _, *lines = path.read_text().splitlines()
        left = [line for line in lines if not line.startswith("users 0 ")]
        path.write_text("\n".join([version, str(len(left)), *left, ""]))


@incident("key-is-gone")
def key_is_gone(disk: Disk) -> None:
    """The user u7 is to be forgotten: users-0 has a tombstone in the active segment, at 255. The broker stopped before
    it deleted a segment. A bit flipped in orders-zstd-0, and someone left a heap dump in the log directory."""
    end, header = disk.end(USERS), disk.batches(USERS)[-1][1]
    time = header.maxTimestamp + 1_000
    tombstone = disk.batch(USERS, -1)[: BATCH_HEADER.size] + record(b"u7", None)
    size = len(tombstone) - 12
    times = {"baseTimestamp": time, "maxTimestamp": time}
    producer = {"producerId": -1, "producerEpoch": -1, "baseSequence": -1}
    disk.append(disk.log(USERS), changed(tombstone, baseOffset=end, batchLength=size, **times, **producer))
    disk.append(disk.log(USERS).with_suffix(".timeindex"), TIME_INDEX_ENTRY.struct.pack(time, end - header.baseOffset))
    disk.file(f"{USERS}/{end:020}.snapshot").rename(disk.file(f"{USERS}/{end + 1:020}.snapshot"))
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        disk.checkpoint(name, USERS, end + 1)
    for path in (FIXTURES / "cleaned-1" / USERS).iterdir():
        shutil.copy(path, disk.file(USERS))
    disk.flip(disk.log(ORDERS_ZSTD), disk.batches(ORDERS_ZSTD)[2][0] + 300)
    disk.file("java_pid4711.hprof").write_bytes(b"JAVA PROFILE 1.0.2\0".ljust(1 << 16, b"\1"))


@incident("diverged-replicas")
def diverged_replicas(disk: Disk) -> None:
    """Nothing is changed: disk-1 and disk-2 contain the two replicas of ledger-0, as brokers 1 and 2 left them after an
    unclean leader election."""
    for name in ("disk-1", "disk-2"):
        shutil.rmtree(disk.root.parent / name, ignore_errors=True)
    for number in (1, 2):
        shutil.copytree(FIXTURES / f"diverged-{number}", disk.root.parent / f"disk-{number}")


@incident("future-directory")
def future_directory(disk: Disk) -> None:
    """The broker has two log directories, and orders-none-0 was to be moved from disk-1 to disk-2. The move has stopped
    for days after three of five batches: in the fourth batch on disk-1, a bit flipped."""
    other = disk.root.parent / "disk-2"
    other.mkdir()
    meta = disk.file("meta.properties").read_text().replace(DIRECTORY, SECOND_DIRECTORY)
    (other / "meta.properties").write_text(meta)
    shutil.copy(disk.file(".kafka_cleanshutdown"), other)
    for path in disk.root.glob("*-checkpoint"):
        (other / path.name).write_text("0\n0\n")
    shutil.copytree(disk.file(ORDERS), other / ORDERS)
    future = Disk(other)
    future.truncate(ORDERS, 3)
    (other / ORDERS).rename(other / f"{ORDERS}.9d1c2b3a4f5e60718293a4b5c6d7e8f9-future")
    disk.flip(disk.log(ORDERS), disk.batches(ORDERS)[3][0] + 200)
    one, two = (urlsafe_b64decode(each + "==") for each in (DIRECTORY, SECOND_DIRECTORY))

    def change(_: int, value: bytes) -> bytes:  # in a RegisterBrokerRecord, logDirs: bytes, elements + 1, elements
        return value.replace(b"\x11\2" + one, b"\x21\3" + one + two) if value[1] == 0 else value

    change_metadata(disk, change)


@incident("missing-remote-segment", "disks/kafka-4.3-tiered/disk")
def missing_remote_segment(disk: Disk) -> None:
    """The topic tiered is in remote storage, of which the directory tier is a copy. A lifecycle rule of the bucket has
    deleted the objects of one of its two segments, that with offsets 162793 to 215208."""
    shutil.copytree(unpack() / "disks" / "kafka-4.3-tiered" / "tier", disk.root.parent / "tier")
    for path in disk.root.parent.glob(f"tier/*/*/{162793:020}-*"):
        path.unlink()
    for path in disk.root.glob("tiered-0/*.deleted"):
        path.unlink()


@incident("which-connector", "connect-1")
def which_connector(disk: Disk) -> None:
    """A worker of Connect was lost with its host. The topic lines has records that come from no file that anyone knows,
    and the connector that reads orders had stopped before."""
