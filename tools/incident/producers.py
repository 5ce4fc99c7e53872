"""What producers wrote, or wrote late: transactions, sequences, timestamps, values."""

from __future__ import annotations

import os

from kdump.format.batch_header import BATCH_HEADER
from tools.incident.batches import changed, with_values
from tools.incident.disk import FIXTURES, ORDERS, ORDERS_ZSTD, PAYMENTS, ZERO, Disk, change_metadata
from tools.incident.registry import incident


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
    disk.take_snapshot(PAYMENTS)


def marker_skipped(disk: Disk) -> None:
    """The coordinator completed the last transaction of tx-b, COMMIT, but payments-0 has no marker of it: in a
    controlled shutdown, the coordinator took a partition without a leader for a deleted one."""
    disk.truncate(PAYMENTS, max(number for number, (_, it) in enumerate(disk.batches(PAYMENTS)) if it.producerId == 10))
    disk.take_snapshot(PAYMENTS)


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


@incident("unknown-producer-id")
def unknown_producer_id(disk: Disk) -> None:
    """All records of orders-zstd-0 were deleted with kafka-delete-records.sh, up to its end, after which the broker was
    shut down cleanly. The producers of payments-0 have written nothing since."""
    disk.starts_at("orders-zstd", 0, 300)


@incident("future-timestamp")
def future_timestamp(disk: Disk) -> None:
    """Nothing is changed: a client wrote a record with a timestamp in the year 2100 to future-0."""


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
