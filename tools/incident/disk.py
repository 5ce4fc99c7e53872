"""The disk that an incident damages: a copy of fixtures/disk-1."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from crc32c import crc32c

import kdump
from kdump.format.batch_header import BATCH_HEADER, BatchHeader
from kdump.format.index import INDEX_ENTRY, TIME_INDEX_ENTRY
from kdump.format.producer_snapshot import PRODUCER_ENTRY
from kdump.log.region import DefaultRecordBatch
from kdump.questions.producers.ledger import as_entry
from kdump.state.producer_state import ProducerState, ProducerStateEntry
from kdump.state.transaction_marker import marker_of
from tools.incident.batches import with_values

ROOT = Path(__file__).parent.parent.parent
FIXTURES = ROOT / "fixtures"
ZERO = f"{0:020}"
ORDERS = "orders-none-0"
ORDERS_ZSTD = "orders-zstd-0"
USERS = "users-0"
PAYMENTS = "payments-0"
METADATA = "__cluster_metadata-0"
OFFSETS = "__consumer_offsets-0"
CLUSTER = "FN96DRb6S3GeSIQS03itlw"
DIRECTORY = "NC0LDPpABlNgsHloSKd7mg"
SECOND_DIRECTORY = "Zw2mV8eJQXq3kq8m0u1yXg"


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

    def starts_at(self, topic: str, partition: int, offset: int) -> None:
        """Set the log start offset of a partition that has none in the checkpoint."""
        path = self.file("log-start-offset-checkpoint")
        version, count, *lines = path.read_text().splitlines()
        path.write_text("\n".join([version, str(int(count) + 1), *lines, f"{topic} {partition} {offset}", ""]))

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
        left = [header for _, header in self.batches(partition)]
        if left:  # the entry that a clean shutdown adds
            newest = max(left, key=lambda header: header.maxTimestamp)
            if not kept or kept[-1][0] < newest.maxTimestamp:
                offset = newest.lastOffset - int(self.log(partition).stem)
                self.append(path, TIME_INDEX_ENTRY.struct.pack(newest.maxTimestamp, offset))
        (self.root / partition / f"{end:020}.snapshot").unlink()
        for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
            self.checkpoint(name, partition, header.baseOffset)

    def take_snapshot(self, partition: str) -> None:
        """Write the producer snapshot of a clean shutdown."""
        state: ProducerState[ProducerStateEntry] = ProducerState()
        for batch in kdump.open(self.log(partition)).regions():
            if not isinstance(batch, DefaultRecordBatch) or batch.header.producerId < 0:
                continue
            marker = marker_of(batch)
            if marker is None:
                state.data(batch)
            else:
                header = batch.header
                epoch = marker.coordinatorEpoch
                state.marker(header.producerId, header.producerEpoch, epoch, header.maxTimestamp)
        entries = [
            PRODUCER_ENTRY.struct.pack(number, *as_entry(producer).values()) for number, producer in state.items()
        ]
        body = len(entries).to_bytes(4, "big") + b"".join(entries)
        data = b"\0\1" + crc32c(body).to_bytes(4, "big") + body
        self.file(f"{partition}/{self.end(partition):020}.snapshot").write_bytes(data)

    def end(self, partition: str) -> int:
        """Return the log end offset."""
        header = self.batches(partition)[-1][1]
        return header.baseOffset + header.lastOffsetDelta + 1


def change_metadata(disk: Disk, change: Callable[[int, bytes], bytes]) -> None:
    """Change values in the metadata snapshot."""
    snapshot = next(disk.file(METADATA).glob("*.checkpoint"))
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
