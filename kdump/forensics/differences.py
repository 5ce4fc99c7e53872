"""What two copies of a partition can have differently, and what that makes of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kdump.forensics.cursor import Cursor
from kdump.forensics.damage import Place
from kdump.forensics.rows import Row

SAME, PREFIX, DIVERGENT = "same", "prefix", "divergent"
RECORDS, MISSING, DAMAGE = "records", "missing", "damage"
CLEANED, REWRITTEN, LEADER_EPOCH, DAMAGED_ALIKE = "cleaned", "rewritten", "leaderEpoch", "damagedAlike"
UNREAD, UNKNOWN = "unread", "unknown"
PARTINGS = (RECORDS, MISSING, DAMAGE)
"""Kinds of difference that make copies divergent; the others are legal, or cannot be told."""


class Sample(NamedTuple):
    """A record that the copies have differently. Keys and values are cut; their sizes are not."""

    offset: int
    fields: tuple[str, ...]
    left: Row
    right: Row
    sizes: tuple[tuple[int, int], tuple[int, int]]
    """Of key and value, left and right; -1 for null."""


@dataclass
class Difference:
    """Offsets first..last that the copies have differently, and where the first of them stands.

    `kind`: records (they say something else), missing (one has none, and nothing explains it), damage; cleaned (gone in
    a log that the cleaner works on), rewritten (the same records in other batches), leaderEpoch (the same bytes but the
    epoch of their header), damagedAlike, unread (one could not be read), unknown (damaged on one side, cleaned away on
    the other). `lacking`: the copy that has not got them, 0 or 1; None for both, or neither. `records`: how many are
    different or lacking; `batches` for rewritten and leaderEpoch.
    """

    kind: str
    first: int
    last: int
    lacking: int | None = None
    records: int = 0
    batches: int = 0
    left: Place | None = None
    right: Place | None = None
    fields: tuple[str, ...] = ()
    """What says something else: names of a record's fields; of rewritten, in what the batches differ."""
    samples: list[Sample] = field(default_factory=list)
    reason: str = ""

    @property
    def parts(self) -> bool:
        return self.kind in PARTINGS


class Standing(NamedTuple):
    """A batch around an offset: what stands in its header."""

    place: Place
    baseOffset: int
    lastOffset: int
    recordCount: int | None
    leaderEpoch: int | None
    maxTimestamp: int | None


@dataclass
class Behind:
    """What a copy has from an offset on: records in sound batches, and their largest timestamp, epoch ms."""

    records: int = 0
    newest: int | None = None

    def add(self, records: int, timestamp: int | None) -> None:
        self.records += records
        if timestamp is not None and timestamp >= 0:
            self.newest = timestamp if self.newest is None else max(self.newest, timestamp)


@dataclass
class Comparison:
    """Two copies. `relation` is same, prefix or divergent; None where they have no offset in common, or where what they
    have in common could not be read. `shorter`: which of them is the prefix. `alike`: offsets at which both have the
    same record."""

    relation: str | None
    shorter: int | None
    differences: list[Difference]
    more: int
    left: Cursor
    right: Cursor
    standing: dict[int, tuple[Standing | None, Standing | None]]
    """By the first offset of a parting: the batches that hold it."""
    behind: tuple[Behind, Behind]
    alike: int

    @property
    def first(self) -> Difference | None:
        """The first difference that makes them divergent."""
        return min((each for each in self.differences if each.parts), key=lambda each: each.first, default=None)

    @property
    def history(self) -> Difference | None:
        """The first that is no damage: where two histories part."""
        found = (each for each in self.differences if each.kind in (RECORDS, MISSING))
        return min(found, key=lambda each: each.first, default=None)
