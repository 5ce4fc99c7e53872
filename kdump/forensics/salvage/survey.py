"""Surveys all files of a partition in which a valid batch was found out of order, before anything of it is written.

Of a file whose batches are in order, only the offset ranges are kept; it is then read as usual. The valid batches of
any other file are indexed (batch_index.py), and read in order of offsets (ordered_reader.py). No checksum covers a base
offset: the survey also decides whether a batch is astray because it was moved, or because that field is damaged
(stray_batches.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kdump.forensics.salvage.batch_index import ALONE, FIXED, RESCUED, BatchIndex
from kdump.forensics.salvage.byte_outcomes import LOST
from kdump.forensics.salvage.file_parts import Disordered, LostBytes
from kdump.forensics.salvage.lost_offsets import LostOffsets
from kdump.forensics.salvage.ordered_reader import OrderedReader
from kdump.forensics.salvage.salvage_reader import SalvageReader
from kdump.forensics.salvage.stray_batches import OrderedRanges, StrayBatchPlacement, SurveyedFile
from kdump.log.header_candidate import REACH
from kdump.log.region import Batch, DefaultRecordBatch


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


def survey(strands: Iterable[SalvageReader], losses: LostOffsets) -> list[SalvageReader]:
    """Return the strands that read the files for the output: one per file that is in order, at most two per other."""
    found = [_look(strand, losses) for strand in strands]
    made: list[SalvageReader] = []
    for each in found:
        if each.batches is None:
            made.append(each.strand)
            continue
        StrayBatchPlacement(each, each.batches, found, losses).run()
        lanes = [OrderedReader(each.strand, each.batches, astray=astray) for astray in (False, True)]
        made += [lane for lane in lanes if each.batches.first(astray=lane.astray) is not None]
    return made


def _look(strand: SalvageReader, losses: LostOffsets) -> SurveyedFile:
    """Survey a file, which is read once if its batches are in order, and twice if they are not."""
    gaps = OrderedRanges()
    counted = 0

    def more(count: int) -> None:
        nonlocal counted
        counted += count
        strand.options.more(count)

    probe = SalvageReader(strand.place, strand.known, replace(strand.options, more=more), lambda strand, lost: None)
    try:
        probe.begin()
        if probe.head is not None and (strand.start < 0 or probe.head.base < strand.start):
            strand.start = probe.head.base
        while probe.head is not None:
            gaps.add(probe.head.base, probe.head.last)
            probe.advance()
    except Disordered:
        strand.surveyed = True
        return SurveyedFile(strand, OrderedRanges(), _indexed(strand, losses, counted))
    finally:
        probe.close()
    return SurveyedFile(strand, gaps, None)


def _indexed(strand: SalvageReader, losses: LostOffsets, counted: int) -> BatchIndex:
    """Return the index of a file's batches, and report what is lost of the file. Its first `counted` bytes have been
    reported as progress."""
    index = BatchIndex(strand.place.target.name_offset, strand.place.beyond)
    pending = False  # something with unknown offsets was lost since the last batch
    borders = 0  # end of the last bytes that belong to no valid batch

    def lost(of: SalvageReader, lost_bytes: LostBytes) -> None:
        nonlocal pending, borders
        strand.on_lost(of, lost_bytes)
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
        strand.options.more(count - again)

    reader = SurveyReader(strand.place, strand.known, replace(strand.options, more=more), lost, strand.rescue)
    expected = strand.place.target.name_offset
    try:
        reader.begin()
        while reader.head is not None:
            head = reader.head
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
            reader.advance()
        if pending and expected != strand.place.beyond:
            losses.unknown = True
    finally:
        reader.close()
    strand.notes += reader.notes
    strand.compacted = reader.compacted
    index.end = reader.position
    index.arrange()
    return index
