"""Collects the differences between two copies while they are compared, and derives the relation between the copies."""

from __future__ import annotations

from kdump.io.hash_key import RecordHash
from kdump.io.source import CHECKSUMS
from kdump.log.region import Batch, last_record_offset
from kdump.questions.diff.comparable_records import HIDDEN, ComparableRecord, differing, is_hidden
from kdump.questions.diff.copy_damage import OffsetGap
from kdump.questions.diff.copy_reader import CopyReader
from kdump.questions.diff.differences import (
    CLEANED,
    DAMAGE,
    DAMAGED_ALIKE,
    DIVERGENT,
    MISSING,
    PREFIX,
    RECORDS,
    REWRITTEN,
    SAME,
    UNKNOWN,
    UNREAD,
    WITHHELD,
    BatchAtOffset,
    Comparison,
    DifferingRange,
    DivergentTail,
    Sample,
)
from kdump.questions.diff.lost_records import LostRecords

MAX_RUNS = 100
"""Maximum number of runs of differences that are kept; more are only counted."""
SAMPLES = 5
SHOWN = 512
"""Maximum number of bytes that a sample keeps of a key, a value or the headers."""


class DifferenceCollector:
    """The differences found in one comparison. `diverged_at`: offset at which the histories diverge, None until they
    do. `doubted`: the side that seems to lack records, as long as signs of compaction may still explain it. `lost`: the
    records that a side lacks although the log cleaner did not remove them."""

    def __init__(self, sides: tuple[CopyReader, CopyReader], lost: LostRecords = ({}, {})) -> None:
        self.sides, self.lost = sides, lost
        self.runs: list[DifferingRange] = []
        self.more = 0
        self.sums: dict[tuple[str, int | None], DifferingRange] = {}
        self.absent: list[DifferingRange | None] = [None, None]
        self.batches_at: dict[int, tuple[BatchAtOffset | None, BatchAtOffset | None]] = {}
        self.diverged_at: int | None = None
        self.doubted: int | None = None
        self.tails = (DivergentTail(), DivergentTail())
        self.alike = 0
        self.run_of: DifferingRange | None = None
        self.judged: tuple[OffsetGap, OffsetGap] | None = None
        self.written: tuple[Batch | None, Batch | None, tuple[str, ...]] = (None, None, ())

    def same(self, records: int) -> None:
        """Count records that both copies have."""
        self.alike += records
        self.run_of = None

    def both(self, mine: ComparableRecord, theirs: ComparableRecord) -> None:
        """Compare the records of both copies at one offset."""
        for number, row in enumerate((mine, theirs)):
            if self.diverged_at is not None:
                self.add_tail(number, 1, row.timestamp)
        if mine == theirs and mine.value is not HIDDEN:
            self.same(1)
            if self.diverged_at is None:
                self.sum(REWRITTEN, None, mine.offset, mine.offset, records=1, fields=self._written())
            return
        if self._is_below(mine.offset):
            return
        hidden = is_hidden(mine, theirs)
        names = differing(mine, theirs)
        if hidden and not names and not self._has_other_bytes():
            self.not_compared(mine.offset, mine.offset, 1)
            return
        part = self._part(RECORDS, None, mine.offset, fields=names)
        if len(part.samples) < SAMPLES and not hidden and not isinstance(mine.value, RecordHash):
            sizes = tuple((_size(row.key), _size(row.value)) for row in (mine, theirs))
            part.samples.append(Sample(mine.offset, names, _cut(mine), _cut(theirs), (sizes[0], sizes[1])))

    def _has_other_bytes(self) -> bool:
        """Return True if the two current batches, which are not the same, have the same offsets and are not compressed:
        then records differ."""
        one, other = (side.batch for side in self.sides)
        assert one is not None
        assert other is not None
        if any(batch.replaced_under or CHECKSUMS in batch.lacks for batch in (one, other)):
            return False
        shapes = [
            (batch.magic, batch.attributes, batch.baseOffset, last_record_offset(batch), batch.recordCount)
            for batch in (one, other)
        ]
        return shapes[0] == shapes[1] and not one.is_compressed

    def not_compared(self, first: int, last: int, records: int) -> None:
        """Handle offsets at which both copies have records, but those of one are not in its bundle, and the headers of
        the batches are not the same."""
        if not self._is_below(last):
            self.sum(WITHHELD, None, first, last, records=records)

    def _written(self) -> tuple[str, ...]:
        """Return the names of the fields in which the two current batches differ, although they contain the same
        record."""
        one, other = (side.batch for side in self.sides)
        assert one is not None
        assert other is not None
        if self.written[:2] != (one, other):
            names = [name for name in ("magic", "compression") if getattr(one, name) != getattr(other, name)]
            if one.deleteHorizonMs != other.deleteHorizonMs:
                names.append("deleteHorizonMs")
            if (one.baseOffset, last_record_offset(one), one.recordCount) != (
                other.baseOffset,
                last_record_offset(other),
                other.recordCount,
            ):
                names.append("recordCount")
            self.written = (one, other, tuple(names) or ("size",))
        return self.written[2]

    def _is_below(self, offset: int) -> bool:
        """Return True if `offset` is below the start of either log: retention may have deleted it there."""
        return any(offset < (side.start or 0) for side in self.sides)

    def lacks(self, number: int, row: ComparableRecord) -> None:
        """Handle a record that side `number` does not have."""
        if self.diverged_at is not None:
            self.add_tail(1 - number, 1, row.timestamp)
        self.lacks_records(number, row.offset, row.offset, 1, row.timestamp)

    def lacks_records(self, number: int, offset: int, last: int, records: int, timestamp: int | None) -> None:
        """Handle `records` records from `offset` to `last` that side `number` does not have."""
        side = self.sides[number]
        if self._is_below(last):
            return
        hole = side.hole
        if hole is not None and hole.contains(offset):
            if hole.unread and not hole.damages:
                self.sum(UNREAD, number, offset, last, records=records)
                return
            difference = self._part(DAMAGE, number, offset, last=last, records=records)
            self._at_damage(difference, number, hole)
            return
        reason = self.lost[number].get(offset)
        if reason is not None:
            difference = self._part(MISSING, number, offset, last=last, records=records)
            difference.reason = difference.reason or reason
            if self.diverged_at is None:
                self.diverged_at = offset
                self.add_tail(1 - number, records, timestamp)
            return
        difference = self.absent[number] or DifferingRange(MISSING, offset, offset, number)
        if self.absent[number] is None:
            self._locate(difference, offset)
        if self.diverged_at is None and not side.sign:
            # If signs of compaction follow, `settle` withdraws this.
            self.diverged_at, self.doubted = offset, number
            self.add_tail(1 - number, records, timestamp)
        self.absent[number] = difference
        difference.last = last
        difference.records += records
        self.run_of = None

    def settle(self) -> None:
        """Withdraw the divergence if the missing records turn out to have been removed by compaction."""
        if self.doubted is not None and self.sides[self.doubted].sign:
            self.diverged_at = self.doubted = None
            self.tails = (DivergentTail(), DivergentTail())

    def holes(self) -> None:
        """Compare damage that both copies have at the same offsets."""
        left, right = self.sides
        one, other = left.hole, right.hole
        if one is None or other is None or self.judged == (one, other):
            return
        self.judged = (one, other)
        first = max(one.first, other.first)
        lasts = [hole.last for hole in (one, other) if hole.last is not None]
        last = min(lasts, default=first)
        if not (one.is_known and other.is_known):
            self.sum(WITHHELD, None, first, last)
        elif one.is_as(other):
            self.sum(DAMAGED_ALIKE, None, one.first, last)
        elif one.first == other.first and one.damages and other.damages:
            difference = self._part(DAMAGE, None, first)
            difference.records -= 1  # their number is unknown
            difference.last = max(difference.last, last)
            difference.left, difference.right = one.damages[0].place, other.damages[0].place
            difference.reason = one.damages[0].reason
        else:
            self.sum(UNKNOWN, None, first, last)

    def _at_damage(self, difference: DifferingRange, number: int, hole: OffsetGap) -> None:
        if difference.records > 1 or not hole.damages:
            return
        difference.reason = hole.damages[0].reason
        if number:
            difference.right = hole.damages[0].place
        else:
            difference.left = hole.damages[0].place

    def _part(
        self,
        kind: str,
        lacking: int | None,
        offset: int,
        fields: tuple[str, ...] = (),
        *,
        last: int | None = None,
        records: int = 1,
    ) -> DifferingRange:
        """Add the offsets from `offset` to `last` (default: one offset), at which the copies diverge."""
        part = self.run_of
        if part is None or (part.kind, part.lacking) != (kind, lacking):
            part = DifferingRange(kind, offset, offset, lacking)
            self._locate(part, offset)
            if len(self.runs) < MAX_RUNS:
                self.runs.append(part)
            else:
                self.more += 1
            self.run_of = part
        part.last = offset if last is None else last
        part.records += records
        part.fields = tuple(dict.fromkeys((*part.fields, *fields)))
        if kind == RECORDS:
            self.doubted = None
        if kind == RECORDS and self.diverged_at is None:
            self.diverged_at = offset
            for number, side in enumerate(self.sides):
                if side.row is not None:
                    self.add_tail(number, 1, side.row.timestamp)
        return part

    def _locate(self, difference: DifferingRange, offset: int) -> None:
        left, right = (side.place if side.batch is not None else None for side in self.sides)
        difference.left, difference.right = left, right
        if len(self.batches_at) < MAX_RUNS:
            self.batches_at.setdefault(offset, (self._batch_at(0, offset), self._batch_at(1, offset)))

    def _batch_at(self, number: int, offset: int) -> BatchAtOffset | None:
        side = self.sides[number]
        batch = side.batch
        if batch is None or not (batch.baseOffset or 0) <= offset <= last_record_offset(batch):
            return None
        count, epoch = batch.recordCount, batch.partitionLeaderEpoch
        return BatchAtOffset(
            side.place, batch.baseOffset or 0, last_record_offset(batch), count, epoch, batch.maxTimestamp
        )

    def sum(
        self,
        kind: str,
        lacking: int | None,
        first: int,
        last: int,
        *,
        records: int = 0,
        batches: int = 0,
        fields: tuple[str, ...] = (),
    ) -> None:
        """Add to the single difference that collects all occurrences of this kind."""
        difference = self.sums.get((kind, lacking))
        if difference is None:
            difference = self.sums[(kind, lacking)] = DifferingRange(kind, first, last, lacking)
            left, right = (side.place if side.batch is not None else None for side in self.sides)
            difference.left, difference.right = left, right
        difference.last = max(difference.last, last)
        difference.records += records
        difference.batches += batches
        if fields and difference.fields != fields:
            difference.fields = tuple(dict.fromkeys((*difference.fields, *fields)))

    def add_tail(self, number: int, records: int, timestamp: int | None) -> None:
        """Count records that a side has after the divergence."""
        if timestamp is HIDDEN:
            batch = self.sides[number].batch
            timestamp = None if batch is None else batch.maxTimestamp
        self.tails[number].add(records, timestamp)

    def finished(self) -> Comparison:
        """Return the result, once both sides have been read."""
        for number, difference in enumerate(self.absent):
            if difference is not None:
                side = self.sides[number]
                if side.sign:
                    difference.kind, difference.reason = CLEANED, side.sign
                self.runs.append(difference)
        self._undecoded()
        differences = sorted([*self.runs, *self.sums.values()], key=lambda each: each.first)
        relation, shorter = self._relation(differences)
        left, right = self.sides
        return Comparison(
            relation, shorter, differences, self.more, left, right, self.batches_at, self.tails, self.alike
        )

    def _undecoded(self) -> None:
        """Add the batches with a wrong record count: their records are the same, but consumers cannot read them."""
        for number, side in enumerate(self.sides):
            for first, last, damage in side.undecoded:
                places = (damage.place, None) if number == 0 else (None, damage.place)
                self.runs.append(
                    DifferingRange(DAMAGE, first, last, number, left=places[0], right=places[1], reason=damage.reason)
                )
                legal = self.sums.get((REWRITTEN, None))
                if legal is not None and first <= legal.first and legal.last <= last:
                    del self.sums[(REWRITTEN, None)]

    def _relation(self, differences: list[DifferingRange]) -> tuple[str | None, int | None]:
        if any(difference.parts for difference in differences):
            return DIVERGENT, None
        if any(difference.kind in (UNREAD, UNKNOWN, WITHHELD) for difference in differences):
            return None, None
        left, right = self.sides
        if left.end_unread or right.end_unread:
            return None, None
        starts, ends = [left.start or 0, right.start or 0], [left.end, right.end]
        if max(starts) > min(ends) or (max(starts) == min(ends) and all(a < b for a, b in zip(starts, ends))):
            return None, None
        goes_on = [side.hole is not None for side in self.sides]  # in bytes that cannot be read
        if ends[0] == ends[1] and goes_on[0] == goes_on[1]:
            return SAME, None
        return PREFIX, int(ends[1] < ends[0] or (ends[0] == ends[1] and goes_on[0]))


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _cut(row: ComparableRecord) -> ComparableRecord:
    key, value = (None if data is None else bytes(data[:SHOWN]) for data in (row.key, row.value))
    return row._replace(key=key, value=value, headers=(row.headers[0], row.headers[1][:SHOWN]))
