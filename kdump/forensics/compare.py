"""Two copies of a partition, held against each other: batch by batch, and record by record where batches differ.

What may differ between two copies that are right: where the log begins (retention) and ends, the boundaries of segments
and of batches, codec and format, the leader epoch of the header (which no checksum covers), and what the cleaner has
removed. What two copies that are right never do is to say something else about one offset.
"""

from __future__ import annotations

from collections.abc import Callable

from kdump.check.options import Options
from kdump.forensics.collect import Collected
from kdump.forensics.copies import Copy
from kdump.forensics.cursor import Cursor
from kdump.forensics.differences import LEADER_EPOCH, Comparison
from kdump.log.legacy import last_record_offset
from kdump.log.region import Batch


def compare(left: Copy, right: Copy, options: Options, met: Callable[[int], None] = lambda count: None) -> Comparison:
    """Reads both, once, side by side."""
    return _Pair(Cursor(left, options, met), Cursor(right, options, met)).run()


class _Pair:
    """The walk over both. Differences are told to `found`."""

    def __init__(self, left: Cursor, right: Cursor) -> None:
        self.sides = (left, right)
        self.found = Collected(self.sides)
        self.unlike: tuple[object, object] | None = None

    def run(self) -> Comparison:
        left, right = self.sides
        while not (left.ended or right.ended):
            if not left.consumed and not right.consumed:
                self.found.holes()
                self.found.settle()
                if self._stretches() or self._batches():
                    continue
            self._rows()
        if not left.consumed and not right.consumed:
            self.found.holes()
        for number in (0, 1):
            while not self.sides[number].ended:
                self._alone(number)
        return self.found.finished()

    # -- a step

    def _stretches(self) -> bool:
        """Many batches at once, where all bytes are the same."""
        left, right = self.sides
        one, other = left.stretch, right.stretch
        if one is None or other is None or self.found.parted is not None or self.unlike == (one, other):
            return False
        size = min(left.stop - left.at, right.stop - right.at)
        # Of two views every byte would be compared by itself; bytes know a quicker way.
        if not one.buffer.startswith(other.buffer[right.at : right.at + size], left.at):
            self.unlike = (one, other)
            return False
        before = left.records_seen
        left.skip_stretch(size)
        right.skip_stretch(size)
        self.found.same(left.records_seen - before)
        return True

    def _batches(self) -> bool:
        """One batch of each, where their bytes are the same but for the leader epoch."""
        left, right = self.sides
        one, other = left.batch, right.batch
        assert one is not None
        assert other is not None
        if one.baseOffset != other.baseOffset or one.size != other.size or one.magic != other.magic:
            return False
        if last_record_offset(one) != last_record_offset(other) or not _same_bytes(one, other):
            return False
        if one.partitionLeaderEpoch != other.partitionLeaderEpoch:
            self.found.sum(LEADER_EPOCH, None, one.baseOffset or 0, last_record_offset(one), batches=1)
        count = one.recordCount or 0
        if self.found.parted is not None:
            for number in (0, 1):
                self.found.went_on(number, count, one.maxTimestamp)
        self.found.same(count)
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
            self.found.lacks(1, mine)
            left.take()
        elif theirs.offset < mine.offset:
            self.found.lacks(0, theirs)
            right.take()
        else:
            self.found.both(mine, theirs)
            left.take()
            right.take()

    def _at_end_of(self, number: int) -> None:
        """The batch at hand of one side has no more records, or none at all: what the other has up to its last offset
        it has not."""
        side, other = self.sides[number], self.sides[1 - number]
        batch, row = side.batch, other.row
        assert batch is not None
        if row is not None and row.offset <= last_record_offset(batch) and not batch.problems:
            self.found.lacks(number, row)
            other.take()
        elif row is None and other.batch is not None and last_record_offset(other.batch) < last_record_offset(batch):
            self._batch_over(other)
        else:
            self._batch_over(side)

    def _alone(self, number: int) -> None:
        """What only one side still goes on to: a batch, or a record where the other may yet have to do with it."""
        side, other = self.sides[number], self.sides[1 - number]
        batch = side.batch
        assert batch is not None
        if other.hole is None and not side.consumed and (batch.baseOffset or 0) >= other.end:
            if self.found.parted is not None:
                self.found.went_on(number, batch.recordCount or 0, batch.maxTimestamp)
            side.advance()
            return
        row = side.row
        if row is None:
            self._batch_over(side)
            return
        if row.offset < other.end or other.hole is not None:
            self.found.lacks(1 - number, row)
        elif self.found.parted is not None:
            self.found.went_on(number, 1, row.timestamp)
        side.take()

    def _batch_over(self, side: Cursor) -> None:
        batch = side.batch
        assert batch is not None
        if batch.problems:
            problem = batch.problems[0]
            side.note(f"{side.place.file}: the batch at {batch.position} cannot be decoded: {problem.reason}")
        side.advance()


def _same_bytes(one: Batch, other: Batch) -> bool:
    """Whether all bytes but the leader epoch of v2 are the same."""
    from_, step = (16 if one.magic == 2 else 8), 1 << 20
    for start in range(from_, one.size, step):
        mine, theirs = (b"".join(batch.chunks(start, min(step, one.size - start))) for batch in (one, other))
        if mine != theirs:
            return False
    return True
