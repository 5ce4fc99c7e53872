"""python -m tools.incident NAME [DIR]

Creates the disk of the incident in docs/incidents/NAME.md, in DIR (a new directory; by default build/incidents/NAME):
real bytes of a broker of Kafka 4.3.1, from fixtures/, damaged as the page describes.
"""

from __future__ import annotations

import argparse
import os
import shutil
from base64 import urlsafe_b64decode
from collections.abc import Callable
from pathlib import Path

from crc32c import crc32c

from kdump.format.batch_header import BATCH_HEADER, BatchHeader
from kdump.format.index import INDEX_ENTRY, TIME_INDEX_ENTRY
from kdump.format.varint import read_varint, read_varlong, varint

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "fixtures"
MADE = 1_795_248_012.345
"""Modification time of the disk's files in epoch seconds: 2026-11-21T08:00:12.345Z."""
ZERO = f"{0:020}"
ORDERS = "orders-none-0"
ORDERS_ZSTD = "orders-zstd-0"
PAYMENTS = "payments-0"
DAY = 86_400_000
DIRECTORY = "NC0LDPpABlNgsHloSKd7mg"
SECOND_DIRECTORY = "Zw2mV8eJQXq3kq8m0u1yXg"
CLUSTER = "FN96DRb6S3GeSIQS03itlw"

Damage = Callable[["Disk"], None]
INCIDENTS: dict[str, Damage] = {}
"""Functions that damage a disk, by the name of their page, which contains the function's docstring."""


def incident(name: str) -> Callable[[Damage], Damage]:
    def register(damage: Damage) -> Damage:
        INCIDENTS[name] = damage
        return damage

    return register


