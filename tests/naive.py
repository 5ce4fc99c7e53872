"""Naive reference implementation of transactions, from the bytes of headers and markers, independent of the code under
test. For valid segments of v2 batches only."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

from tests.craft import split, varint

HEADER = struct.Struct(">qiibIhiqqqhii")


class Batch(NamedTuple):
    base: int
    last: int
    records: int
    producer: int
    epoch: int
    transactional: bool
    control: bool
    abort: bool | None
    """True for an ABORT marker, False for a COMMIT marker; None for data and for markers emptied by compaction."""


class Done(NamedTuple):
    producer: int
    epoch: int
    """Epoch of the marker."""
    first: int | None
    last: int | None
    records: int
    marker: int
    abort: bool
    stable: int
    """Last stable offset after the marker."""


def batches(*paths: Path) -> list[Batch]:
    found = []
    for path in paths:
        for data in split(path.read_bytes()):
            if data[16] != 2:
                offset = int.from_bytes(data[:8], "big")
                found.append(Batch(offset, offset, 1, -1, -1, False, False, None))
                continue
            base, _, _, _, _, bits, delta, _, _, producer, epoch, _, count = HEADER.unpack_from(data)
            control = bool(bits & 0x20)
            abort = None
            if control and count and bits & 0x10:
                # Length, attributes, timestampDelta and offsetDelta have one byte each in a marker; the key has 4.
                at = data.index(varint(4), HEADER.size + 4)
                abort = data[at + 3 : at + 5] == b"\0\0"
            found.append(Batch(base, base + delta, count, producer, epoch, bool(bits & 0x10), control, abort))
    return found


def ended(log: list[Batch]) -> tuple[list[Done], dict[int, int]]:
    """Return the transactions that have ended, and the first offset of the open ones by producer ID."""
    open_: dict[int, list[Batch]] = {}
    done = []
    for batch in log:
        if batch.control:
            if batch.abort is None:
                continue
            data = open_.pop(batch.producer, [])
            stable = min((each[0].base for each in open_.values()), default=batch.base + 1)
            done.append(
                Done(
                    batch.producer,
                    batch.epoch,
                    data[0].base if data else None,
                    data[-1].last if data else None,
                    sum(each.records for each in data),
                    batch.base,
                    batch.abort,
                    stable,
                )
            )
        elif batch.transactional:
            open_.setdefault(batch.producer, []).append(batch)
    return done, {producer: data[0].base for producer, data in open_.items()}


def visible(log: list[Batch]) -> list[Batch]:
    """Return the batches that a read_committed consumer reads."""
    done, open_ = ended(log)
    stable = min(open_.values(), default=1 << 62)
    gone = [(each.producer, each.first, each.marker) for each in done if each.abort and each.first is not None]
    return [
        batch
        for batch in log
        if not batch.control
        and batch.base < stable
        and not (batch.transactional and any(p == batch.producer and f <= batch.base < m for p, f, m in gone))
    ]
