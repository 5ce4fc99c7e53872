"""Flipped bits, incomplete writes and zeros."""

from __future__ import annotations

from kdump.format.batch_header import BATCH_HEADER
from kdump.format.index import TIME_INDEX_ENTRY
from tools.incident.batches import changed
from tools.incident.disk import METADATA, ORDERS, ORDERS_ZSTD, ZERO, Disk
from tools.incident.registry import incident


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


@incident("metadata-log")
def metadata_log(disk: Disk) -> None:
    """A bit flipped in a batch of __cluster_metadata-0 after the last metadata snapshot, and the end of that snapshot
    is missing."""
    path = disk.log(METADATA)
    start = disk.batches(METADATA)[-2][0]
    disk.flip(path, start + 70)
    snapshot = next(disk.file(METADATA).glob("*.checkpoint"))
    with snapshot.open("r+b") as file:
        file.truncate(snapshot.stat().st_size - 40)
