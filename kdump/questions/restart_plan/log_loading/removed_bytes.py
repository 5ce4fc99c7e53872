"""Counts batches and records in the bytes that startup removes from the log, including valid batches after damage,
which kdump's own reader finds."""

from __future__ import annotations

from functools import partial

from kdump.format.batch_header import BatchHeader
from kdump.format.errors import BATCH_LENGTH_INVALID
from kdump.io.run import Limits
from kdump.kafka.file_log_input_stream import read_batches
from kdump.kafka.log_segment import LogSegment
from kdump.log.batch_validity import impossible_count, is_valid
from kdump.log.legacy_records import read_wrapper
from kdump.log.region import TORN, Batch, BatchRun, LegacyRecordBatch, Region
from kdump.log.region_reader import regions
from kdump.log.segment_summary import summarize_headers
from kdump.log.walk import RegionObserver, observe
from kdump.questions.restart_plan.answer import DELETED, RemovedBytes


def removed_bytes(
    segment: LogSegment,
    position: int,
    kind: str,
    reason: str,
    whole: int,
    limits: Limits,
    after: int | None = None,
) -> RemovedBytes:
    """Count what `segment`, a file of `whole` bytes, contains from byte `position` to its end. `after`: as of
    `regions`. Raises SourceError."""
    removed = RemovedBytes(kind, segment.target.path, position, whole - position, reason=reason)
    counter = _Counter(removed)
    with segment.window() as window:
        source = partial(regions, window, name_offset=segment.base, start=position, limits=limits, after=after)
        observe(source, [counter])
    is_unfinished = counter.torn and not (removed.batches or removed.damagedBatches)
    removed.reason = reason or ("an incomplete batch" if is_unfinished else "bytes that belong to no batch")
    return removed


class _Counter(RegionObserver):
    """Counts what is removed. `torn`: bytes of incomplete batches."""

    def __init__(self, removed: RemovedBytes) -> None:
        self.removed = removed
        self.torn = 0

    def region(self, region: Region) -> None:
        removed = self.removed
        if isinstance(region, BatchRun):
            batches = region.run
            removed.add(batches.batches, batches.records, region.size, batches.first_offset, batches.last_offset)
        elif isinstance(region, Batch):
            if isinstance(region, LegacyRecordBatch):
                read_wrapper(region)
            first = region.lastOffset if region.baseOffset is None else region.baseOffset
            if is_valid(region) and not region.problems:
                records = region.possible_records if impossible_count(region) is None else None
                removed.add(1, records, region.size, first, region.lastOffset)
            else:
                removed.damagedBatches += 1
                removed.damagedRecords += region.possible_records
                removed.span(first, region.lastOffset)
        elif region.kind == TORN:
            self.torn += region.size
            self._torn(region)
        elif region.code == BATCH_LENGTH_INVALID:
            removed.damagedBatches += 1

    def _torn(self, region: Region) -> None:
        """Count the records of an incomplete batch by its header, as far as it can have as many."""
        header, removed = region.claimed, self.removed
        if not isinstance(header, BatchHeader) or header.recordCount != header.possible_records:
            removed.tornRecords = None
        else:
            removed.tornRecords = header.recordCount
            removed.tornOffset, removed.tornLastOffset = header.baseOffset, header.lastOffset


def bytes_of_deleted_segment(segment: LogSegment, size: int, reason: str) -> RemovedBytes:
    """Count what the `size` bytes left of a deleted segment contain, by batch headers alone. Raises SourceError."""
    removed = RemovedBytes(DELETED, segment.target.path, segment.first, size, reason=reason)
    with segment.window() as window:
        if segment.first or size < (window.source.size or 0):
            # Recovery has accepted these batches, so they follow each other without damage.
            for head in read_batches(window, segment.first, segment.first + size):
                header = head.header
                records = header.recordCount if header and header.recordCount == header.possible_records else None
                removed.add(1, records, head.size, head.baseOffset, head.lastOffset)
        else:
            headers = summarize_headers(segment.target, window)
            removed.batches, removed.records = headers.batches, None if headers.uncounted else headers.records
            removed.soundBytes = size - headers.torn - headers.junk - headers.padding
            if headers.first is not None and headers.last is not None:
                removed.span(headers.first, headers.last)
    return removed
