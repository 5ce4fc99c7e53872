"""Surveys all files of a partition in which a valid batch was found out of order, before anything of it is written.

Of a file whose batches are in order, only the offset ranges are kept; it is then read as usual. The valid batches of
any other file are indexed (batch_index.py), and read in order of offsets (OrderedReader). No checksum covers a base
offset: the survey also decides whether a batch is misplaced because it was moved, or because that field is damaged
(stray_batches.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from kdump.format.errors import DecodeError
from kdump.io.errors import SourceError
from kdump.log.batch_validity import cleaner_trace
from kdump.log.header_candidate import REACH
from kdump.log.region import Batch, DefaultRecordBatch
from kdump.questions.salvage.byte_outcomes import LOST, UNREAD
from kdump.questions.salvage.source.batch_index import ALONE, FIXED, RESCUED, BatchIndex, IndexedBatch
from kdump.questions.salvage.source.file_parts import Disordered, LostBytes, LostOffsets
from kdump.questions.salvage.source.salvage_reader import CHANGED, SalvageCandidate, SalvageReader
from kdump.questions.salvage.source.source_file import CORRECTED_BIT, with_fields, without_sign
from kdump.questions.salvage.source.stray_batches import OrderedRanges, StrayBatchPlacement, SurveyedFile


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
        self.index = index
        self.misplaced = misplaced
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
                new, claimed, is_corrected = made
                marks = (code, CORRECTED_BIT) if is_corrected else (code,)
                return SalvageCandidate(
                    self, new, indexed.base, indexed.last, marks, (), claimed, indexed.position, indexed.size
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
