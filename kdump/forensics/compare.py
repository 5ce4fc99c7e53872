"""Two copies of a partition, held against each other: batch by batch, and record by record where batches differ.

What may differ between two copies that are right: where the log begins (retention) and ends, the boundaries of segments
and of batches, codec and format, the leader epoch of the header (which no checksum covers), and what the cleaner has
removed. What two copies that are right never do is to say something else about one offset.
"""

from __future__ import annotations

from collections.abc import Callable

from kdump.check.options import Options
from kdump.forensics.copies import Copy
from kdump.forensics.cursor import Cursor
from kdump.forensics.damage import Hole
from kdump.forensics.differences import (
    CLEANED,
    DAMAGE,
    DAMAGED_ALIKE,
    DIVERGENT,
    LEADER_EPOCH,
    MISSING,
    PREFIX,
    RECORDS,
    REWRITTEN,
    SAME,
    UNKNOWN,
    UNREAD,
    Behind,
    Comparison,
    Difference,
    Sample,
    Standing,
)
from kdump.forensics.rows import Row, differing
from kdump.log.region import Batch

MOST = 100
"""Runs of differences that are kept; more are counted."""
SAMPLES = 5
SHOWN = 512
"""Bytes of a key or a value that a sample keeps."""


def compare(left: Copy, right: Copy, options: Options, met: Callable[[int], None] = lambda count: None) -> Comparison:
    """Reads both, once, side by side."""
    return _Pair(Cursor(left, options, met), Cursor(right, options, met)).run()


