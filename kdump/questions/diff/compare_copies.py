"""Compares two copies of a partition batch by batch, and record by record where batches differ.

Two correct copies may differ in their log start offset (retention) and log end offset, in segment and batch boundaries,
compression and format, in the leader epoch of batch headers (not covered by the checksum), and in what compaction has
removed. They never have different records at the same offset."""

from __future__ import annotations

from kdump.check.options import Options
from kdump.io.hash_key import HashKey
from kdump.io.source import CHECKSUMS
from kdump.log.region import Batch, last_record_offset
from kdump.questions.diff.copy_damage import header_bytes
from kdump.questions.diff.copy_reader import CopyReader
from kdump.questions.diff.difference_collector import DifferenceCollector
from kdump.questions.diff.differences import CLEANED, LEADER_EPOCH, Comparison
from kdump.questions.diff.lost_records import LostRecords, lost_records
from kdump.questions.find_copies import Copy


def compare(
    left: Copy, right: Copy, options: Options, hash_key: HashKey | None = None, *, asks_keys: bool = True
) -> Comparison:
    """Compare two copies, reading each once, in lockstep; if the log cleaner may have removed records, again to find
    those that it did not (lost_records). Calls `options.more` with the number of bytes read. `hash_key`: compare the
    hashes of records. Without `asks_keys`, all that the log cleaner may have removed counts as removed by it."""
    compared = _Pair(CopyReader(left, options, hash_key), CopyReader(right, options, hash_key)).run()
    cleaned = [difference.first for difference in compared.differences if difference.kind == CLEANED]
    if not cleaned or not asks_keys:
        return compared
    lost = lost_records(left, right, options, min(cleaned), (compared.left.unread, compared.right.unread))
    if isinstance(lost, str):
        compared.doubt_cleaned(lost)
    elif any(lost):
        readers = CopyReader(left, options, hash_key), CopyReader(right, options, hash_key)
        for reader, earlier in zip(readers, (compared.left, compared.right)):
            reader.sign = earlier.sign
        return _Pair(*readers, lost).run()
    return compared


