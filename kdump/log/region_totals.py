"""Totals over the regions of a segment."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kdump.core.column_numbers import BASE_OFFSET, LAST_OFFSET
from kdump.core.header_columns import HeaderColumns, header_sums
from kdump.format.batch_header import DELETE_HORIZON, LOG_OVERHEAD, TIMESTAMP_TYPE
from kdump.format.codec_table import BY_NAME, codec_name
from kdump.log.batch_validity import has_valid_header, impossible_count, is_valid
from kdump.log.header_totals import HeaderTotals
from kdump.log.region import JUNK, PADDING, TORN, Batch, BatchRun, LegacyRecordBatch, Region
from kdump.log.walk import RegionObserver

NO_FIRST = TIMESTAMP_TYPE.mask | DELETE_HORIZON.mask
"""With one of these attributes, baseTimestamp is not a record's effective timestamp."""


def by_header(batch: Batch) -> int | None:
    """Return the offset after a batch by its header, damaged or not; None if a broker sees no complete batch there,
    because the length in the header is wrong."""
    return batch.lastOffset + 1 if batch.batchLength + LOG_OVERHEAD == batch.size else None


class RegionTotals(RegionObserver):
    """Adds up the regions of a segment, in order. `name_offset`: the offset in the file's name; `checksums`: whether a
    checksum that does not match is damage."""

    def __init__(self, name_offset: int | None, *, checksums: bool = True) -> None:
        self.name_offset, self.checksums = name_offset, checksums
        self.found = HeaderTotals()
        self.is_end_checked = True
        """Whether the checksum of the last valid batch was computed."""
        self.ends_in_run = False
        """Whether the last region is a batch run."""
        self._codecs = 0
        """A bit for each codec ID of the batches that were counted by their headers."""
        self._padding: Region | None = None
        """The region before, if it is padding."""

    def region(self, region: Region) -> None:
        totals = self.found
        self.ends_in_run = isinstance(region, BatchRun)
        if self._padding is not None:
            self._damaged(self._padding)
        totals.tail = ""
        if isinstance(region, BatchRun):
            self.headers(region.headers, region.batches)
            self.is_end_checked = region.checked
        elif isinstance(region, Batch):
            self._batch(region, is_valid(region) if self.checksums else has_valid_header(region))
        elif region.kind == PADDING:
            totals.padding += region.size
            totals.tail = PADDING
        elif region.kind == TORN:
            totals.torn += region.size
            totals.tail = TORN
        else:
            totals.junk += region.size
            self._damaged(region)
        self._padding = region if region.kind == PADDING else None

    def headers(self, heads: HeaderColumns, batches: Callable[[], Iterable[Batch]]) -> None:
        """Count valid v2 batches, by their columns if their offsets rise."""
        totals = self.found
        sums = header_sums(heads, -1 if totals.last is None else totals.last)
        if sums is None:
            for batch in batches():
                self._batch(batch, True)
            return
        totals.first = heads.of(0, BASE_OFFSET) if totals.first is None else totals.first
        totals.last, totals.end = heads.of(len(heads) - 1, LAST_OFFSET), None
        totals.batches += len(heads)
        totals.records = None if totals.records is None else totals.records + sums.records
        totals.times(sums.oldest, sums.newest)
        self._codecs |= sums.codecs

    def _batch(self, batch: Batch, valid: bool) -> None:
        totals = self.found
        if isinstance(batch, LegacyRecordBatch) and totals.first is None:
            from kdump.log.legacy_records import read_wrapper

            read_wrapper(batch)
        base = batch.lastOffset if batch.baseOffset is None else batch.baseOffset
        if not valid:
            counted = "" if batch.recordCount is None else f"a damaged batch of {batch.possible_records:,} records"
            self._damaged(batch, counted)
        elif totals.last is not None and base <= totals.last:
            self._damaged(batch, f"offsets decrease to {base}")
        elif impossible_count(batch) is not None:
            self._damaged(batch, f"recordCount {batch.recordCount}, which are not counted,")
        totals.uncounted += impossible_count(batch) is not None
        totals.batches += 1
        if totals.records is not None:
            totals.records = None if batch.recordCount is None else totals.records + batch.possible_records
        # Also that of a damaged batch: mostly, only headers are read.
        totals.first = base if totals.first is None else totals.first
        totals.end = None if valid else by_header(batch)
        if valid:
            totals.last = batch.lastOffset
            self.is_end_checked = True
        totals.used(batch.magic, batch.compression)
        newest = -1 if batch.maxTimestamp is None else batch.maxTimestamp
        stored = not (batch.attributes & NO_FIRST) and batch.recordCount and batch.baseTimestamp is not None
        totals.times(batch.baseTimestamp if stored and batch.baseTimestamp is not None else newest, newest)

    def _damaged(self, region: Region, damage_kind: str = "") -> None:
        if not self.found.damage:
            kind = damage_kind or (region.kind if region.kind in (JUNK, PADDING) else "a damaged batch")
            self.found.damage = f"{kind} at byte {region.position}"

    def finished(self) -> HeaderTotals:
        """Return the totals, with formats, codecs and damage completed."""
        totals = self.found
        for codec in range(self._codecs.bit_length()):
            if self._codecs >> codec & 1:
                totals.used(2, codec_name(codec))
        unknown = sorted(totals.codecs - BY_NAME.keys())
        if unknown and not totals.damage:
            totals.damage = f"compression {unknown[0]}"
        if totals.first is not None and self.name_offset is not None and totals.first < self.name_offset:
            totals.damage = totals.damage or f"offset {totals.first} is below the one in the file's name"
        return totals
