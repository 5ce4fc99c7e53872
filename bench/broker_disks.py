"""Log directories of the size of a production broker, for bench/broker.py: many partitions, or many of one thing that a
command keeps track of."""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from crc32c import crc32c

from bench.kafka import ROOT
from bench.segments import FIRST, MIB, batches, rebased
from kdump.format.batch_header import BATCH_HEADER
from kdump.format.index import INDEX_ENTRY, TIME_INDEX_ENTRY
from kdump.format.message_writer import encode
from kdump.format.schema import load_folder
from tests.craft import batch, record

KDUMP = str(Path(sys.executable).with_name("kdump"))
SEGMENTS = 12
"""Segments of each partition of the disk with many partitions."""
TRANSACTIONAL, CONTROL = 0x10, 0x20
NOW = 1_700_000_000_000
"""Timestamp (epoch ms) of the records."""


def many_partitions(at: Path, count: int) -> None:
    """`count` partitions of 12 segments, hard links to those of one."""
    source = at.parent / "template" / "t-0"
    if not source.exists():
        _template(source)
    names = os.listdir(source)
    end = max(int(name[:20]) for name in names if name.endswith(".snapshot"))
    rows = []
    for number in range(count):
        topic, partition = f"topic-{number // 20:04}", number % 20
        here = at / f"{topic}-{partition}"
        here.mkdir(parents=True)
        for name in names:
            os.link(source / name, here / name)
        _partition_files(here)
        rows.append((topic, partition, end))
    _root(at, rows)


def _template(place: Path) -> None:
    place.mkdir(parents=True)
    found = list(batches((ROOT / "fixtures/clean-1/orders-none-0" / FIRST).read_bytes()))
    offset = 0
    for _ in range(SEGMENTS):
        with open(place / f"{offset:020}.log", "wb") as file:
            for _ in range(3):
                for each in found:
                    moved = rebased(each, offset - int.from_bytes(each[:8], "big"))
                    file.write(moved)
                    offset += int.from_bytes(each[23:27], "big") + 1
        (place / f"{offset:020}.snapshot").write_bytes(_snapshot([]))
    _reindex(place)


def aborted_transactions(at: Path, count: int) -> None:
    """`count` aborted transactions, each of a producer of its own and with one record."""

    def written() -> Iterator[bytes]:
        value = record(value=b"v" * 50)
        for number in range(count):
            yield _of_producer(number, value, 2 * number, TRANSACTIONAL)
            yield _of_producer(number, ABORT, 2 * number + 1, TRANSACTIONAL | CONTROL)

    _one_log(at, "transfers-0", written(), 2 * count)


def _of_producer(number: int, content: bytes, offset: int, attributes: int = 0) -> bytes:
    """Return a batch with one record of a producer with this ID."""
    sequence = -1 if attributes & CONTROL else 0
    return batch(
        content,
        offset=offset,
        count=1,
        attributes=attributes,
        producerId=number,
        producerEpoch=0,
        baseSequence=sequence,
    )


ABORT = record(key=struct.pack(">hh", 0, 0), value=struct.pack(">hi", 0, 0))


def overlapping_transactions(at: Path, count: int) -> None:
    """`count` transactions, a thousand of which are open at a time."""

    def written() -> Iterator[bytes]:
        value, offset = record(value=b"v" * 50), 0
        for start in range(0, count, 1000):
            block = range(start, min(count, start + 1000))
            for is_marker in (False, True):
                for number in block:
                    attributes = TRANSACTIONAL | (CONTROL if is_marker else 0)
                    yield _of_producer(number, ABORT if is_marker else value, offset, attributes)
                    offset += 1

    _one_log(at, "transfers-0", written(), 2 * count)


def producers(at: Path, count: int) -> None:
    """`count` idempotent producers with one record each, and a snapshot of all of them."""
    value = record(value=b"v" * 20)
    log = (_of_producer(number, value, number) for number in range(count))
    _one_log(at, "clicks-0", log, count)
    entries = [struct.pack(">qhiqiqiq", n, 0, 0, n, 0, NOW, -1, -1) for n in range(count)]
    (at / "clicks-0" / f"{count:020}.snapshot").write_bytes(_snapshot(entries))