class Disk:
    """Copy of a log directory that is to be damaged. Paths are relative to it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def file(self, name: str) -> Path:
        return self.root / name

    def log(self, partition: str) -> Path:
        """Return the path of the newest segment."""
        return max((self.root / partition).glob("*.log"))

    def batches(self, partition: str) -> list[tuple[int, BatchHeader]]:
        """Return the positions and headers of the batches in the newest segment."""
        data, found, position = self.log(partition).read_bytes(), [], 0
        while position < len(data):
            header = BATCH_HEADER.read(data, position)
            found.append((position, header))
            position += header.size
        return found

    def write(self, path: Path, position: int, data: bytes) -> None:
        with path.open("r+b") as file:
            file.seek(position)
            file.write(data)

    def append(self, path: Path, data: bytes) -> None:
        with path.open("ab") as file:
            file.write(data)

    def flip(self, path: Path, position: int, bit: int = 0) -> None:
        data = path.read_bytes()
        self.write(path, position, bytes([data[position] ^ 1 << bit]))

    def batch(self, partition: str, number: int) -> bytes:
        """Return the bytes of a batch."""
        position, header = self.batches(partition)[number]
        return self.log(partition).read_bytes()[position : position + header.size]

    def crashed(self, partition: str, recovery_point: int) -> None:
        """Make the disk look as after a crash, with `partition` last flushed at `recovery_point`."""
        self.file(".kafka_cleanshutdown").unlink()
        (self.root / partition / f"{self.end(partition):020}.snapshot").unlink()
        self.checkpoint("recovery-point-offset-checkpoint", partition, recovery_point)

    def checkpoint(self, name: str, partition: str, offset: int) -> None:
        """Change the offset of a partition in a checkpoint file."""
        topic, _, number = partition.rpartition("-")
        start = f"{topic} {number} "
        lines = self.file(name).read_text().splitlines()
        self.file(name).write_text("".join(f"{start}{offset}\n" if x.startswith(start) else f"{x}\n" for x in lines))

    def truncate(self, partition: str, number: int) -> None:
        """Remove batch `number` of the newest segment, everything after it, and what was written later in other
        files."""
        position, header = self.batches(partition)[number]
        end = self.end(partition)
        os.truncate(self.log(partition), position)
        for layout, suffix in ((INDEX_ENTRY, ".index"), (TIME_INDEX_ENTRY, ".timeindex")):
            path = self.log(partition).with_suffix(suffix)
            entries = layout.struct.iter_unpack(path.read_bytes())
            kept = [entry for entry in entries if header.baseOffset > entry[layout.names.index("relativeOffset")]]
            path.write_bytes(b"".join(layout.struct.pack(*entry) for entry in kept))
        (self.root / partition / f"{end:020}.snapshot").unlink()
        for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
            self.checkpoint(name, partition, header.baseOffset)

    def end(self, partition: str) -> int:
        """Return the log end offset."""
        header = self.batches(partition)[-1][1]
        return header.baseOffset + header.lastOffsetDelta + 1


def changed(batch: bytes, **fields: int) -> bytes:
    """Return the batch with other header fields, and the checksum that matches them."""
    header = BATCH_HEADER.read(batch)._replace(**fields)
    data = BATCH_HEADER.struct.pack(*header) + batch[BATCH_HEADER.size :]
    return data[:17] + crc32c(data[21:]).to_bytes(4, "big") + data[21:]


def with_values(batch: bytes, change: Callable[[int, bytes], bytes]) -> bytes:
    """Return an uncompressed batch in which a function of the offset delta has changed the values of records."""
    out, position = b"", BATCH_HEADER.size
    while position < len(batch):
        length, start = read_varint(batch, position, len(batch), "Record", "length")
        end = start + length
        _, at = read_varlong(batch, start + 1, end, "Record", "timestampDelta")
        delta, at = read_varint(batch, at, end, "Record", "offsetDelta")
        size, at = read_varint(batch, at, end, "Record", "keySize")
        before = at + max(size, 0)
        size, at = read_varint(batch, before, end, "Record", "valueSize")
        body = batch[start:end]
        if size >= 0:
            value = change(delta, batch[at : at + size])
            body = batch[start:before] + varint(len(value)) + value + batch[at + size : end]
        out += varint(len(body)) + body
        position = end
    return changed(batch[: BATCH_HEADER.size] + out, batchLength=BATCH_HEADER.size + len(out) - 12)


@incident("torn-tail")
def torn_tail(disk: Disk) -> None:
    """The power failed: there is no clean-shutdown file, and only half of the last batch of orders-none-0 reached the
    disk, followed by zero-filled pages."""
    disk.crashed(ORDERS, 240)
    start, header = disk.batches(ORDERS)[-1]
    path = disk.log(ORDERS)
    with path.open("r+b") as file:
        file.truncate(start + header.size // 2)
    disk.append(path, bytes(8192 - path.stat().st_size % 4096))


@incident("flipped-bit-before-recovery")
def flipped_bit_before_recovery(disk: Disk) -> None:
    """The broker was killed, and a bit in the third of five batches of orders-none-0 flipped on the disk. The last
    flush, and with it the recovery point, was at offset 60."""
    disk.crashed(ORDERS, 60)
    disk.flip(disk.log(ORDERS), disk.batches(ORDERS)[2][0] + 200)


@incident("flipped-bit-after-shutdown")
def flipped_bit_after_shutdown(disk: Disk) -> None:
    """A bit in the third of five batches of orders-none-0 flipped, and the broker was shut down cleanly."""
    disk.flip(disk.log(ORDERS), disk.batches(ORDERS)[2][0] + 200)


@incident("record-size-0")
def record_size_0(disk: Disk) -> None:
    """The last segment of orders-none-0 ends with 4,096 zero bytes, and there is a clean-shutdown file: an operator
    created it to avoid a long recovery."""
    disk.append(disk.log(ORDERS), bytes(4096))


@incident("corrupt-index")
def corrupt_index(disk: Disk) -> None:
    """In the .index of orders-none-0, the third of four entries points into the middle of a batch. The .timeindex of
    orders-zstd-0 still ends with preallocated zeros."""
    disk.flip(disk.file(f"{ORDERS}/{ZERO}.index"), 8 * 3 - 1, 6)
    disk.append(disk.file(f"{ORDERS_ZSTD}/{ZERO}.timeindex"), bytes(TIME_INDEX_ENTRY.size * 10))


@incident("stuck-consumer")
def stuck_consumer(disk: Disk) -> None:
    """The header of the second batch of orders-zstd-0 states 61 records, but the batch contains 60. The checksum
    matches: it was computed after the damage."""
    position, header = disk.batches(ORDERS_ZSTD)[1]
    batch = changed(disk.batch(ORDERS_ZSTD, 1), recordCount=header.recordCount + 1)
    disk.write(disk.log(ORDERS_ZSTD), position, batch)


@incident("hanging-transaction")
def hanging_transaction(disk: Disk) -> None:
    """The client of tx-a is older than 4.0, and the broker runs with transaction.partition.verification.enable=false.
    The last batch of payments-0 arrived late: its transaction had been aborted, and the ABORT marker was written before
    the batch. No coordinator will end the transaction that the batch began (KIP-890)."""
    found = [header.producerId for _, header in disk.batches(PAYMENTS)]
    disk.truncate(PAYMENTS, found.index(11))
    old_client(disk, 9)
    number, header = max(
        (number, header)
        for number, (_, header) in enumerate(disk.batches(PAYMENTS))
        if header.producerId == 9 and not header.isControlBatch
    )
    late = changed(
        disk.batch(PAYMENTS, number),
        baseOffset=disk.end(PAYMENTS),
        baseSequence=header.baseSequence + header.lastOffsetDelta + 1,
    )
    disk.append(disk.log(PAYMENTS), late)


def old_client(disk: Disk, producer: int) -> None:
    """Make the transactions of a producer those of a client older than 4.0: all have epoch 0, and their sequences
    continue, where transaction version 2 increments the epoch and starts again at sequence 0."""
    next_sequence = 0
    for number, (position, header) in enumerate(disk.batches(PAYMENTS)):
        if header.producerId == producer:
            sequence = {} if header.isControlBatch else {"baseSequence": next_sequence}
            disk.write(disk.log(PAYMENTS), position, changed(disk.batch(PAYMENTS, number), producerEpoch=0, **sequence))
            next_sequence += 0 if header.isControlBatch else header.lastOffsetDelta + 1
    log, start = "__transaction_state-0", b"\0\1" + producer.to_bytes(8, "big")
    for number, (position, _) in enumerate(disk.batches(log)):
        batch = disk.batch(log, number)
        at = batch.find(start, BATCH_HEADER.size)
        if at >= 0:  # after the version and the producer ID comes its epoch; the last field is clientTransactionVersion
            end = at + len(start)
            batch = batch[:end] + bytes(2) + batch[end + 2 :]
            batch = batch[:-2] + bytes(2) if batch.endswith(b"\2\0\2\0") else batch
            disk.write(disk.log(log), position, changed(batch))


@incident("out-of-order-sequence")
def out_of_order_sequence(disk: Disk) -> None:
    """Broker 1 became leader of orders-zstd-0 in an unclean election, without the fourth batch, which had already been
    acknowledged to its producer. The batch that the producer sent next follows the gap."""
    last, header = disk.batch(ORDERS_ZSTD, 4), disk.batches(ORDERS_ZSTD)[3][1]
    disk.truncate(ORDERS_ZSTD, 3)
    disk.append(disk.log(ORDERS_ZSTD), changed(last, baseOffset=header.baseOffset, partitionLeaderEpoch=1))
    disk.file(f"{ORDERS_ZSTD}/leader-epoch-checkpoint").write_text(f"0\n2\n0 0\n1 {header.baseOffset}\n")
    for suffix in ("index", "timeindex"):
        disk.file(f"{ORDERS_ZSTD}/{ZERO}.{suffix}").unlink()
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        disk.checkpoint(name, ORDERS_ZSTD, disk.end(ORDERS_ZSTD))


@incident("future-timestamp")
def future_timestamp(disk: Disk) -> None:
    """Nothing is changed: a client wrote a record with a timestamp in the year 2100 to future-0."""


@incident("compaction-stopped")
def compaction_stopped(disk: Disk) -> None:
    """A bit flipped in the first segment of users-0, which is compacted. According to cleaner-offset-checkpoint, the
    log is cleaned up to offset 60."""
    path = disk.file(f"users-0/{ZERO}.log")
    data = path.read_bytes()
    position = 0
    for _ in range(6):
        position += BATCH_HEADER.read(data, position).size
    disk.flip(path, position + 70)
    disk.checkpoint("cleaner-offset-checkpoint", "users-0", 60)


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


@incident("recreated-topic")
def recreated_topic(disk: Disk) -> None:
    """The topic trimmed was deleted and created again while this broker was down, so that partition.metadata contains
    the ID of the old topic. A -stray directory of a deleted topic is there as well."""
    disk.file("trimmed-0/partition.metadata").write_text("version: 0\ntopic_id: pP1dXJ1nQGmUFh2wsbRm4Q")
    stray = disk.file("audit-0.0f1e2d3c4b5a69788796a5b4c3d2e1f0-stray")
    shutil.copytree(disk.file("ledger-0"), stray)


@incident("metadata-log")
def metadata_log(disk: Disk) -> None:
    """A bit flipped in a batch of __cluster_metadata-0 after the last metadata snapshot, and the end of that snapshot
    is missing."""
    path = disk.log("__cluster_metadata-0")
    start = disk.batches("__cluster_metadata-0")[-2][0]
    disk.flip(path, start + 70)
    snapshot = next(disk.file("__cluster_metadata-0").glob("*.checkpoint"))
    with snapshot.open("r+b") as file:
        file.truncate(snapshot.stat().st_size - 40)


@incident("diverged-replicas")
def diverged_replicas(disk: Disk) -> None:
    """Nothing is changed: disk-1 and disk-2 contain the two replicas of ledger-0, as brokers 1 and 2 left them after an
    unclean leader election."""
    for name in ("disk-1", "disk-2"):
        shutil.rmtree(disk.root.parent / name, ignore_errors=True)
    for number in (1, 2):
        shutil.copytree(FIXTURES / f"diverged-{number}", disk.root.parent / f"disk-{number}")


@incident("recovering-logs")
def recovering_logs(disk: Disk) -> None:
    """The broker was killed, and recovery-point-offset-checkpoint is empty, as after a power loss: the next startup
    recovers all segments of all logs."""
    disk.file(".kafka_cleanshutdown").unlink(missing_ok=True)
    disk.file("recovery-point-offset-checkpoint").write_bytes(b"")


@incident("offsets-reset")
def offsets_reset(disk: Disk) -> None:
    """Group group-classic was at offset 300 of orders-zstd-0, and its offset of payments-0 is gone. In addition, the
    records of orders-none-0 below offset 120 were deleted, while tx-group was at 70."""
    start = disk.file("log-start-offset-checkpoint")
    version, count, *lines = start.read_text().splitlines()
    start.write_text("\n".join([version, str(int(count) + 1), *lines, "orders-none 0 120", ""]))


@incident("inconsistent-cluster-id")
def inconsistent_cluster_id(disk: Disk) -> None:
    """The broker has two log directories. After a reboot, the volume that was mounted as disk-2 belongs to broker 1 of
    another cluster."""
    other = Disk(disk.root.parent / "disk-2")
    shutil.copytree(FIXTURES / "clean-2", other.root)
    shutil.rmtree(other.file("__cluster_metadata-0"))
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


@incident("undecodable-record")
def undecodable_record(disk: Disk) -> None:
    """In the last batch of orders-none-0, whose values are JSON, the producer wrote NaN as a price at offset 271, and
    another producer wrote Avro in the framing of Confluent's clients at offset 285, with schema ID 4711. Group tx-group
    stops at offset 271."""
    avro = (FIXTURES / "framed" / "orders-avro-0" / f"{ZERO}.log").read_bytes()
    framed = b"\0" + (4711).to_bytes(4, "big") + avro[80:102]  # data of its first record, after the schema ID
    position, header = disk.batches(ORDERS)[-1]

    def change(delta: int, value: bytes) -> bytes:
        offset = header.baseOffset + delta
        return framed if offset == 285 else value.replace(b":628.35", b":NaN") if offset == 271 else value

    batch = with_values(disk.batch(ORDERS, -1), change)
    os.truncate(disk.log(ORDERS), position)
    disk.append(disk.log(ORDERS), batch)
    commits = "__consumer_offsets-0"
    for number, (position, _) in enumerate(disk.batches(commits)):
        commit = disk.batch(commits, number)
        if b"orders-none" in commit and b"round 7" in commit:
            moved = commit.replace((70).to_bytes(8, "big"), (271).to_bytes(8, "big"))
            disk.write(disk.log(commits), position, changed(moved))


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


@incident("record-too-large")
def record_too_large(disk: Disk) -> None:
    """In the last batch of orders-none-0, the record at offset 290 has a note of 6,000 bytes. After that,
    max.message.bytes of the topic was lowered to 5,600 bytes, as on the cluster to which it is mirrored."""
    position, header = disk.batches(ORDERS)[-1]

    def lengthen(delta: int, value: bytes) -> bytes:
        is_it = header.baseOffset + delta == 290
        return value.replace("étoile ".encode(), ("étoile " * 750).encode()) if is_it else value

    batch = with_values(disk.batch(ORDERS, -1), lengthen)
    os.truncate(disk.log(ORDERS), position)
    disk.append(disk.log(ORDERS), batch)
    large, lowered = b"\x06large\x12max.message.bytes\x088000000", b"\x0corders-none\x12max.message.bytes\x055600"
    change_metadata(disk, lambda _, value: value.replace(large, lowered))


@incident("deleted-topic")
def deleted_topic(disk: Disk) -> None:
    """The topic users was deleted by mistake, and the broker was stopped before the minute was over after which it
    deletes the files."""
    metadata = "__cluster_metadata-0"
    topic = disk.file("users-0/partition.metadata").read_text().split()[-1]
    removal = b"\1\x09\0" + urlsafe_b64decode(topic + "==") + b"\0"  # RemoveTopicRecord, version 0
    headers = [header for _, header in disk.batches(metadata)]
    single = max(n for n, each in enumerate(headers) if each.recordCount == 1 and not each.isControlBatch)
    batch = with_values(disk.batch(metadata, single), lambda *_: removal)
    time = headers[-1].maxTimestamp + 20_000
    times = {"baseTimestamp": time, "maxTimestamp": time}
    disk.append(disk.log(metadata), changed(batch, baseOffset=disk.end(metadata), **times))
    disk.file("users-0").rename(disk.file("users-0.5d0c1b2a394857667584938271605f4e-delete"))
    for path in disk.root.glob("*-checkpoint"):
        version, _, *lines = path.read_text().splitlines()
        left = [line for line in lines if not line.startswith("users 0 ")]
        path.write_text("\n".join([version, str(len(left)), *left, ""]))


def change_metadata(disk: Disk, change: Callable[[int, bytes], bytes]) -> None:
    """Change values in the metadata snapshot."""
    snapshot = next(disk.file("__cluster_metadata-0").glob("*.checkpoint"))
    data, made = snapshot.read_bytes(), b""
    while data:
        size = BATCH_HEADER.read(data).size
        made, data = made + with_values(data[:size], change), data[size:]
    snapshot.write_bytes(made)


def leave_out(root: Path, topic: str, partition: int) -> None:
    """Remove a partition as if the broker had never had it: from the checkpoints, too."""
    shutil.rmtree(root / f"{topic}-{partition}")
    for path in root.glob("*-checkpoint"):
        version, _, *lines = path.read_text().splitlines()
        left = [line for line in lines if not line.startswith(f"{topic} {partition} ")]
        path.write_text("\n".join([version, str(len(left)), *left, ""]))


def lay_out(name: str, directory: Path) -> None:
    """Create the disk of an incident in `directory`/disk-1. Raises FileExistsError."""
    directory.mkdir(parents=True)
    root = directory / "disk-1"
    shutil.copytree(FIXTURES / "disk-1", root)
    if name != "future-timestamp":
        leave_out(root, "future", 0)
    INCIDENTS[name](Disk(root))
    for path in directory.rglob("*"):
        os.utime(path, (MADE, MADE))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=sorted(INCIDENTS))
    parser.add_argument("directory", type=Path, nargs="?")
    options = parser.parse_args()
    directory = options.directory or ROOT / "build" / "incidents" / options.name
    if directory.exists():
        parser.error(f"{directory} already exists")
    lay_out(options.name, directory)
    print(f"{directory}: {' '.join(str(INCIDENTS[options.name].__doc__).split())}")


if __name__ == "__main__":
    main()