class _Pair:
    """Reads both copies in lockstep. Differences are added to `found`."""

    def __init__(self, left: CopyReader, right: CopyReader, lost: LostRecords = ({}, {})) -> None:
        self.sides = (left, right)
        self.found = DifferenceCollector(self.sides, lost)
        self.unlike: tuple[object, object] | None = None

    def run(self) -> Comparison:
        left, right = self.sides
        while not (left.ended or right.ended):
            if not left.consumed and not right.consumed:
                self.found.holes()
                self.found.settle()
                if self._skip_equal_runs() or self._batches():
                    continue
            if (left.has_begun and right.has_begun) or not self._hidden_batches():
                self._rows()
        if not left.consumed and not right.consumed:
            self.found.holes()
        for number in (0, 1):
            while not self.sides[number].ended:
                self._alone(number)
        return self.found.finished()

    # -- a step

    def _skip_equal_runs(self) -> bool:
        """Skip many batches at once if all their bytes are equal. Return True if any were skipped."""
        left, right = self.sides
        one, other = left.run, right.run
        if one is None or other is None or self.found.diverged_at is not None or self.unlike == (one, other):
            return False
        if one.lacks_checksum or other.lacks_checksum:
            return False
        size = min(left.stop - left.at, right.stop - right.at)
        # Memoryviews are compared byte by byte, which is slow; bytes.startswith is faster.
        if not one.buffer.startswith(other.buffer[right.at : right.at + size], left.at):
            self.unlike = (one, other)
            return False
        before = left.records_seen
        left.skip_in_run(size)
        right.skip_in_run(size)
        self.found.same(left.records_seen - before)
        return True

    def _batches(self) -> bool:
        """Skip one batch of each copy if they differ at most in the leader epoch. Return True if they were skipped."""
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
        count = one.possible_records
        if self.found.diverged_at is not None:
            for number in (0, 1):
                self.found.add_tail(number, count, one.maxTimestamp)
        self.found.same(count)
        left.advance()
        right.advance()
        return True

    def _hidden_batches(self) -> bool:
        """Process a step if the current batch of a copy has hidden offsets: a record or batch before those of the other
        copy, or all batches that overlap. Return True if anything was processed."""
        if not any(side.is_hidden for side in self.sides):
            return False
        number = int(self.sides[1].next_offset < self.sides[0].next_offset)
        side, other = self.sides[number], self.sides[1 - number]
        batch = side.batch
        assert batch is not None
        if last_record_offset(batch) >= other.next_offset:
            self._overlapping(side.next_offset)
        elif side.is_hidden:
            base, last, count = batch.baseOffset or 0, last_record_offset(batch), batch.possible_records
            if self.found.diverged_at is not None:
                self.found.add_tail(number, count, batch.maxTimestamp)
            self.found.lacks_records(1 - number, base, last, count, batch.maxTimestamp)
            side.advance()
        elif side.row is None:
            self._batch_over(side)
        else:
            self.found.lacks(1 - number, side.row)
            side.next_record()
        return True

    def _overlapping(self, first: int) -> None:
        """Skip all batches that overlap, from offset `first` on."""
        last, records = first, [0, 0]
        self.found.not_compared(first, last, 0)
        more = True
        while more:
            more = False
            for number, side in enumerate(self.sides):
                while not side.ended and side.next_offset <= last:
                    batch = side.batch
                    assert batch is not None
                    last = max(last, last_record_offset(batch))
                    records[number] += batch.possible_records
                    if self.found.diverged_at is not None:
                        self.found.add_tail(number, batch.possible_records, batch.maxTimestamp)
                    side.advance()
                    more = True
        self.found.not_compared(first, last, max(records))

    def _rows(self) -> None:
        """Process one record of each copy, or of one of them."""
        left, right = self.sides
        mine, theirs = left.row, right.row
        if mine is None or theirs is None:
            self._at_end_of(0 if mine is None else 1)
            return
        if mine.offset < theirs.offset:
            self.found.lacks(1, mine)
            left.next_record()
        elif theirs.offset < mine.offset:
            self.found.lacks(0, theirs)
            right.next_record()
        else:
            self.found.both(mine, theirs)
            left.next_record()
            right.next_record()

    def _at_end_of(self, number: int) -> None:
        """Handle a side whose current batch has no more records, or none at all: it lacks the other side's records up
        to that batch's last offset."""
        side, other = self.sides[number], self.sides[1 - number]
        batch, row = side.batch, other.row
        assert batch is not None
        if row is not None and row.offset <= last_record_offset(batch) and not side.problems:
            self.found.lacks(number, row)
            other.next_record()
        elif row is None and other.batch is not None and last_record_offset(other.batch) < last_record_offset(batch):
            self._batch_over(other)
        else:
            self._batch_over(side)

    def _alone(self, number: int) -> None:
        """Process what follows on the only side that has not ended: a batch, or a single record if the other side may
        still be affected."""
        side, other = self.sides[number], self.sides[1 - number]
        batch = side.batch
        assert batch is not None
        if other.hole is None and not side.consumed and (batch.baseOffset or 0) >= other.end:
            if self.found.diverged_at is not None:
                self.found.add_tail(number, batch.possible_records, batch.maxTimestamp)
            side.advance()
            return
        if self._hidden_batches():
            return
        row = side.row
        if row is None:
            self._batch_over(side)
            return
        if row.offset < other.end or other.hole is not None:
            self.found.lacks(1 - number, row)
        elif self.found.diverged_at is not None:
            self.found.add_tail(number, 1, row.timestamp)
        side.next_record()

    def _batch_over(self, side: CopyReader) -> None:
        batch = side.batch
        assert batch is not None
        if side.problems:
            reason = side.problems[0].reason
            side.note(f"{side.place.file}: the batch at byte {batch.position} cannot be decoded: {reason}")
        side.advance()


def _same_bytes(one: Batch, other: Batch) -> bool:
    """Return True if all bytes are equal, apart from the base offset and, in v2, the length and the leader epoch; of
    batches whose records are not in a bundle, if all that the headers have is equal, with the checksum."""
    if one.lacks or other.lacks:
        unknown = CHECKSUMS in one.lacks or CHECKSUMS in other.lacks
        return not unknown and header_bytes(one) == header_bytes(other)
    from_, step = (8 if one.format.is_message else 16), 1 << 20
    for start in range(from_, one.size, step):
        mine, theirs = (b"".join(batch.chunks(start, min(step, one.size - start))) for batch in (one, other))
        if mine != theirs:
            return False
    return True
