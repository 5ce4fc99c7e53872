"""The possible differences between two copies of a partition, and the resulting relation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kdump.log.paths import FilePosition
from kdump.questions.diff.comparable_records import ComparableRecord
from kdump.questions.diff.copy_reader import CopyReader

SAME, PREFIX, DIVERGENT = "same", "prefix", "divergent"
RECORDS, MISSING, DAMAGE, EPOCHS = "records", "missing", "damage", "epochs"
CLEANED, REWRITTEN, LEADER_EPOCH, DAMAGED_ALIKE = "cleaned", "rewritten", "leaderEpoch", "damagedAlike"
UNREAD, UNKNOWN, WITHHELD = "unread", "unknown", "notInBundle"
PARTINGS = (RECORDS, MISSING, DAMAGE, EPOCHS)
"""Kinds of difference that make copies divergent; the others are legal, or cannot be judged."""


class Sample(NamedTuple):
    """A record that differs between the copies. Keys and values are truncated; `sizes` are those of the full ones."""

    offset: int
    fields: tuple[str, ...]
    left: ComparableRecord
    right: ComparableRecord
    sizes: tuple[tuple[int, int], tuple[int, int]]
    """Bytes of key and value, left and right; -1 for null."""


@dataclass
class DifferingRange:
    """Offsets first..last that differ between the copies, and the places of the first one.

    `kind`: records (their contents differ), missing (one copy has none, for no known reason), damage, epochs (the same
    records in other leader epochs, so that a follower truncates them); cleaned (removed
    from a compacted log), rewritten (the same records in different batches), leaderEpoch (batches that differ only in
    the leader epoch of their header), damagedAlike, unread (one copy could not be read), unknown (damaged in both
    copies, but not in the same way), notInBundle (batches that differ, whose records are not in a bundle). `lacking`:
    the copy without the records, 0 or 1; None for both or neither.
    `records`: number of records that differ, are missing, or are in different batches; `batches`: only for leaderEpoch.
    """

    kind: str
    first: int
    last: int
    lacking: int | None = None
    records: int = 0
    batches: int = 0
    left: FilePosition | None = None
    right: FilePosition | None = None
    fields: tuple[str, ...] = ()
    """Names of the record fields that differ; for rewritten, of the batch fields."""
    samples: list[Sample] = field(default_factory=list)
    reason: str = ""

    @property
    def parts(self) -> bool:
        return self.kind in PARTINGS


class BatchAtOffset(NamedTuple):
    """Header fields of the batch that contains an offset."""

    place: FilePosition
    baseOffset: int
    lastOffset: int
    recordCount: int | None
    leaderEpoch: int | None
    maxTimestamp: int | None


@dataclass
class DivergentTail:
    """The contents of a copy from an offset on: number of records in valid batches, and their largest timestamp in
    epoch ms."""

    records: int = 0
    newest: int | None = None

    def add(self, records: int, timestamp: int | None) -> None:
        self.records += records
        if timestamp is not None and timestamp >= 0:
            self.newest = timestamp if self.newest is None else max(self.newest, timestamp)


@dataclass
class Comparison:
    """Result of comparing two copies. `relation`: same, prefix or divergent; None if they have no offset in common, or
    if the offsets in common could not be read. `shorter`: the copy that is the prefix. `alike`: number of offsets at
    which both have the same record."""

    relation: str | None
    shorter: int | None
    differences: list[DifferingRange]
    more: int
    left: CopyReader
    right: CopyReader
    batches_at: dict[int, tuple[BatchAtOffset | None, BatchAtOffset | None]]
    """The batches that contain an offset, by the first offset of each run of differences."""
    tails: tuple[DivergentTail, DivergentTail]
    alike: int

    @property
    def first(self) -> DifferingRange | None:
        """The first difference that makes the copies divergent."""
        return self._first_of(PARTINGS)

    @property
    def first_in_records(self) -> DifferingRange | None:
        """The first difference in what the copies contain, which a follower's truncation may leave."""
        return self._first_of((RECORDS, MISSING, DAMAGE))

    @property
    def history(self) -> DifferingRange | None:
        """The first divergence that is not damage: where the histories diverge."""
        return self._first_of((RECORDS, MISSING))

    def _first_of(self, kinds: tuple[str, ...]) -> DifferingRange | None:
        differences = (difference for difference in self.differences if difference.kind in kinds)
        return min(differences, key=lambda difference: difference.first, default=None)

    def doubt_cleaned(self, kind: str) -> None:
        """Note that it is unknown whether the log cleaner removed what one copy lacks: the difference is of this kind,
        WITHHELD or UNREAD."""
        for difference in self.differences:
            if difference.kind == CLEANED:
                difference.kind = kind
        if self.relation != DIVERGENT:
            self.relation = self.shorter = None

    def add_epochs(self, first: int, end: int) -> None:
        """Add that the copies have other leader epochs from `first` on, if they do not diverge before."""
        if self.first is None or first < self.first.first:
            self.differences.append(DifferingRange(EPOCHS, first, end - 1))
            self.differences.sort(key=lambda difference: difference.first)
            self.relation, self.shorter = DIVERGENT, None
