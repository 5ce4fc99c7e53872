"""One copy of a partition, read as one log: its valid batches in order, and the damaged or unread ranges between
them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from kdump.check.options import Options
from kdump.core.column_numbers import BASE_OFFSET, BATCH_END, BATCH_START, LAST_OFFSET, LEADER_EPOCH, RECORD_COUNT
from kdump.core.header_columns import cleaned_batch, total, within
from kdump.format.batch_formats import LARGEST_HEADER, format_at
from kdump.io.errors import SourceError
from kdump.io.hash_key import HashKey
from kdump.io.run import Run
from kdump.io.source import BYTES, CHECKSUMS
from kdump.log.batch_validity import cleaner_trace, invalidity, records_unknown
from kdump.log.paths import FilePosition, Target
from kdump.log.reading import Reading
from kdump.log.region import JUNK, PADDING, TORN, Batch, BatchRun, Defect, Region, last_record_offset
from kdump.log.region_reader import Depth
from kdump.log.walk import PartitionReader
from kdump.log.withheld import withheld_segment
from kdump.questions.diff.comparable_records import ComparableRecord, has_hidden_offsets, rows
from kdump.questions.diff.copy_damage import EpochInBatches, OffsetGap, Undecoded, UnreadableSpan, damage_digest
from kdump.questions.find_copies import Copy

MAX_KEPT = 1000
"""Maximum number of damaged byte ranges, leader epochs and notes that are kept for a copy; more are only counted."""
MISPLACED = "its base offset does not fit between those of its neighbors"


class CopyReader:
    """Reads one copy of a partition. `batch` is the current valid batch, None at the end; `hole` is the unreadable
    offset range before it.

    Complete at the end: `start` and `end` of the log, `epochs` according to the batches, `damages`, `unread`, `notes`,
    and `sign`."""

    def __init__(self, copy: Copy, options: Options, hash_key: HashKey | None = None) -> None:
        self.copy, self.hash_key, self.options = copy, hash_key, options
        self.hole: OffsetGap | None = None
        self.run: BatchRun | None = None
        self.at = self.stop = 0
        self.last: int | None = None
        self.epochs: list[EpochInBatches] = []
        self.damages: list[UnreadableSpan] = []
        self.damaged = 0
        self.tail: UnreadableSpan | None = None
        """How the log ends, if in an incomplete batch or zeros, as after a crash."""
        self.undecoded: list[Undecoded] = []
        """Batches whose records have all been read, but whose record count is wrong."""
        self.unread: list[str] = []
        self.end_unread = False
        """Whether the last segment could not be read, so that the log end offset is unknown."""
        self.notes: list[str] = []
        self.sign = "its topic is compacted" if copy.known.is_cleaned else ""
        """The sign of compaction; empty if there is none."""
        self.lacks: set[str] = set()
        """What of the copy is withheld: RECORDS, CHECKSUMS."""
        self.records_seen = 0
        self.consumed = False
        """Whether rows of the current batch have been taken."""
        self._batch: Batch | None = None
        self._reading: Reading[Batch] | None = None
        self._rows: Iterator[ComparableRecord] | None = None
        self._row: ComparableRecord | None = None
        self._taken: int | None = None
        self._reader = PartitionReader(options.open, Run(options.limits, self._note_unread))
        self._pending: list[UnreadableSpan] = []
        self._pending_count = 0
        self._pending_unread = False
        self._first: int | None = None
        self._named: int | None = None
        self._end = 0
        """The offset after the last valid batch of the segment."""
        self._epoch: int | None = None
        self._misplaced: Batch | None = None
        self._stream = self._regions()
        self.ended = False
        self.advance()

    @property
    def target(self) -> Target | None:
        """The segment that is being read."""
        return self._reader.target

    # -- batches

    @property
    def batch(self) -> Batch | None:
        if self._batch is None and self.run is not None:
            self._batch = self.run.batch(self.at)
            self.sign = self.sign or cleaner_trace(self._batch)
        return self._batch

    @property
    def place(self) -> FilePosition:
        """Where the current batch is stored."""
        batch = self.batch
        assert batch is not None
        assert self.target is not None
        return FilePosition(self.target.path, batch.position, batch.size)

    def advance(self) -> None:
        """Move to the next valid batch."""
        batch = self.batch
        if batch is not None:
            self._passed(batch)
        self._to(self.at + batch.size if self.run is not None and batch is not None else self.stop)

    def skip_in_run(self, size: int) -> None:
        """Skip `size` bytes of the current batch run, which must be complete batches."""
        assert self.run is not None
        heads = self.run.headers
        starts = heads.column(BATCH_START)
        row, stop = bisect_left(starts, self.at), bisect_left(starts, self.at + size)
        if not self.sign and (cleaned := cleaned_batch(heads, row, stop)) < stop:
            self.sign = cleaner_trace(self.run.batch(starts[cleaned]))
        self.records_seen += total(heads, RECORD_COUNT, row, stop)
        self.last = heads.of(stop - 1, LAST_OFFSET)
        self._end = self.last + 1
        while row < stop:
            epoch = heads.of(row, LEADER_EPOCH)
            if epoch != self._epoch:
                assert self.target is not None
                start, end = starts[row] + heads.shift, heads.of(row, BATCH_END) + heads.shift
                place = FilePosition(self.target.path, start, end - start)
                self._learn_epoch(epoch, heads.of(row, BASE_OFFSET), place)
            row = within(heads, LEADER_EPOCH, row, stop, epoch, epoch)
        self._to(self.at + size)

    def _passed(self, batch: Batch) -> None:
        self.last = last_record_offset(batch)
        self._end = batch.lastOffset + 1
        if self.problems:
            assert self.target is not None
            base, last = batch.baseOffset or 0, self.last
            self.last = base - 1 if self._taken is None else self._taken
            damage = self._damage(batch, self.problems[0].reason)
            if self.last == last and len(self.undecoded) < MAX_KEPT:
                self.undecoded.append(Undecoded(base, last, damage))
        self.records_seen += batch.possible_records
        if batch.partitionLeaderEpoch is not None and batch.partitionLeaderEpoch != self._epoch:
            assert self.target is not None
            place = FilePosition(self.target.path, batch.position, batch.size)
            self._learn_epoch(batch.partitionLeaderEpoch, batch.baseOffset or 0, place)

    def _learn_epoch(self, epoch: int, base: int, place: FilePosition) -> None:
        self._epoch = epoch
        if epoch >= 0 and len(self.epochs) < MAX_KEPT:
            self.epochs.append(EpochInBatches(epoch, base, place))

    def _to(self, position: int) -> None:
        """Move to the batch at `position` in the run, or to the next one after the run."""
        self._batch = self._reading = self._rows = self._row = self.hole = self._taken = None
        self.consumed = False
        self.at = position
        if position >= self.stop:
            self._next()
        elif self._pending_count and self.batch is not None:
            self._found(self.batch.baseOffset or 0)

    def _next(self) -> None:
        """Move to the next valid batch of the stream, past everything that is not valid."""
        self.run = None
        self.at = self.stop = 0
        if self._misplaced is not None:
            self._damage(self._misplaced, MISPLACED)
            self._misplaced = None
        for region in self._stream:
            self.options.more(region.size)
            if isinstance(region, BatchRun):
                stop = self._valid_part(region)
                if stop > region.start:
                    self.run, self.at, self.stop = region, region.start, stop
                    self._found(region.run.first_offset)
                    return
                self._damage(region, MISPLACED)
                self._misplaced = None
            elif isinstance(region, Batch):
                reason = self._invalidity(region)
                if not reason:
                    self._batch = region
                    self.sign = self.sign or cleaner_trace(region)
                    self._found(region.baseOffset or 0)
                    return
                self._damage(region, reason)
            else:
                self._damage(region, region.reason)
        self._finish()

    def _found(self, base: int) -> None:
        self._first = base if self._first is None else self._first
        if self._pending_count or self._pending_unread:
            first = self._expected
            if first <= base - 1:
                self.hole = self._hole(first, base - 1)
            self._pending, self._pending_count, self._pending_unread = [], 0, False

    def _hole(self, first: int, last: int | None) -> OffsetGap:
        return OffsetGap(first, last, tuple(self._pending), self._pending_count, self._pending_unread)

    @property
    def _expected(self) -> int:
        """The next expected offset."""
        return (self.start or 0) if self.last is None else self.last + 1

    def _invalidity(self, batch: Batch) -> str:
        """Return why the batch is not valid, or cannot be compared; empty if it can."""
        invalid = invalidity(batch)
        if invalid is None:
            self._end = batch.lastOffset + 1
            invalid = records_unknown(batch)
        if invalid is not None:
            return invalid.reason
        base = batch.baseOffset or 0
        if self.last is not None and base <= self.last:
            return f"its base offset {base} is not above {self.last}, the offset before it"
        return MISPLACED if self._leaps(batch.end, self._expected, base, last_record_offset(batch)) else ""

    def _leaps(self, end: int, expected: int, base: int, last: int) -> bool:
        """Return True if the batch that ends at byte `end` skips `expected`, but the batch after it starts at one of
        the skipped offsets or within this batch: no checksum covers base offsets, and that of this batch is wrong."""
        if base <= expected or self._reader.window is None:
            return False
        source = self._reader.window.source
        withheld = withheld_segment(source)
        head = bytes(self._reader.window.peek(end, LARGEST_HEADER)) if withheld is None else withheld.header_at(end)
        following = format_at(head)
        if following is None or following.is_message:
            return False
        return expected <= int.from_bytes(head[:8], "big", signed=True) <= last

    def _valid_part(self, batch_run: BatchRun) -> int:
        """Return where the run ends in its buffer, without its last batch if that one skips offsets: no other batch of
        it can."""
        checked = batch_run.run
        before = self._expected - 1 if checked.batches == 1 else checked.before
        if not self._leaps(batch_run.end, before + 1, checked.last_offset + 1, checked.last_offset):
            return batch_run.stop
        for batch in batch_run.batches():
            if batch.end == batch_run.end and batch.header.baseOffset > before + 1:
                self._misplaced = batch
                return batch_run.start + batch.position - batch_run.position
        return batch_run.stop

    def note(self, text: str) -> None:
        """Add a note on the copy, up to MAX_KEPT."""
        if len(self.notes) < MAX_KEPT:
            self.notes.append(text)

    @property
    def has_begun(self) -> bool:
        """Whether the current batch is read record by record."""
        return self._rows is not None

    @property
    def is_hidden(self) -> bool:
        """Whether the records of the current batch are not in the bundle, and neither are their offsets."""
        return self._rows is None and self.batch is not None and has_hidden_offsets(self.batch)

    @property
    def next_offset(self) -> int:
        """The offset of the next record, or of the batch if none of it was taken; after the last, above all others."""
        if self.batch is None:
            return 1 << 63
        return self._row.offset if self._row is not None else self.batch.baseOffset or 0

    # -- rows

    @property
    def problems(self) -> Sequence[Defect]:
        """What decoding the current batch has found so far."""
        return () if self._reading is None else self._reading.problems

    @property
    def row(self) -> ComparableRecord | None:
        """The current record of the current batch; None after its last."""
        if self._rows is None:
            batch = self.batch
            if batch is None:
                return None
            self._reading = Reading(batch)
            self._rows = rows(self._reading, self.hash_key)
            self._row = next(self._rows, None)
        return self._row

    def next_record(self) -> None:
        """Move to the next record."""
        assert self._rows is not None
        assert self._row is not None
        self.consumed = True
        self._taken = self._row.offset
        self._row = next(self._rows, None)

    # -- regions

    def _regions(self) -> Iterator[Region]:
        for target in self.copy.segments:
            if target.name_offset is not None:
                self._named, self._end = target.name_offset, 0
            self.end_unread = False
            for region in self._reader.segment(target, Depth.CHECKSUMS):
                self._note_withheld()
                yield region
            if self._reader.grown:
                self.notes.append(f"{target.path}: changed while being read")

    def _note_withheld(self) -> None:
        """Note what of the segment is withheld."""
        assert self._reader.window is not None
        lacks = self._reader.window.source.lacks - {BYTES}
        if CHECKSUMS in lacks - self.lacks:
            self.note(f"{self.copy.path}: the bundle does not have the results of checksums; damage is unknown")
        self.lacks |= lacks

    def _note_unread(self, error: SourceError) -> None:
        self.end_unread = True
        self.unread.append(str(error))
        self._pending_unread = True

    def _damage(self, region: Region, reason: str) -> UnreadableSpan:
        assert self.target is not None
        kind = region.kind if region.kind in (TORN, JUNK, PADDING) else "batch"
        place = FilePosition(self.target.path, region.position, region.size)
        self.damaged += 1
        self._pending_count += 1
        span = UnreadableSpan(kind, place, reason, damage_digest(region, self._reader.window))
        if len(self._pending) < MAX_KEPT:
            self._pending.append(span)
        if len(self.damages) < MAX_KEPT:
            self.damages.append(span)
        return span

    def _finish(self) -> None:
        """Handle the end. A single torn or zero region there, as a crash, a copy or preallocation leaves it, is not
        damage."""
        self.ended = True
        pending = self._pending
        if self._pending_count == len(pending) == 1 and pending[0].kind in (TORN, PADDING) and not self._pending_unread:
            last = self.copy.segments[-1].path if self.copy.segments else ""
            if pending[0].place.file == last:
                self.tail = pending[0]
                self.damages.remove(pending[0])
                self.damaged -= 1
                return
        if self._pending_count or self._pending_unread:
            self.hole = self._hole(self._expected, None)

    # -- the ends

    @property
    def start(self) -> int | None:
        """The log start offset; None if it is unknown."""
        named = self.copy.segments[0].name_offset if self.copy.segments else None
        return self.copy.known.log_start_offset(named if named is not None else self._first)

    @property
    def end(self) -> int:
        """The log end offset: that after the last valid batch of the last segment, or its base offset; final once all
        has been read."""
        return max(self._end, self._named or 0)