def group_offsets(at: Path, count: int) -> None:
    """`count` offsets of groups of 50 partitions, each committed ten times."""

    def written() -> Iterator[bytes]:
        offset = 0
        for turn in range(10):
            value = struct.pack(">hqihq", 3, 1000 + turn, 0, 0, NOW + turn)
            for number in range(0, count, 50):
                group = b"group-%06d" % (number // 50)
                records = []
                for partition in range(50):
                    key = struct.pack(">hh", 1, len(group)) + group + struct.pack(">h6si", 6, b"orders", partition)
                    records.append(record(partition, key, value))
                yield batch(records, offset=offset)
                offset += 50

    _one_log(at, "__consumer_offsets-0", written(), 10 * count)


def transaction_states(at: Path, count: int) -> None:
    """`count` records of a transaction coordinator, each transaction with four states."""
    states = (1, 2, 4, 1)

    def pair(number: int) -> tuple[bytes, bytes]:
        transaction, state = number // 4, states[number % 4]
        partitions = [{"topic": topic, "partitionIds": [1, 2, number % 12]} for topic in ("orders", "payments")]
        value = {
            "producerId": transaction % 20_000,
            "producerEpoch": number // 80_000,
            "transactionTimeoutMs": 60_000,
            "transactionStatus": state,
            "transactionPartitions": [] if state == 4 else partitions,
            "transactionLastUpdateTimestampMs": NOW + number,
            "transactionStartTimestampMs": NOW + number - 5,
        }
        key = {"transactionalId": f"tx-{transaction % 20_000:06}"}
        return _coordinator("transaction-coordinator", "TransactionLog", 1, key, value)

    _one_log(at, "__transaction_state-0", _in_batches(pair, count), count)


def share_states(at: Path, count: int) -> None:
    """`count` records of a share coordinator, of which every tenth is a snapshot."""

    def pair(number: int) -> tuple[bytes, bytes]:
        first = 3 * number
        acquired = {"firstOffset": first, "lastOffset": first + 4, "deliveryState": 2, "deliveryCount": 1}
        value = {
            "snapshotEpoch": number // 10,
            "leaderEpoch": 3,
            "startOffset": first,
            "stateBatches": [acquired] * (number % 3),
        }
        key = {"groupId": f"share-{number % 20}", "topicId": "bjhwFaKtQoOvL2nezcRkUw", "partition": number % 40}
        return _coordinator("share-coordinator", "ShareUpdate" if number % 10 else "ShareSnapshot", 0, key, value)

    _one_log(at, "__share_group_state-0", _in_batches(pair, count), count)


def _in_batches(pair: Callable[[int], tuple[bytes, bytes]], count: int) -> Iterator[bytes]:
    """Yield the records with these keys and values in batches of fifty."""
    for base in range(0, count, 50):
        yield batch([record(n, *pair(base + n)) for n in range(min(50, count - base))], offset=base)


def _coordinator(
    folder: str, name: str, version: int, key: dict[str, Any], value: dict[str, Any]
) -> tuple[bytes, bytes]:
    """Return the key and the value of a coordinator's record; fields that are not given have their defaults."""
    schemas = load_folder(folder)
    of_key, of_value = schemas[f"{name}Key"], schemas[f"{name}Value"]
    fields = {**of_value.struct(version).default(), **value}
    return (
        struct.pack(">h", of_key.apiKey) + encode(of_key, of_key.valid.lowest, key),
        struct.pack(">h", version) + encode(of_value, version, fields),
    )


def metadata(at: Path, count: int) -> None:
    """The metadata log of a cluster with `count` partitions in topics of four, each of which has moved once."""

    def written() -> Iterator[bytes]:
        draw, offset = random.Random(9), 0
        ids: dict[int, bytes] = {}
        for changed in (False, True):
            for number in range(count // 4):
                topic = ids.setdefault(number, draw.randbytes(16))
                name = b"topic-%06d" % number
                values = [] if changed else [b"\1\2\0" + bytes([len(name) + 1]) + name + topic + b"\0"]
                values += [(_change if changed else _partition)(topic, partition) for partition in range(4)]
                yield batch([record(n, None, value) for n, value in enumerate(values)], offset=offset)
                offset += len(values)

    _one_log(at, "__cluster_metadata-0", written(), count * 9 // 4)


def _partition(topic: bytes, number: int) -> bytes:
    """Return a PartitionRecord of version 0: replicas 1 and 2, both in sync, leader 1."""
    replicas = b"\3" + struct.pack(">ii", 1, 2)
    leader = struct.pack(">iii", 1, 0, 0)
    return b"\1\3\0" + struct.pack(">i", number) + topic + replicas + replicas + b"\1\1" + leader + b"\0"


def _change(topic: bytes, number: int) -> bytes:
    """Return a PartitionChangeRecord of version 0 with another leader."""
    return b"\1\5\0" + struct.pack(">i", number) + topic + b"\1\1\4" + struct.pack(">i", 2)


def keys(at: Path, count: int) -> None:
    """`count` records with a key each, in batches of a thousand and four segments."""

    def written(start: int, stop: int) -> Iterator[bytes]:
        for base in range(start, stop, 1000):
            block = [record(n, b"key-%08d" % (base + n), b"x" * 40) for n in range(1000)]
            yield batch(block, offset=base)

    quarter = count // 4
    place = at / "accounts-0"
    place.mkdir(parents=True)
    for number in range(4):
        _write(place / f"{number * quarter:020}.log", written(number * quarter, (number + 1) * quarter))
    _finish(at, place, count)


def index_entries(at: Path, count: int) -> None:
    """A segment whose indexes have `count` entries each: one for every batch but the first, as a broker with
    index.interval.bytes=0 and a large segment.index.bytes writes them."""
    place = at / "clicks-0"
    first = batch(record())
    start = BATCH_HEADER.positions["attributes"]
    moments, rest = struct.Struct(">hiqq"), first[start + 22 :]

    def written() -> Iterator[bytes]:
        for number in range(count + 1):
            body = moments.pack(0, 0, NOW + number, NOW + number) + rest
            yield number.to_bytes(8, "big") + first[8 : start - 4] + crc32c(body).to_bytes(4, "big") + body

    _one_log(at, place.name, written(), count + 1)
    path = place / FIRST
    with open(path.with_suffix(".index"), "wb", MIB) as file:
        file.writelines(INDEX_ENTRY.struct.pack(number, number * len(first)) for number in range(1, count + 1))
    with open(path.with_suffix(".timeindex"), "wb", MIB) as file:
        file.writelines(TIME_INDEX_ENTRY.struct.pack(NOW + number, number) for number in range(1, count + 1))


def _one_log(at: Path, name: str, log: Iterable[bytes], end: int) -> None:
    place = at / name
    place.mkdir(parents=True)
    _write(place / FIRST, log)
    _finish(at, place, end)


def _write(path: Path, log: Iterable[bytes]) -> None:
    with open(path, "wb", MIB) as file:
        file.writelines(log)


def _finish(at: Path, place: Path, end: int) -> None:
    _reindex(place)
    _partition_files(place)
    topic, _, number = place.name.rpartition("-")
    _root(at, [(topic, int(number), end)])


def _reindex(place: Path) -> None:
    """Write the indexes of every segment, as a broker has them."""
    with tempfile.TemporaryDirectory(dir=place.parent) as made:
        subprocess.run([KDUMP, "reindex", str(place), "--out", f"{made}/out", "--quiet"], check=False)
        for path in Path(made).rglob("*index"):
            shutil.move(path, place / path.name)


def _partition_files(place: Path) -> None:
    (place / "partition.metadata").write_text("version: 0\ntopic_id: bjhwFaKtQoOvL2nezcRkUw\n")
    (place / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")


def _root(at: Path, rows: list[tuple[str, int, int]]) -> None:
    """Write the files at the root of a log directory that was shut down cleanly."""
    text = f"0\n{len(rows)}\n" + "".join(f"{topic} {number} {end}\n" for topic, number, end in rows)
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (at / name).write_text(text)
    (at / "log-start-offset-checkpoint").write_text("0\n0\n")
    (at / "meta.properties").write_text("version=1\ncluster.id=k2xrTMYLRJGYFaSRS_Wf6w\nnode.id=1\n")
    (at / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":19}')


def _snapshot(entries: list[bytes]) -> bytes:
    body = struct.pack(">i", len(entries)) + b"".join(entries)
    return struct.pack(">hI", 1, crc32c(body)) + body


DISKS: dict[str, tuple[Callable[[Path, int], None], int]] = {
    "partitions": (many_partitions, 4_000),
    "aborted transactions": (aborted_transactions, 200_000),
    "overlapping transactions": (overlapping_transactions, 200_000),
    "producers": (producers, 250_000),
    "group offsets": (group_offsets, 50_000),
    "transaction states": (transaction_states, 200_000),
    "share states": (share_states, 200_000),
    "metadata": (metadata, 200_000),
    "keys": (keys, 4_000_000),
    "index entries": (index_entries, 10_000_000),
}
"""By name: what creates a disk, and how many of them the whole disk has."""


def make(directory: Path, name: str, count: int) -> Path:
    """Return the log directory with that many; creates it if it does not exist yet."""
    at = directory / f"{name.replace(' ', '-')}-{count}"
    if not at.exists():
        part = at.with_name(at.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        DISKS[name][0](part, count)
        part.rename(at)
    return at
