"""Surveys all files of a partition in which a valid batch was found out of order, before anything of it is written.

Of a file whose batches are in order, only the offset ranges are kept; it is then read as usual. The valid batches of
any other file are indexed (batch_index.py), and read in order of offsets (OrderedReader). No checksum covers a base
offset: the survey also decides whether a batch is misplaced because it was moved, or because that field is damaged.

Its base offset is used as it is if another valid batch has the offset before its first or after its last. If none has,
or if others have its own offsets, or if one flipped bit explains it, and it exactly fills the gap between its neighbors
in the file, its base offset is corrected; at the end of the log, if one flipped bit explains it and others have its own
offsets. It is left out and reported if only one flipped bit puts it into that gap, or if it is too far away for one
segment. A batch with damaged bytes on both sides is left out too, unless it also exists elsewhere: it may be part of a
record's value."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from kdump.format.errors import DecodeError
from kdump.io.errors import SourceError
from kdump.log.batch_validity import cleaner_trace
from kdump.log.header_candidate import REACH
from kdump.log.region import Batch, DefaultRecordBatch
from kdump.questions.salvage.byte_outcomes import CONTRADICTS, LOST, UNREAD
from kdump.questions.salvage.source.batch_index import ALONE, FIXED, RESCUED, BatchIndex, IndexedBatch
from kdump.questions.salvage.source.file_parts import Disordered, LostBytes, LostOffsets
from kdump.questions.salvage.source.salvage_reader import CHANGED, MISFIT, SalvageCandidate, SalvageReader
from kdump.questions.salvage.source.source_file import with_fields, without_sign

BITS = 63
"""Bits of an offset without its sign."""
HIGHEST = (1 << BITS) - 1
NESTED = "it is between damaged bytes, and its offset is out of order: it may be part of a record's value"
MAX_REREAD_BATCHES = 100
"""Maximum number of batches of one file for whose base offset other files are read again."""


class OrderedRanges:
    """The offsets of a file whose batches are in order, as ranges without gaps: 16 bytes per range."""

    def __init__(self) -> None:
        self.firsts, self.lasts = array("q"), array("q")

    def add(self, base: int, last: int) -> None:
        if self.lasts and base == self.lasts[-1] + 1:
            self.lasts[-1] = last
        else:
            self.firsts.append(base)
            self.lasts.append(last)

    def contains_any(self, first: int, last: int) -> bool:
        """Return True if it has any of the offsets first..last (inclusive)."""
        index = bisect_right(self.firsts, last) - 1
        return index >= 0 and self.lasts[index] >= first


class SurveyedFile(NamedTuple):
    """A surveyed file: an index of its `batches` if they are out of order, otherwise its offsets, in `gaps`."""

    reader: SalvageReader
    gaps: OrderedRanges
    batches: BatchIndex | None


class StrayBatchPlacement:
    """Decides about all misplaced batches of one file. `files`: all surveyed files."""

    def __init__(self, of: SurveyedFile, index: BatchIndex, files: list[SurveyedFile], losses: LostOffsets) -> None:
        place = of.reader.place
        self.reader, self.index = of.reader, index
        self.files = files
        self.kin = [
            file for file in files if (file.reader.place.copy, file.reader.tier) == (place.copy, of.reader.tier)
        ]
        """The files of the same copy; only live segments, or only others, as this file is."""
        self.losses = losses
        self.looks = 0
        self.mended: list[tuple[int, int]] = []
        """Numbers of the batches to correct, with the base offset that each should have."""

    def run(self) -> None:
        left_out = [number for number in self.index.misplaced if self._place(number)]
        corrected = {number for number, _ in self.mended}
        for number in self.index.misplaced:
            if number not in corrected and (doubted := self._flip_after(number)) is not None:
                self.losses.add_doubtful(*doubted)
        for number in left_out:
            self.index.leave_out(number)
        for number, base in self.mended:
            self.index.mend(number, base)
        if left_out or self.mended:
            self.index.arranged()

    def _place(self, number: int) -> bool:
        """Return True if the batch is to be left out; add it to `mended` if its base offset is to be corrected."""
        index, entry = self.index, self.index.entry(number)
        after = bisect_right(index.chain, number)
        expected = index.lasts[index.chain[after - 1]] + 1 if after else index.name
        follows = index.bases[index.chain[after]] if after < len(index.chain) else index.beyond
        if index.marks[number] & ALONE and not self._is_double(number, entry):
            self._leave_out(entry, NESTED)
            return True
        if expected is None or index.marks[number] & FIXED:
            return False
        gap = None if follows is None else follows - expected
        span = entry.last - entry.base + 1
        in_place = self._has(entry.base, entry.last)
        is_adjacent = any(self._has_offsets(number, offset, offset) for offset in (entry.base - 1, entry.last + 1))
        is_flip = _is_one_bit(entry.base, expected, gap, span)
        if is_adjacent and not in_place and not is_flip:
            return False
        touches = self._touches(number, after)
        is_below = entry.last < (index.name or 0) and not self._has_offsets(number, 0, entry.last)
        fits = touches and (gap == span or (gap is None and is_flip and (in_place or is_below)))
        fits = fits and self._is_free(number, expected, span)
        is_far = abs(entry.base - expected) >= REACH
        if not (fits or (not in_place and (is_flip or is_far))) or self._is_double(number, entry):
            return False
        if fits and self._flip_after(number) is not None and self._leaves_gap(number + 1):
            return False
        if fits:
            self.mended.append((number, expected))
            return False
        self._leave_out(entry, MISFIT.format(entry.base))
        if gap is not None and gap > 0:
            self.losses.add(expected, expected + gap - 1)
        return True

    def _flip_after(self, number: int) -> tuple[int, int] | None:
        """Return the offsets of the batch after a misplaced one if it may have the damaged base offset instead: one
        flipped bit puts it after that batch. Nothing decides, so that the offsets in the file are used."""
        index, next_number = self.index, number + 1
        after = bisect_right(index.chain, number)
        if after == len(index.chain) or index.chain[after] != next_number or index.marks[next_number] & FIXED:
            return None
        expected = index.lasts[number] + 1
        follows = index.bases[index.chain[after + 1]] if after + 1 < len(index.chain) else index.beyond
        before = index.lasts[index.chain[after - 1]] if after else (index.name or 0) - 1
        entry, gap = index.entry(next_number), None if follows is None else follows - expected
        span = entry.last - entry.base + 1
        is_possible = before < index.bases[number] and _is_one_bit(entry.base, expected, gap, span)
        return (expected, expected + span - 1) if is_possible else None

    def _leaves_gap(self, number: int) -> bool:
        """Return True if offsets are missing between a batch of the chain and the next one."""
        after = bisect_right(self.index.chain, number)
        follows = self.index.bases[self.index.chain[after]] if after < len(self.index.chain) else self.index.beyond
        return follows is not None and follows != self.index.lasts[number] + 1

    def _leave_out(self, entry: IndexedBatch, reason: str) -> None:
        self.losses.add_doubtful(entry.base, entry.last)
        lost = LostBytes(
            CONTRADICTS, entry.position, entry.size, "offset-not-monotonic", reason, entry.base, entry.last
        )
        self.reader.on_lost(self.reader, lost)

    def _touches(self, number: int, following: int) -> bool:
        """Return True if its neighbors in the chain, before it and at `following`, are adjacent to it in the file."""
        index = self.index
        before, after = number - 1, number + 1
        start, end = index.positions[number], index.positions[number] + index.sizes[number]
        if following:
            first = index.chain[following - 1] == before and index.positions[before] + index.sizes[before] == start
        else:
            first = start == 0
        if following < len(index.chain):
            return first and index.chain[following] == after and index.positions[after] == end
        return first and end == index.end

    def _is_free(self, number: int, first: int, span: int) -> bool:
        return not self._has_offsets(number, first, first + span - 1)

    def _has(self, first: int, last: int) -> bool:
        """Return True if a batch of this copy that is in order has any of the offsets first..last."""
        return any(_in_order(file, first, last) for file in self.kin)

    def _has_offsets(self, number: int, first: int, last: int) -> bool:
        """Return True if any other batch of this copy has any of the offsets first..last."""
        if self._has(first, last):
            return True
        return any(
            file.batches is not self.index or other != number
            for file in self.kin
            if file.batches is not None
            for other in file.batches.holders(first, last, misplaced=True)
        )

    def _is_double(self, number: int, entry: IndexedBatch) -> bool:
        """Return True if the same batch exists elsewhere, which confirms its base offset, or after MAX_REREAD_BATCHES
        reads."""
        for file in self.files:
            if file.batches is not None:
                for other, batch in _holders(file.batches, entry.base, entry.last):
                    if (file.batches is not self.index or other != number) and _same(batch, entry):
                        return True
            elif file.gaps.contains_any(entry.base, entry.last):
                self.looks += 1
                if self.looks > MAX_REREAD_BATCHES or _has_it(file.reader, entry):
                    return True
        return False


def _in_order(file: SurveyedFile, first: int, last: int) -> bool:
    if file.batches is None:
        return file.gaps.contains_any(first, last)
    return next(file.batches.holders(first, last, misplaced=False), None) is not None


def _holders(index: BatchIndex, first: int, last: int) -> Iterator[tuple[int, IndexedBatch]]:
    for misplaced in (False, True):
        for number in index.holders(first, last, misplaced=misplaced):
            yield number, index.entry(number)


def _same(one: IndexedBatch, other: IndexedBatch) -> bool:
    return (one.base, one.last, one.crc) == (other.base, other.last, other.crc)


def _has_it(reader: SalvageReader, entry: IndexedBatch) -> bool:
    """Return True if a file whose batches are in order has the batch."""
    earlier = SalvageReader(reader.place, reader.known, reader.options, lambda of, lost: None)
    try:
        earlier.begin()
        while earlier.head is not None and earlier.head.last < entry.base:
            earlier.advance()
        head = earlier.head
        return head is not None and (head.base, head.last, head.batch.crc) == (entry.base, entry.last, entry.crc)
    except Disordered:
        return True  # the file has changed meanwhile
    finally:
        earlier.close()


def _is_one_bit(base: int, expected: int, gap: int | None, span: int) -> bool:
    """Return True if `base` with one bit flipped puts `span` offsets into the gap of `gap` offsets from `expected` on.
    If `gap` is None, the gap has no end, and only `expected` fits."""
    flipped = (base ^ (1 << bit) for bit in range(BITS))
    if gap is None:
        return expected in flipped
    return any(expected <= other and other + span <= expected + gap for other in flipped)


class SurveyReader(SalvageReader):
    """Reads a file, and accepts every valid batch with the offsets in its header."""

    surveyed = True

    def _fit(self, batch: Batch, base: int, last: int) -> tuple[int, str]:
        return base, ""

    def _right_epoch(self, batch: Batch, last: int) -> int | None:
        return None

    def _has_room(self, first: int, last: int, end: int) -> bool:
        name = self.place.target.name_offset
        return 0 <= first <= last and (name is None or abs(first - name) < REACH)


def survey(readers: Iterable[SalvageReader], losses: LostOffsets) -> list[SalvageReader]:
    """Return the readers that read the files for the output: one per file that is in order, at most two per other."""
    files = [_look(reader, losses) for reader in readers]
    made: list[SalvageReader] = []
    for file in files:
        if file.batches is None:
            made.append(file.reader)
            continue
        StrayBatchPlacement(file, file.batches, files, losses).run()
        ordered = [OrderedReader(file.reader, file.batches, misplaced=misplaced) for misplaced in (False, True)]
        made += [one for one in ordered if file.batches.first(misplaced=one.misplaced) is not None]
    return made


def _look(reader: SalvageReader, losses: LostOffsets) -> SurveyedFile:
    """Survey a file, which is read once if its batches are in order, and twice if they are not."""
    gaps = OrderedRanges()
    counted = 0

    def more(count: int) -> None:
        nonlocal counted
        counted += count
        reader.options.more(count)

    probe = SalvageReader(reader.place, reader.known, replace(reader.options, more=more), lambda reader, lost: None)
    try:
        probe.begin()
        if probe.head is not None and (reader.start < 0 or probe.head.base < reader.start):
            reader.start = probe.head.base
        while probe.head is not None:
            gaps.add(probe.head.base, probe.head.last)
            probe.advance()
    except Disordered:
        reader.surveyed = True
        return SurveyedFile(reader, OrderedRanges(), _indexed(reader, losses, counted))
    finally:
        probe.close()
    return SurveyedFile(reader, gaps, None)


def _indexed(reader: SalvageReader, losses: LostOffsets, counted: int) -> BatchIndex:
    """Return the index of a file's batches, and report what is lost of the file. Its first `counted` bytes have been
    reported as progress."""
    index = BatchIndex(reader.place.target.name_offset, reader.place.beyond)
    pending = False  # something with unknown offsets was lost since the last batch
    borders = 0  # end of the last bytes that belong to no valid batch

    def lost(of: SalvageReader, lost_bytes: LostBytes) -> None:
        nonlocal pending, borders
        reader.on_lost(of, lost_bytes)
        if index and index.positions[-1] == borders and index.end_of(-1) == lost_bytes.position and index.positions[-1]:
            index.marks[-1] |= ALONE
        borders = lost_bytes.position + (lost_bytes.size or 0)
        if lost_bytes.fate in LOST:
            if lost_bytes.offset is not None and lost_bytes.lastOffset is not None:
                losses.add(lost_bytes.offset, lost_bytes.lastOffset)
            else:
                pending = True

    def more(count: int) -> None:
        nonlocal counted
        again = min(count, counted)
        counted -= again
        reader.options.more(count - again)

    surveyor = SurveyReader(reader.place, reader.known, replace(reader.options, more=more), lost, reader.rescue)
    expected = reader.place.target.name_offset
    try:
        surveyor.begin()
        while surveyor.head is not None:
            head = surveyor.head
            if pending and expected != head.base:
                losses.unknown = True
            pending, expected = False, head.last + 1
            marks = (
                RESCUED | FIXED
                if head.recovered is not None
                else 0
                if isinstance(head.batch, DefaultRecordBatch)
                else FIXED
            )
            index.add(head.position, head.size, head.base, head.last, head.batch.crc, marks)
            surveyor.advance()
        if pending and expected != reader.place.beyond:
            losses.unknown = True
    finally:
        surveyor.close()
    reader.notes += surveyor.notes
    reader.compacted = surveyor.compacted
    index.end = surveyor.position
    index.arrange()
    return index


AHEAD = 64 * 1024
"""Bytes to read at once if batches may be anywhere in the file."""


class OrderedReader(SalvageReader):
    """Reads the chain of a file, or its misplaced batches (batch_index.py). The survey has already reported what is
    lost of it; what changes after that is reported here."""

    def __init__(self, of: SalvageReader, index: BatchIndex, *, misplaced: bool) -> None:
        super().__init__(of.place, of.known, of.options, of.on_lost, of.rescue)
        self.index, self.misplaced = index, misplaced
        self.compacted = of.compacted
        self.start = index.first(misplaced=misplaced) or 0

    def _heads(self) -> Iterator[SalvageCandidate]:
        numbers = self.index.misplaced if self.misplaced else self.index.chain
        try:
            self.file.open(AHEAD if self.misplaced else None)
            for number in numbers:
                head = self._read(number)
                if head is not None:
                    self.last, self.epoch = head.last, head.epoch if head.epoch >= 0 else self.epoch
                    yield head
            self._first_size(self.file.window.source)
        except SourceError as error:
            self._unread(error, self.position, None)
        finally:
            self.close()

    def _read(self, number: int) -> SalvageCandidate | None:
        """Return a batch, read again; None, after reporting it, if it has changed since the survey."""
        indexed = self.index.entry(number)
        self.position = indexed.position
        try:
            batch: Any = self.file.batch_at(indexed.position, indexed.size)
        except DecodeError:
            self._has_changed(indexed)
            return None
        self.options.more(indexed.size)
        if self.index.marks[number] & RESCUED:
            made = self.rescue(batch) if self.rescue is not None else None
            if made is not None:
                code = self.file.check(self.file.batch_at(indexed.position, indexed.size)).code
                new, claimed, corrected = made
                mended = (code, *corrected)
                return SalvageCandidate(
                    self, new, indexed.base, indexed.last, mended, (), claimed, indexed.position, indexed.size
                )
        other = without_sign(batch, indexed.base)
        checked = self.file.check(other or batch)
        mended, stored = checked.mended, None
        if other is not None:
            mended, stored = (*mended, "baseOffset"), batch.baseOffset
        batch = checked.batch
        if indexed.is_mended and not checked.code and isinstance(batch, DefaultRecordBatch):
            batch, mended, stored = with_fields(batch, baseOffset=indexed.base), (*mended, "baseOffset"), checked.base
            checked = checked._replace(last=checked.last + indexed.base - checked.base, base=indexed.base)
        if checked.code or (checked.base, checked.last, batch.crc) != (indexed.base, indexed.last, indexed.crc):
            self._has_changed(indexed, checked.code)
            return None
        epoch = None if self.misplaced else self._right_epoch(batch, checked.last)
        if epoch is not None:
            batch, mended = with_fields(batch, partitionLeaderEpoch=epoch), (*mended, "partitionLeaderEpoch")
        self.compacted = self.compacted or bool(cleaner_trace(batch))
        where = indexed.position, indexed.size
        return SalvageCandidate(self, batch, checked.base, checked.last, mended, checked.odd, None, *where, stored)

    def _has_changed(self, indexed: IndexedBatch, code: str = "") -> None:
        """Report a batch that is not there any more."""
        where = indexed.position, indexed.size
        self.on_lost(self, LostBytes(UNREAD, *where, code, CHANGED, indexed.base, indexed.last))
