"""Reads the batches of a surveyed file in the order of their offsets, wherever they are in the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kdump.forensics.salvage.batch_index import RESCUED, BatchIndex
from kdump.forensics.salvage.byte_outcomes import UNREAD
from kdump.forensics.salvage.file_parts import LostBytes
from kdump.forensics.salvage.salvage_reader import SalvageCandidate, SalvageReader
from kdump.forensics.salvage.source_file import CORRECTED_BIT, with_fields, without_sign
from kdump.log.batch_validity import cleaner_trace
from kdump.log.errors import SourceError
from kdump.log.region import DefaultRecordBatch

AHEAD = 64 * 1024
"""Bytes to read at once if batches may be anywhere in the file."""
CHANGED = "it changed during the run; copy the file elsewhere, or stop its broker, and try again"


class OrderedReader(SalvageReader):
    """Reads the chain of a file, or the batches that are astray (batch_index.py). The survey has already reported what
    is lost."""

    surveyed = True

    def __init__(self, of: SalvageReader, index: BatchIndex, *, astray: bool) -> None:
        super().__init__(of.place, of.known, of.options, of.on_lost, of.rescue)
        self.index = index
        self.astray = astray
        self.compacted = of.compacted
        self.start = index.first(astray=astray) or 0

    def _heads(self) -> Iterator[SalvageCandidate]:
        numbers = self.index.astray if self.astray else self.index.chain
        try:
            self.file.open(AHEAD if self.astray else None)
            for number in numbers:
                head = self._read(number)
                if head is not None:
                    self.last, self.epoch = head.last, head.epoch if head.epoch >= 0 else self.epoch
                    yield head
        except SourceError as error:
            self._unread(error, self.position, None)
        finally:
            self.close()

    def _read(self, number: int) -> SalvageCandidate | None:
        """Return a batch, read again; None, after reporting it, if it has changed since the survey."""
        found = self.index.entry(number)
        self.position = found.position
        batch: Any = self.file.batch_at(found.position, found.size)
        self.options.more(found.size)
        if self.index.marks[number] & RESCUED:
            made = self.rescue(batch) if self.rescue is not None else None
            if made is not None:
                code = self.file.check(self.file.batch_at(found.position, found.size)).code
                new, claimed, is_corrected = made
                marks = (code, CORRECTED_BIT) if is_corrected else (code,)
                return SalvageCandidate(
                    self, new, found.base, found.last, marks, (), claimed, found.position, found.size
                )
        other = without_sign(batch, found.base)
        checked = self.file.check(other or batch)
        mended, stored = checked.mended, None
        if other is not None:
            mended, stored = (*mended, "baseOffset"), batch.baseOffset
        batch = checked.batch
        if found.is_mended and not checked.code and isinstance(batch, DefaultRecordBatch):
            batch, mended, stored = with_fields(batch, baseOffset=found.base), (*mended, "baseOffset"), checked.base
            checked = checked._replace(last=checked.last + found.base - checked.base, base=found.base)
        if checked.code or (checked.base, checked.last, batch.crc) != (found.base, found.last, found.crc):
            lost = LostBytes(UNREAD, found.position, found.size, checked.code, CHANGED, found.base, found.last)
            self.on_lost(self, lost)
            return None
        epoch = None if self.astray else self._right_epoch(batch, checked.last)
        if epoch is not None:
            batch, mended = with_fields(batch, partitionLeaderEpoch=epoch), (*mended, "partitionLeaderEpoch")
        self.compacted = self.compacted or bool(cleaner_trace(batch))
        at = found.position, found.size
        return SalvageCandidate(self, batch, checked.base, checked.last, mended, checked.odd, None, *at, stored)
