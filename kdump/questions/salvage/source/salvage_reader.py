"""Reads one file: yields its valid batches in order and reports everything else with a reason.

A SalvageReader reads a file once, from its beginning, and assumes that offsets ascend with positions, as a broker
writes them. It raises Disordered for a valid batch that is out of order: the file is then surveyed, and read by two
OrderedReaders (survey.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kdump.check.options import Options
from kdump.check.partition_context import PartitionContext
from kdump.check.rules.bytes import first_offset
from kdump.format.batch_header import BatchHeader
from kdump.format.numbers import LONG_MAX
from kdump.io.directory_listing import length
from kdump.io.errors import SourceError, is_gone
from kdump.io.source import FileSource, Source
from kdump.log import region as regions_of
from kdump.log.batch_validity import OFFSETS, cleaner_trace
from kdump.log.header_candidate import REACH
from kdump.log.region import Batch, DefaultRecordBatch, LegacyRecordBatch, Region, last_record_offset
from kdump.log.torn_batch import torn_batch
from kdump.questions.salvage.byte_outcomes import CONTRADICTS, DAMAGED, PADDING, TORN, UNREAD
from kdump.questions.salvage.source.damaged_records import rescue_torn
from kdump.questions.salvage.source.file_parts import Disordered, InputFile, LostBytes
from kdump.questions.salvage.source.source_file import (
    CheckedBatch,
    Rescue,
    SourceFile,
    with_fields,
    without_sign,
)

MAX_OFFSET_DELTA = 1 << 24
"""Number of offsets in one batch from which a damaged header is not trusted."""
MISFIT = "its base offset {} does not fit between those of its neighbors"
CHANGED = "it changed during the run; copy the file elsewhere, or stop its broker, and try again"
READ_ONCE = "and standard input or a compressed file can be read only once; pass a plain file to sort its batches"

FATE_OF = {regions_of.TORN: TORN, regions_of.PADDING: PADDING, regions_of.JUNK: DAMAGED}


@dataclass(slots=True)
class SalvageCandidate:
    """A batch that can be written. `batch`: as it will be written, with the corrected fields in `mended`; readable
    until the reader advances. `odd`: codes of errors that remain. `recovered`: if the batch was recovered from a
    damaged one, the number of records that one seems to have had; `mended` is then the code of the damage, and what
    was corrected of an exact one. `stored`: the base offset in the file, if that was corrected."""

    reader: SalvageReader
    batch: Batch
    base: int
    last: int
    mended: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()
    recovered: int | None = None
    position: int = 0
    size: int = 0
    stored: int | None = None

    @property
    def epoch(self) -> int:
        epoch = self.batch.partitionLeaderEpoch
        return -1 if epoch is None else epoch

    @property
    def records(self) -> int:
        return self.batch.possible_records


class SalvageReader:
    """Reads one file. `head` is the current batch, None at the end. `on_lost` is called with everything else, in order
    of position, before the next head is available."""

    misplaced = False
    """Whether these are the batches that are out of order in their file."""
    surveyed = False
    """Whether a survey has reported what is lost of the file."""

    def __init__(
        self,
        place: InputFile,
        known: PartitionContext,
        options: Options,
        on_lost: Callable[[SalvageReader, LostBytes], None],
        rescue: Rescue | None = None,
    ) -> None:
        self.place, self.known, self.options, self.on_lost = place, known, options, on_lost
        self.rescue = rescue
        self.head: SalvageCandidate | None = None
        self.start = place.name
        """The first offset that it may have: from the file's name, or from a survey."""
        self.last: int | None = None
        self.epoch: int | None = None
        self.notes: list[str] = []
        self.position = 0
        self.compacted = False
        """Whether a batch shows that the log has been compacted."""
        self.file = SourceFile(place, known, options)
        self._stream: Iterator[SalvageCandidate] = iter(())

    @property
    def tier(self) -> int:
        """Preference: 0 for live segments of the reference copy; 1 for those of other copies, and for files with other
        names than a segment's; 2 for .deleted, .swap and .cleaned files."""
        return 2 if self.place.spare else min(1, self.place.copy + self.place.misnamed)

    def begin(self) -> None:
        self._stream = self._heads()
        self.advance()

    def advance(self) -> None:
        self.head = next(self._stream, None)

    def close(self) -> None:
        self._stream = iter(())
        self.file.close()

    # -- reading

    def _heads(self) -> Iterator[SalvageCandidate]:
        target = self.place.target
        try:
            self.file.open()
        except SourceError as error:
            self._unread(error, 0, length(target.path))
            return
        source = self.file.window.source
        try:
            for region in self.file.regions():
                head = self._judged(region)
                self.position = region.end
                self.options.more(region.size)
                if head is not None:
                    self.last, self.epoch = head.last, head.epoch if head.epoch >= 0 else self.epoch
                    yield head
            if source.error:
                self.on_lost(self, LostBytes(UNREAD, self.position, None, "", source.error))
            else:
                first = self._first_size(source)
                if first > self.position:
                    self.on_lost(self, LostBytes(UNREAD, self.position, first - self.position, "", CHANGED))
        except SourceError as error:
            size = source.size
            self._unread(error, self.position, None if size is None else size - self.position)
        finally:
            self.close()

    def _first_size(self, source: Source) -> int:
        """Return the size that a file had when it was first opened, with a note if it has another one now; 0 if it is
        not a plain file."""
        path = self.place.target.path
        first = self.place.sizes.get(path, 0) if isinstance(source, FileSource) else 0
        if isinstance(source, FileSource) and source.state()[0] != first:
            self.notes.append(f"{path}: changed while being read")
        return first

    def _unread(self, error: SourceError, position: int, size: int | None) -> None:
        """Report bytes that could not be read. A file that was deleted during the run is only noted, because nothing is
        lost."""
        if is_gone(error):
            self.notes.append(str(error))
        else:
            self.on_lost(self, LostBytes(UNREAD, position, size, "", str(error)))

    def _judged(self, region: Region) -> SalvageCandidate | None:
        """Return the region as a head; None, after reporting it, if it is not a valid batch."""
        if not isinstance(region, Batch):
            return self._region(region)
        other = without_sign(region, self.start if self.last is None else self.last + 1)
        checked = self.file.check(other or region)
        if checked.code:
            return self._damaged(checked)
        batch, base, last, mended, odd = checked[:5]
        right, reason = self._fit(batch, base, last)
        if (reason or right != base) and self.file.is_seekable:
            raise Disordered(self.place.target.path)
        if reason:
            lost = LostBytes(CONTRADICTS, region.position, region.size, "offset-not-monotonic", reason, base, last)
            self.on_lost(self, lost._replace(reason=f"{reason}, {READ_ONCE}", records=batch.possible_records))
            return None
        stored = None
        if right != base or other is not None:
            batch, stored = with_fields(batch, baseOffset=right), region.baseOffset
            mended += ("baseOffset",)
            base, last = right, right + last - base
        epoch = self._right_epoch(batch, last)
        if epoch is not None:
            batch = with_fields(batch, partitionLeaderEpoch=epoch)
            mended += ("partitionLeaderEpoch",)
        self.compacted = self.compacted or bool(cleaner_trace(batch))
        return SalvageCandidate(self, batch, base, last, mended, odd, None, region.position, region.size, stored)

    # -- fields that no checksum covers

    def _fit(self, batch: Batch, base: int, last: int) -> tuple[int, str]:
        """Return the correct base offset, or the reason why it is not known. A batch whose offset is wrong belongs
        between its predecessor and its successor, or the next segment, if it exactly fills the gap between them."""
        name = self.place.target.name_offset
        first = self.last is None
        expected = name if first else (self.last or 0) + 1
        successor = self.file.successor(batch.end)
        follows = successor.baseOffset if successor is not None else None
        if expected is None:
            return base, "" if base >= 0 else OFFSETS.reason
        beyond = self.place.beyond
        skips_offsets = base > expected and (
            (follows is not None and expected <= follows <= last) or (beyond is not None and expected < beyond <= last)
        )
        if base >= expected and not skips_offsets:
            return base, ""
        end = expected + last - base + 1
        at_end = not self.file.window.reaches(batch.end + 1)
        if isinstance(batch, DefaultRecordBatch) and (follows == end or (at_end and beyond == end)):
            return expected, ""
        if first and 0 <= base < expected and (follows == last + 1 or at_end):
            return base, ""  # the offset in the file's name is wrong
        return base, MISFIT.format(base)

    def _right_epoch(self, batch: Batch, last: int) -> int | None:
        """Return the correct leader epoch if the batches before and after agree that this batch's is wrong, because
        epochs never decrease; else None."""
        own = batch.partitionLeaderEpoch
        if (
            own is None
            or own == -1
            or self.epoch is None
            or own == self.epoch
            or not isinstance(batch, DefaultRecordBatch)
        ):
            return None
        successor = self.file.successor(batch.end)
        follows = successor is not None and successor.baseOffset > last
        return self.epoch if follows and successor.partitionLeaderEpoch == self.epoch else None  # type: ignore[union-attr]

    # -- losses

    def _region(self, region: Region) -> SalvageCandidate | None:
        unread = self.file.unread(region)
        fate = FATE_OF[region.kind]
        if fate == PADDING and self._hides(region):
            fate = DAMAGED
        code = "" if fate == PADDING else region.code
        if unread:
            self.on_lost(self, LostBytes(UNREAD, region.position, region.size, code, unread))
            return None
        torn = None if self.rescue is None else torn_batch(region, self.file.window, self.options.limits)
        made = None if torn is None else rescue_torn(torn)
        if made is not None:
            new, had = made
            base, end = first_offset(new), last_record_offset(new)
            if self._has_room(base, end, region.end):
                return SalvageCandidate(self, new, base, end, (code,), (), had, region.position, region.size)
        claimed = region.claimed
        first, last, records = None, None, 0
        if isinstance(claimed, BatchHeader):
            first, last, records = self._claims(claimed, region.end)
        self.on_lost(self, LostBytes(fate, region.position, region.size, code, region.reason, first, last, records))
        return None

    def _hides(self, zeros: Region) -> bool:
        """Return True if zeros are in place of batches: offsets are missing after them."""
        successor = self.file.successor(zeros.end)
        follows = self.place.beyond if successor is None else successor.baseOffset
        expected = self.place.target.name_offset if self.last is None else self.last + 1
        return follows is not None and expected is not None and expected < follows

    def _damaged(self, checked: CheckedBatch) -> SalvageCandidate | None:
        batch, code, reason = checked.batch, checked.code, checked.reason
        unread = self.file.unread(batch)
        made = self.rescue(batch) if self.rescue is not None else None
        if made is not None:
            new, claimed, corrected = made
            mended = (code, *corrected)
            base, last = first_offset(new), last_record_offset(new)
            if self._has_room(base, last, batch.end):
                return SalvageCandidate(self, new, base, last, mended, (), claimed, batch.position, batch.size)
        first, last_, records = None, None, 0
        is_possible = True
        if isinstance(batch, DefaultRecordBatch):
            first, last_, records = self._claims(batch.header, batch.end)
            if first is None and checked.decodes:
                first, records = batch.header.baseOffset, batch.possible_records
                last_ = first + batch.header.lastOffsetDelta  # a broker's sum would wrap around
                is_possible = 0 <= last_ - first < MAX_OFFSET_DELTA and self._has_room(first, last_, batch.end)
                last_ = last_ if last_ <= LONG_MAX else None
        if isinstance(batch, LegacyRecordBatch):
            records = batch.recordCount or 1
        fate = UNREAD if unread else DAMAGED
        self.on_lost(
            self,
            LostBytes(fate, batch.position, batch.size, code, unread or reason, first, last_, records, is_possible),
        )
        return None

    def _claims(self, header: BatchHeader, end: int) -> tuple[int | None, int | None, int]:
        """Return the first offset, the last offset and the record count of a damaged header if they are plausible; else
        None, None and 0. The batch ends at byte `end`."""
        first, delta, records = header.baseOffset, header.lastOffsetDelta, header.recordCount
        agrees = records == delta + 1 or (self.compacted and 0 <= records <= delta)
        agrees = agrees and records == header.possible_records
        if not agrees or not 0 <= delta < MAX_OFFSET_DELTA or not self._has_room(first, first + delta, end):
            return None, None, 0
        return first, first + delta, records

    def _has_room(self, first: int, last: int, end: int) -> bool:
        """Return True if offsets first..last fit between the batch before and what follows at byte `end`."""
        before = self.last if self.last is not None else (self.place.target.name_offset or 0) - 1
        successor = self.file.successor(end)
        limits_after = [
            offset for offset in (self.place.beyond, successor.baseOffset if successor else None) if offset is not None
        ]
        return (
            before < first <= last <= LONG_MAX
            and first - before <= REACH
            and all(last < offset for offset in limits_after)
        )
