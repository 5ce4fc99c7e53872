"""Compares the replicas of a partition batch by batch, and finds where they first differ at the same offsets. Takes
rows in order, from any source.

The checksum of a batch covers what follows it in the header, and the records, but not the base offset, length, leader
epoch and magic: intact replicas have the same checksum at the same offsets. There are two exceptions: compaction, which
rewrites batches on each broker independently, and damage. Replicas may start and end at different offsets, because
retention, DeleteRecords and replication do not progress in step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from kdump.check.finding import ERROR, INFO, WARNING

DIVERGED, COMPACTED, DAMAGED, MISSING = "diverged", "compacted", "damaged", "missing"


class ComparedBatch(NamedTuple):
    """A batch of one replica, as in the table batches. Rows are ordered by base offset, then by replica."""

    replica: str
    baseOffset: int
    lastOffset: int
    crc: int
    is_valid: bool
    leaderEpoch: int | None
    records: int | None
    compacted: bool
    """Whether the log cleaner has evidently rewritten it: fewer records than offsets, or a delete horizon."""


@dataclass
class FirstDifference:
    """The first difference of a kind between replicas. `kind`: diverged, compacted, damaged, or missing (a replica
    lacks offsets between others that it has). `epochs` is the leader epoch of each replica's batch there, and `ends`
    the last offset of each replica."""

    kind: str
    offset: int
    replicas: tuple[str, ...]
    epochs: dict[str, int | None]
    ends: dict[str, int] = field(default_factory=dict)

    @property
    def severity(self) -> str:
        """`error` for what no broker repairs: divergence within one leader epoch, where the records that consumers read
        depend on which replica leads, and damage. `warning` for what a follower repairs by truncation, or what may be
        legitimate: divergence after an unclean election, and missing offsets. `info` for compaction."""
        if self.kind == COMPACTED:
            return INFO
        known = {epoch for epoch in self.epochs.values() if epoch is not None and epoch >= 0}
        is_repaired = self.kind == MISSING or (self.kind == DIVERGED and len(known) > 1)
        return WARNING if is_repaired else ERROR

    def explained(self, names: Mapping[str, str | None] | None = None) -> str:
        """Return an explanation, for divergence by the leader epochs. `names`: brokers of the replicas, if known."""
        if self.kind != DIVERGED:
            return OTHERWISE[self.kind]
        known = {replica: epoch for replica, epoch in self.epochs.items() if epoch is not None and epoch >= 0}
        newest = max(known.values(), default=None)
        later = [_name(replica, names) for replica, epoch in known.items() if epoch == newest]
        earlier = [_name(replica, names) for replica, epoch in known.items() if epoch != newest]
        if not earlier or newest is None:
            return "all have the same leader epoch: there were two leaders at the same time, or a disk changed bytes"
        older = ", ".join(str(epoch) for epoch in sorted({epoch for epoch in known.values() if epoch != newest}))
        has = "has" if len(earlier) == 1 else "have"
        return (
            f"leader epoch {newest} in {', '.join(later)}, {older} in {', '.join(earlier)}: after an unclean election,"
            f" a follower truncates its data of the earlier epoch; from offset {self.offset} on,"
            f" {', '.join(earlier)} {has} data that the later leader never had"
        )


OTHERWISE = {
    COMPACTED: "the log cleaner has rewritten these batches; this is not damage",
    DAMAGED: "the checksum of a batch there does not match; see the findings",
    MISSING: "a replica lacks offsets between others that it has",
}


def _name(replica: str, names: Mapping[str, str | None] | None) -> str:
    broker = (names or {}).get(replica)
    return replica if broker is None else f"broker {broker}"


@dataclass
class _Side:
    """Progress in one replica: its last offset, the leader epoch of its last batch, and the first offset since then at
    which another replica has a batch (None: there is none)."""

    end: int
    epoch: int | None
    passed: int | None = None


def first_differences(rows: Iterable[ComparedBatch]) -> list[FirstDifference]:
    """Return the first difference of each kind between the replicas of one partition. `rows`: their batches, ordered by
    baseOffset. Memory does not grow with the partition."""
    pair = _Replicas()
    for offset, group in groupby(rows, key=lambda row: row.baseOffset):
        pair.at(offset, list(group))
    return pair.differences()


class _Replicas:
    """State of the replicas of one partition while their batches are read."""

    def __init__(self) -> None:
        self.sides: dict[str, _Side] = {}
        self.found: dict[str, FirstDifference] = {}
        self.cleaned = False

    def at(self, offset: int, rows: list[ComparedBatch]) -> None:
        """Compare the batches that begin at an offset."""
        here: dict[str, ComparedBatch] = {}
        for row in rows:
            here.setdefault(row.replica, row)
            self.cleaned = self.cleaned or row.compacted
        kind = _kind(here.values())
        if len({(row.crc, row.lastOffset) for row in here.values()}) > 1:
            self._note(kind, offset, here)
        for replica, side in self.sides.items():
            if replica in here:
                if side.passed is not None:
                    self._note(MISSING, side.passed, here)
            elif side.end >= offset:  # the offset is inside a batch that the others do not have
                self._note(kind, offset, here, replica)
            elif side.passed is None:
                side.passed = offset
        for replica, row in here.items():
            before = self.sides.get(replica)
            self.sides[replica] = _Side(max(row.lastOffset, before.end if before else -1), row.leaderEpoch)

    def _note(self, kind: str, offset: int, here: dict[str, ComparedBatch], other: str | None = None) -> None:
        if kind in self.found:
            return
        epochs = {replica: row.leaderEpoch for replica, row in here.items()}
        if other is not None:
            epochs[other] = self.sides[other].epoch
        self.found[kind] = FirstDifference(kind, offset, tuple(sorted(epochs)), dict(sorted(epochs.items())))

    def differences(self) -> list[FirstDifference]:
        """Return all differences, after the last row. Offsets missing in a log that was cleaned count as compacted."""
        missing = self.found.get(MISSING)
        if missing is not None and self.cleaned:
            del self.found[MISSING]
            missing.kind = COMPACTED
            self.found.setdefault(COMPACTED, missing)
        for difference in self.found.values():
            difference.ends = {replica: side.end for replica, side in sorted(self.sides.items())}
        return sorted(self.found.values(), key=lambda each: each.offset)


def _kind(rows: Iterable[ComparedBatch]) -> str:
    every = list(rows)
    if not all(row.is_valid for row in every):
        return DAMAGED
    return COMPACTED if any(row.compacted for row in every) else DIVERGED


def partitions(rows: Iterable[tuple[Any, ComparedBatch]]) -> Iterator[tuple[Any, list[FirstDifference]]]:
    """Yield the differences of every partition that has any. The rows of a partition must be consecutive."""
    for name, group in groupby(rows, key=itemgetter(0)):
        found = first_differences(row for _, row in group)
        if found:
            yield name, found
