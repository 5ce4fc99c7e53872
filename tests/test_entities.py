"""Memory per entity that must be remembered: producers, aborted transactions, keys. Measured between two numbers of
them, without what is needed for the first."""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kdump import transactions
from kdump.kafka.transaction_index import AbortMarker, AbortMarkers
from kdump.log.packed_entries import PackedEntries
from kdump.questions.producers.ledger import ProducerHistory
from kdump.questions.transactions.answer import PartitionTransactions
from kdump.state.committed_offsets import CommittedOffsets, OffsetAndMetadata
from kdump.state.id_numbers import IdNumbers
from kdump.state.metadata_image import PartitionRegistration
from kdump.state.producer_state import ProducerState, ProducerStateEntry
from tests.craft import batch, record
from tests.disks import marker

FEW, MANY = 750, 1500


def kept(make: Callable[[int], Any], count: int) -> int:
    """Return the bytes that what `make` returns for so many entities takes."""
    gc.freeze()  # pytest's own objects, a million of which would be visited below
    tracemalloc.start()
    try:
        held = make(count)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] if held is not None else 0
    finally:
        tracemalloc.stop()


def bytes_each(make: Callable[[int], Any]) -> float:
    return (kept(make, MANY) - kept(make, FEW)) / (MANY - FEW)


def producers(kind: type[ProducerStateEntry]) -> Callable[[int], Any]:
    def make(count: int) -> ProducerState[Any]:
        state: ProducerState[Any] = ProducerState(kind)
        for number in range(count):
            state.wrote(number * 1000, 1, 500 + number, number << 20, 3, 1_700_000_000_000 + number, None, 0)
        return state

    return make


def long_lives(count: int) -> Any:
    """Make transactional producers that have all written for days, in turn, to a busy partition: no value of one is
    near that of the next."""
    chosen, state = random.Random(7), ProducerState(ProducerHistory)
    now, end = 1_700_000_000_000, 40_000_000_000
    for number in range(count):
        batches = chosen.randrange(1, 1_000_000)
        first, last = sorted(chosen.randrange(end) for _ in range(2))
        epoch, timestamp = chosen.randrange(30_000), now - chosen.randrange(604_800_000)
        state.put(
            chosen.randrange(1 << 31),
            ProducerHistory(
                epoch=epoch,
                highest_epoch=epoch,
                batch_epoch=epoch,
                last_sequence=chosen.randrange(1 << 31),
                last_offset=last,
                offset_delta=chosen.randrange(5000),
                batch_timestamp=timestamp,
                timestamp=timestamp + chosen.randrange(60_000),
                coordinator_epoch=chosen.randrange(200),
                txn_first_offset=last - chosen.randrange(10_000) if number % 9 == 0 else -1,
                damages=chosen.randrange(3),
                first_epoch=epoch - chosen.randrange(epoch + 1),
                batches=batches,
                records=batches * chosen.randrange(1, 500),
                bytes=batches * chosen.randrange(1, 100_000),
                first_offset=first,
                last_data=last,
                first_timestamp=timestamp - chosen.randrange(604_800_000),
                commits=chosen.randrange(batches),
                aborts=chosen.randrange(1000),
                gaps=chosen.randrange(100),
                duplicates=0,
                fenced=0,
                epochStarts=chosen.randrange(10),
                last_seen=last + chosen.randrange(2000),
                seen_epoch=epoch,
                file=chosen.randrange(60),
                position=chosen.randrange(1 << 30),
            ),
        )
    return state


def epochs(count: int) -> IdNumbers:
    made = IdNumbers("h")
    for number in range(count):
        made.put(number * 1000, number % 300)
    return made


def aborts(count: int) -> AbortMarkers:
    made = AbortMarkers()
    for number in range(count):
        made.add(AbortMarker(number << 20, number * 1000, number << 19, number << 20, number << 10, 1000, True))
    return made


def keys(count: int) -> IdNumbers:
    made = IdNumbers("q")
    for number in range(count):
        made.put(hash(str(number)), number << 20)
    return made


def commits(count: int) -> CommittedOffsets:
    """Make ten offsets a group."""
    made = CommittedOffsets()
    for number in range(count):
        commit = OffsetAndMetadata(number << 20, number, "", 1_700_000_000_000 + number, None, None, number << 10)
        made.put(f"group-{number // 10}", (f"topic-{number % 10}", number % 3), commit)
    return made


def partitions(count: int) -> Any:
    """Make ten partitions a topic, each of three replicas."""
    made: list[dict[int, PartitionRegistration]] = []
    names = [f"directory-{each}" for each in range(100)]
    for number in range(count):
        if number % 10 == 0:
            made.append({})
        replicas = tuple((number + i) % 100 for i in range(3))
        directories = tuple(names[each] for each in replicas)
        made[-1][number % 10] = PartitionRegistration(replicas, directories, replicas[0], 5, replicas, partitionEpoch=9)
    return made


def entries(count: int) -> PackedEntries:
    made = PackedEntries()
    for number in range(count):
        first = number << 20
        made.add((0, number * 1000, first, first + 900, first + 901))
    return made


@pytest.mark.parametrize(
    ("make", "most"),
    [
        (producers(ProducerStateEntry), 60),
        (producers(ProducerHistory), 60),
        (long_lives, 100),
        (epochs, 32),
        (aborts, 30),
        (entries, 16),
        (keys, 40),
        (commits, 120),
        (partitions, 400),
    ],
    ids=["producers", "histories", "long lives", "epochs", "aborts", "entries", "keys", "commits", "partitions"],
)
def test_bytes_each(make: Callable[[int], Any], most: float) -> None:
    assert 0 < bytes_each(make) <= most


def aborted(folder: Path, count: int) -> Path:
    """Write a partition with so many aborted transactions, each of a producer of its own, and their .txnindex."""
    folder.mkdir()
    log, index = bytearray(), bytearray()
    for number in range(count):
        first = 2 * number
        log += batch(
            [record(0, b"k", b"v")], offset=first, attributes=0x10, producerId=number, producerEpoch=0, baseSequence=0
        )
        log += marker(first + 1, number, commit=False)
        index += b"\0\0" + b"".join(each.to_bytes(8, "big") for each in (number, first, first + 1, first + 2))
    (folder / f"{0:020d}.log").write_bytes(log)
    (folder / f"{0:020d}.index").write_bytes(b"")
    (folder / f"{0:020d}.txnindex").write_bytes(index)
    return folder


@pytest.mark.every_disk
def test_a_scan_of_aborted_transactions(tmp_path: Path) -> None:
    """Each is yielded when it ends; what is kept for the comparison with the .txnindex is in arrays. Those of the last
    run of batches, a few hundred, are still there as objects."""

    def kept_at_end(count: int) -> int:
        folder = aborted(tmp_path / f"t-{count}", count)
        tracemalloc.start()
        try:
            rows = 0
            for each in transactions(str(folder)):
                rows += getattr(each, "state", "") == "aborted"
                if isinstance(each, PartitionTransactions):  # the state of the scan is still there
                    assert rows == each.aborted == count
                    gc.collect()
                    return tracemalloc.get_traced_memory()[0]
            raise AssertionError("no partition")
        finally:
            tracemalloc.stop()

    kept_at_end(10)  # what is imported on the way
    assert (kept_at_end(4000) - kept_at_end(2000)) / 2000 <= 100
