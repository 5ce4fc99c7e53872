"""Replicas of one partition, held against each other batch by batch: where they first say something else about the same
offsets. Takes rows in order and knows nothing of where they come from.

The checksum of a batch covers all but its offset, length, leader epoch and magic: replicas that are right have the same
for the same offsets. Not so after compaction, which writes batches anew on each broker in its own time; nor where one
copy is damaged. Replicas may begin and end elsewhere, for retention, trimming and replication are never at one point.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from kdump.check.catalogue import ERROR, INFO, WARNING

DIVERGED, COMPACTED, DAMAGED, MISSING = "diverged", "compacted", "damaged", "missing"


class BatchFact(NamedTuple):
    """A batch in one replica, as the table batches has it. Rows come by base offset, then by replica."""

    replica: str
    baseOffset: int
    lastOffset: int
    crc: int
    sound: bool
    leaderEpoch: int | None
    records: int | None
    compacted: bool
    """Whether it shows that the cleaner was there: fewer records than offsets, or a delete horizon."""


@dataclass
class Difference:
    """Where replicas first differ. `kind`: diverged, compacted, damaged, or missing (a replica lacks offsets between
    others that it has). `epochs` is the leader epoch of each replica's batch there, and `ends` the last offset that
    each has."""

    kind: str
    offset: int
    replicas: tuple[str, ...]
    epochs: dict[str, int | None]
    ends: dict[str, int] = field(default_factory=dict)

    @property
    def severity(self) -> str:
        """`error` where nothing mends it: under one leader epoch consumers read something else, depending on who leads,
        and damage is damage. `warning` where a start of the follower does, or that may be: an unclean election, offsets
        that one lacks. `info` for what the cleaner has done."""
        if self.kind == COMPACTED:
            return INFO
        known = {epoch for epoch in self.epochs.values() if epoch is not None and epoch >= 0}
        mends = self.kind == MISSING or (self.kind == DIVERGED and len(known) > 1)
        return WARNING if mends else ERROR

    def explained(self, names: Mapping[str, str | None] | None = None) -> str:
        """What the leader epochs say of it; `names` are those of the replicas' brokers, as far as they are known."""
        if self.kind != DIVERGED:
            return OTHERWISE[self.kind]
        known = {replica: epoch for replica, epoch in self.epochs.items() if epoch is not None and epoch >= 0}
        newest = max(known.values(), default=None)
        later = [_name(replica, names) for replica, epoch in known.items() if epoch == newest]
        earlier = [_name(replica, names) for replica, epoch in known.items() if epoch != newest]
        if not earlier or newest is None:
            return "all were written under one leader epoch: two leaders at once, or bytes that a disk has changed"
        older = ", ".join(str(epoch) for epoch in sorted({epoch for epoch in known.values() if epoch != newest}))
        has = "has" if len(earlier) == 1 else "have"
        return (
            f"leader epoch {newest} in {', '.join(later)}, {older} in {', '.join(earlier)}: an unclean election, after"
            f" which a follower truncates what it has of the earlier epoch; {', '.join(earlier)} {has} from offset"
            f" {self.offset} on what that leader never had"
        )


OTHERWISE = {
    COMPACTED: "the cleaner has written these batches anew: no damage",
    DAMAGED: "a batch there fails its checksum: the findings say what is wrong with it",
    MISSING: "one replica lacks offsets between others that it has",
}


def _name(replica: str, names: Mapping[str, str | None] | None) -> str:
    broker = (names or {}).get(replica)
    return replica if broker is None else f"broker {broker}"


@dataclass
class _Side:
    """How far one replica has been read: its last offset, under which leader epoch, and the first offset since then at
    which another replica has a batch."""

    end: int
    epoch: int | None
    passed: int | None = None


def first_differences(rows: Iterable[BatchFact]) -> list[Difference]:
    """The first difference of each kind between the replicas of one partition, whose batches `rows` are, ordered by
    baseOffset. Memory does not grow with the partition."""
    pair = _Replicas()
    for offset, group in groupby(rows, key=lambda row: row.baseOffset):
        pair.at(offset, list(group))
    return pair.differences()


class _Replicas:
    """The replicas of one partition, as they are being read."""

    def __init__(self) -> None:
        self.sides: dict[str, _Side] = {}
        self.found: dict[str, Difference] = {}
        self.cleaned = False

    def at(self, offset: int, rows: list[BatchFact]) -> None:
        """The batches that begin at an offset."""
        here: dict[str, BatchFact] = {}
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
            elif side.end >= offset:  # it is inside of a batch that the others do not have
                self._note(kind, offset, here, replica)
            elif side.passed is None:
                side.passed = offset
        for replica, row in here.items():
            before = self.sides.get(replica)
            self.sides[replica] = _Side(max(row.lastOffset, before.end if before else -1), row.leaderEpoch)

    def _note(self, kind: str, offset: int, here: dict[str, BatchFact], other: str | None = None) -> None:
        if kind in self.found:
            return
        epochs = {replica: row.leaderEpoch for replica, row in here.items()}
        if other is not None:
            epochs[other] = self.sides[other].epoch
        self.found[kind] = Difference(kind, offset, tuple(sorted(epochs)), dict(sorted(epochs.items())))

    def differences(self) -> list[Difference]:
        """All of them, once the rows have ended. What is missing in a log that the cleaner was in, it has removed."""
        missing = self.found.get(MISSING)
        if missing is not None and self.cleaned:
            del self.found[MISSING]
            missing.kind = COMPACTED
            self.found.setdefault(COMPACTED, missing)
        for difference in self.found.values():
            difference.ends = {replica: side.end for replica, side in sorted(self.sides.items())}
        return sorted(self.found.values(), key=lambda each: each.offset)


def _kind(rows: Iterable[BatchFact]) -> str:
    every = list(rows)
    if not all(row.sound for row in every):
        return DAMAGED
    return COMPACTED if any(row.compacted for row in every) else DIVERGED


def partitions(rows: Iterable[tuple[Any, BatchFact]]) -> Iterator[tuple[Any, list[Difference]]]:
    """The differences of every partition that has any, out of rows that come partition by partition."""
    for name, group in groupby(rows, key=itemgetter(0)):
        found = first_differences(row for _, row in group)
        if found:
            yield name, found
