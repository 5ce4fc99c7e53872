"""Builds partitions: a real one split into segments, and crafted ones, with the snapshots and indexes that a broker
would have."""

from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path

from crc32c import crc32c

from kdump.format.index import TXN_INDEX_ENTRY
from kdump.format.producer_snapshot import PRODUCER_ENTRY
from tests import naive
from tests.conftest import FIXTURES
from tests.craft import batch, record, split, write_file
from tests.state.test_transaction_coordinator import key, value

PAYMENTS = FIXTURES / "clean-1" / "payments-0" / f"{0:020}.log"
LOG = f"{0:020}.log"


def data(
    offset: int, producer: int, epoch: int = 0, count: int = 1, *, transactional: bool = True, **more: int
) -> bytes:
    """Return a data batch."""
    attributes = 0x10 if transactional else 0
    fields = {"producerId": producer, "producerEpoch": epoch, "baseSequence": 0, "attributes": attributes} | more
    return batch([record(i, value=b"v") for i in range(count)], offset=offset, **fields)


def marker(
    offset: int, producer: int, epoch: int = 0, *, commit: bool = True, coordinator: int = 0, **more: int
) -> bytes:
    """Return a transaction marker."""
    said = record(key=struct.pack(">hh", 0, commit), value=struct.pack(">hi", 0, coordinator))
    return batch([said], offset=offset, attributes=0x30, producerId=producer, producerEpoch=epoch, **more)


def snapshot(*entries: tuple[int, ...]) -> bytes:
    """Return a producer snapshot with these entries; each is a tuple of its fields, in order."""
    body = struct.pack(">i", len(entries)) + b"".join(PRODUCER_ENTRY.struct.pack(*entry) for entry in entries)
    return struct.pack(">hI", 1, crc32c(body)) + body


def txn_index(*entries: tuple[int, int, int, int]) -> bytes:
    """Return a .txnindex with these entries: producerId, firstOffset, lastOffset, lastStableOffset."""
    return b"".join(TXN_INDEX_ENTRY.struct.pack(0, *entry) for entry in entries)


def partition(root: Path, *segments: bytes, name: str = "payments-0", snapshots: bool = True) -> Path:
    """Write a partition with these segments. Each gets its .txnindex, and all but the first a producer snapshot."""
    folder = root / name
    folder.mkdir(parents=True)
    paths = []
    for content in segments:
        base = int.from_bytes(content[:8], "big")
        path = write_file(folder / f"{base:020}.log", content)
        done, _ = naive.ended(naive.batches(*paths, path))
        here = [each for each in done if each.abort and each.first is not None and each.marker >= base]
        if here:
            rows = [(each.producer, each.first or 0, each.marker, each.stable) for each in here]
            path.with_suffix(".txnindex").write_bytes(txn_index(*rows))
        path.with_suffix(".index").write_bytes(b"")
        if paths and snapshots:
            _, before = naive.ended(naive.batches(*paths))
            rows_of = [(p, 0, -1, -1, 0, 1, -1, first) for p, first in before.items()]
            path.with_suffix(".snapshot").write_bytes(snapshot(*rows_of))
        paths.append(path)
    return folder


def cut(*at: int) -> list[bytes]:
    """Split the real payments-0 into segments that start with the batches of these numbers."""
    parts = split(PAYMENTS.read_bytes())
    edges = [0, *at, len(parts)]
    return [b"".join(parts[first:last]) for first, last in pairwise(edges)]


def coordinator(root: Path, *said: tuple[str, int, int, str, dict[str, list[int]] | None]) -> None:
    """Write __transaction_state-0 next to the partitions, one record per entry: transactional ID, producer ID, epoch,
    state, partitions."""
    folder = root / "__transaction_state-0"
    folder.mkdir(parents=True, exist_ok=True)
    records = [
        batch([record(key=key(name), value=value(producer, epoch, state, partitions))], offset=i)
        for i, (name, producer, epoch, state, partitions) in enumerate(said)
    ]
    (folder / LOG).write_bytes(b"".join(records))