class _Pair:
    def __init__(self, left: Cursor, right: Cursor) -> None:
        self.sides = (left, right)
        self.runs: list[Difference] = []
        self.more = 0
        self.sums: dict[tuple[str, int | None], Difference] = {}
        self.absent: list[Difference | None] = [None, None]
        self.standing: dict[int, tuple[Standing | None, Standing | None]] = {}
        self.parted: int | None = None
        self.behind = (Behind(), Behind())
        self.alike = 0
        self.run_of: Difference | None = None
        self.unlike: tuple[object, object] | None = None
        self.judged: tuple[Hole, Hole] | None = None
        self.written: tuple[Batch | None, Batch | None, tuple[str, ...]] = (None, None, ())
        self.doubted: int | None = None

    def run(self) -> Comparison:
        left, right = self.sides
        while not (left.ended or right.ended):
            if not left.consumed and not right.consumed:
                self._holes()
                self._settle()
                if self._stretches() or self._batches():
                    continue
            self._rows()
        if not left.consumed and not right.consumed:
            self._holes()
        for number in (0, 1):
            while not self.sides[number].ended:
                self._alone(number)
        return self._finished()

    # -- a step

    def _stretches(self) -> bool:
        """Many batches at once, where all bytes are the same."""
        left, right = self.sides
        one, other = left.stretch, right.stretch
        if one is None or other is None or self.parted is not None or self.unlike == (one, other):
            return False
        size = min(left.stop - left.at, right.stop - right.at)
        # Of two views every byte would be compared by itself; bytes know a quicker way.
        if not one.buffer.startswith(other.buffer[right.at : right.at + size], left.at):
            self.unlike = (one, other)
            return False
        before = left.records_seen
        left.skip_stretch(size)
        right.skip_stretch(size)
        self._same(left.records_seen - before)
        return True

    def _batches(self) -> bool:
        """One batch of each, where their bytes are the same but for the leader epoch."""
        left, right = self.sides
        one, other = left.batch, right.batch
        assert one is not None
        assert other is not None
        if one.baseOffset != other.baseOffset or one.size != other.size or one.magic != other.magic:
            return False
        if one.lastOffset != other.lastOffset or not _same_bytes(one, other):
            return False
        if one.partitionLeaderEpoch != other.partitionLeaderEpoch:
            self._sum(LEADER_EPOCH, None, one.baseOffset or 0, one.lastOffset, batches=1)
        count = one.recordCount or 0
        if self.parted is not None:
            for number in (0, 1):
                self._behind(number, count, one.maxTimestamp)
        self._same(count)
        left.advance()
        right.advance()
        return True

    def _rows(self) -> None:
        """One record of each, or of one of them."""
        left, right = self.sides
        mine, theirs = left.row, right.row
        if mine is None or theirs is None:
            self._at_end_of(0 if mine is None else 1)
            return
        if mine.offset < theirs.offset:
            self._lacks(1, mine)
            left.take()
        elif theirs.offset < mine.offset:
            self._lacks(0, theirs)
            right.take()
        else:
            self._both(mine, theirs)
            left.take()
            right.take()

    def _at_end_of(self, number: int) -> None:
        """The batch at hand of one side has no more records, or none at all: what the other has up to its last offset
        it has not."""
        side, other = self.sides[number], self.sides[1 - number]
        batch, row = side.batch, other.row
        assert batch is not None
        if row is not None and row.offset <= batch.lastOffset and not batch.problems:
            self._lacks(number, row)
            other.take()
        elif row is None and other.batch is not None and other.batch.lastOffset < batch.lastOffset:
            self._batch_over(other)
        else:
            self._batch_over(side)

    def _alone(self, number: int) -> None:
        """What only one side still goes on to: a batch, or a record where the other may yet have to do with it."""
        side, other = self.sides[number], self.sides[1 - number]
        batch = side.batch
        assert batch is not None
        if other.hole is None and not side.consumed and (batch.baseOffset or 0) >= other.end:
            if self.parted is not None:
                self._behind(number, batch.recordCount or 0, batch.maxTimestamp)
            side.advance()
            return
        row = side.row
        if row is None:
            self._batch_over(side)
            return
        if row.offset < other.end or other.hole is not None:
            self._lacks(1 - number, row)
        elif self.parted is not None:
            self._behind(number, 1, row.timestamp)
        side.take()

    def _batch_over(self, side: Cursor) -> None:
        batch = side.batch
        assert batch is not None
        if batch.problems:
            problem = batch.problems[0]
            side.note(f"{side.place.file}: the batch at {batch.position} cannot be decoded: {problem.reason}")
        side.advance()

    # -- what was met

    def _same(self, records: int) -> None:
        self.alike += records
        self.run_of = None

    def _both(self, mine: Row, theirs: Row) -> None:
        for number, row in enumerate((mine, theirs)):
            if self.parted is not None:
                self._behind(number, 1, row.timestamp)
        if mine == theirs:
            self._same(1)
            if self.parted is None:
                self._sum(REWRITTEN, None, mine.offset, mine.offset, records=1, fields=self._written())
            return
        if self._is_below(mine.offset):
            return
        names = differing(mine, theirs)
        found = self._part(RECORDS, None, mine.offset, fields=names)
        if len(found.samples) < SAMPLES:
            sizes = tuple((_size(row.key), _size(row.value)) for row in (mine, theirs))
            found.samples.append(Sample(mine.offset, names, _cut(mine), _cut(theirs), (sizes[0], sizes[1])))

    def _written(self) -> tuple[str, ...]:
        """In what the two batches at hand differ, though a record in them is the same."""
        one, other = (side.batch for side in self.sides)
        assert one is not None
        assert other is not None
        if self.written[:2] != (one, other):
            names = [name for name in ("magic", "compression") if getattr(one, name) != getattr(other, name)]
            if one.deleteHorizonMs != other.deleteHorizonMs:
                names.append("deleteHorizonMs")
            if (one.baseOffset, one.lastOffset, one.recordCount) != (
                other.baseOffset,
                other.lastOffset,
                other.recordCount,
            ):
                names.append("recordCount")
            self.written = (one, other, tuple(names) or ("size",))
        return self.written[2]

    def _is_below(self, offset: int) -> bool:
        """Whether it lies below where one of the logs begins: retention may have left it, or not."""
        return any(offset < (side.start or 0) for side in self.sides)

    def _lacks(self, number: int, row: Row) -> None:
        """Side `number` has not got a record."""
        side, offset = self.sides[number], row.offset
        if self.parted is not None:
            self._behind(1 - number, 1, row.timestamp)
        if self._is_below(offset):
            return
        hole = side.hole
        if hole is not None and hole.holds(offset):
            if hole.unread and not hole.damages:
                self._sum(UNREAD, number, offset, offset, records=1)
                return
            found = self._part(DAMAGE, number, offset)
            self._at_damage(found, number, hole)
            return
        found = self.absent[number] or Difference(MISSING, offset, offset, number)
        if self.absent[number] is None:
            self._locate(found, offset)
        if self.parted is None and not side.compacted:
            # Should the cleaner's signs still come, it is none after all.
            self.parted, self.doubted = offset, number
            self._behind(1 - number, 1, row.timestamp)
        self.absent[number] = found
        found.last = offset
        found.records += 1
        self.run_of = None

    def _settle(self) -> None:
        """What seemed to be missing was the cleaner's work, it turns out."""
        if self.doubted is not None and self.sides[self.doubted].compacted:
            self.parted = self.doubted = None
            self.behind = (Behind(), Behind())

    def _holes(self) -> None:
        """Both damaged at one place: alike, or not."""
        left, right = self.sides
        one, other = left.hole, right.hole
        if one is None or other is None or self.judged == (one, other):
            return
        self.judged = (one, other)
        first = max(one.first, other.first)
        lasts = [hole.last for hole in (one, other) if hole.last is not None]
        last = min(lasts, default=first)
        if one.is_as(other):
            self._sum(DAMAGED_ALIKE, None, one.first, last)
        elif one.first == other.first and one.damages and other.damages:
            found = self._part(DAMAGE, None, first)
            found.last = max(found.last, last)
            found.left, found.right = one.damages[0].place, other.damages[0].place
            found.reason = one.damages[0].reason
        else:
            self._sum(UNKNOWN, None, first, last)

    def _at_damage(self, found: Difference, number: int, hole: Hole) -> None:
        if found.records > 1 or not hole.damages:
            return
        found.reason = hole.damages[0].reason
        if number:
            found.right = hole.damages[0].place
        else:
            found.left = hole.damages[0].place

    def _part(self, kind: str, lacking: int | None, offset: int, fields: tuple[str, ...] = ()) -> Difference:
        """One more offset at which they part."""
        run = self.run_of
        if run is None or (run.kind, run.lacking) != (kind, lacking):
            run = Difference(kind, offset, offset, lacking)
            self._locate(run, offset)
            if len(self.runs) < MOST:
                self.runs.append(run)
            else:
                self.more += 1
            self.run_of = run
        run.last = offset
        run.records += 1
        run.fields = tuple(dict.fromkeys((*run.fields, *fields)))
        if kind == RECORDS:
            self.doubted = None
        if kind == RECORDS and self.parted is None:
            self.parted = offset
            for number, side in enumerate(self.sides):
                if side.row is not None:
                    self._behind(number, 1, side.row.timestamp)
        return run

    def _locate(self, found: Difference, offset: int) -> None:
        left, right = (side.place if side.batch is not None else None for side in self.sides)
        found.left, found.right = left, right
        if len(self.standing) < MOST:
            self.standing.setdefault(offset, (self._standing(0, offset), self._standing(1, offset)))

    def _standing(self, number: int, offset: int) -> Standing | None:
        side = self.sides[number]
        batch = side.batch
        if batch is None or not (batch.baseOffset or 0) <= offset <= batch.lastOffset:
            return None
        count, epoch = batch.recordCount, batch.partitionLeaderEpoch
        return Standing(side.place, batch.baseOffset or 0, batch.lastOffset, count, epoch, batch.maxTimestamp)

    def _sum(
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
        found = self.sums.get((kind, lacking))
        if found is None:
            found = self.sums[(kind, lacking)] = Difference(kind, first, last, lacking)
            left, right = (side.place if side.batch is not None else None for side in self.sides)
            found.left, found.right = left, right
        found.last = max(found.last, last)
        found.records += records
        found.batches += batches
        if fields and found.fields != fields:
            found.fields = tuple(dict.fromkeys((*found.fields, *fields)))

    def _behind(self, number: int, records: int, timestamp: int | None) -> None:
        self.behind[number].add(records, timestamp)

    # -- the end

    def _finished(self) -> Comparison:
        for number, found in enumerate(self.absent):
            if found is not None:
                side = self.sides[number]
                if side.compacted:
                    found.kind, found.reason = CLEANED, side.sign
                self.runs.append(found)
        differences = sorted([*self.runs, *self.sums.values()], key=lambda each: each.first)
        relation, shorter = self._relation(differences)
        left, right = self.sides
        return Comparison(
            relation, shorter, differences, self.more, left, right, self.standing, self.behind, self.alike
        )

    def _relation(self, differences: list[Difference]) -> tuple[str | None, int | None]:
        if any(each.parts for each in differences):
            return DIVERGENT, None
        if any(each.kind in (UNREAD, UNKNOWN) for each in differences):
            return None, None
        left, right = self.sides
        starts, ends = [left.start or 0, right.start or 0], [left.end, right.end]
        if max(starts) > min(ends) or (max(starts) == min(ends) and all(a < b for a, b in zip(starts, ends))):
            return None, None
        goes_on = [side.hole is not None for side in self.sides]  # in bytes that say nothing
        if ends[0] == ends[1] and goes_on[0] == goes_on[1]:
            return SAME, None
        return PREFIX, int(ends[1] < ends[0] or (ends[0] == ends[1] and goes_on[0]))


def _same_bytes(one: Batch, other: Batch) -> bool:
    """Whether all bytes but the leader epoch of v2 are the same."""
    from_, step = (16 if one.magic == 2 else 8), 1 << 20
    for start in range(from_, one.size, step):
        mine, theirs = (b"".join(batch.chunks(start, min(step, one.size - start))) for batch in (one, other))
        if mine != theirs:
            return False
    return True


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _cut(row: Row) -> Row:
    key, value = (None if data is None else bytes(data[:SHOWN]) for data in (row.key, row.value))
    return row._replace(key=key, value=value, headers=(row.headers[0], row.headers[1][:SHOWN]))
