"""Counts batches and records in the bytes that startup removes from the log, including valid batches after damage,
which kdump's own reader finds."""

from __future__ import annotations

from kdump.io.run import Limits
from kdump.kafka.file_log_input_stream import read_batches
from kdump.kafka.log_segment import LogSegment
from kdump.log.batch_validity import impossible_count, is_valid
from kdump.log.legacy_records import read_wrapper
from kdump.log.region import TORN, Batch, BatchRun, LegacyRecordBatch
from kdump.log.region_reader import CHECKED, regions
from kdump.log.segment_summary import summarize_headers
from kdump.questions.restart_plan.answer import RemovedBytes


def removed_bytes(
    segment: LogSegment, position: int, kind: str, reason: str, whole: int, limits: Limits
) -> RemovedBytes:
    """Count what `segment`, a file of `whole` bytes, contains from byte `position` to its end. Raises SourceError."""
    found = RemovedBytes(kind, segment.target.path, position, whole - position, reason=reason)
    torn = 0
    with segment.window() as window:
        stream = regions(window, name_offset=segment.base, start=position, limits=limits, run_mode=CHECKED)
        for region in stream:
            if isinstance(region, BatchRun):
                run = region.run
                found.add(run.batches, run.records, region.size, run.first_offset, run.last_offset)
            elif isinstance(region, Batch):
                if isinstance(region, LegacyRecordBatch):
                    read_wrapper(region)
                first = region.lastOffset if region.baseOffset is None else region.baseOffset
                if is_valid(region):
                    records = region.possible_records if impossible_count(region) is None else None
                    found.add(1, records, region.size, first, region.lastOffset)
                else:
                    found.damagedBatches += 1
                    found.damagedRecords += region.possible_records
                    found.span(first, region.lastOffset)
            elif region.kind == TORN:
                torn += region.size
            elif region.code == "batch-length-invalid":
                found.damagedBatches += 1
    is_unfinished = torn and not (found.batches or found.damagedBatches)
    found.reason = reason or ("an incomplete batch" if is_unfinished else "bytes that belong to no batch")
    return found


def bytes_of_deleted_segment(segment: LogSegment, size: int, kind: str, reason: str) -> RemovedBytes:
    """Count what the `size` bytes left of a deleted segment contain, by batch headers alone. Raises SourceError."""
    found = RemovedBytes(kind, segment.target.path, segment.first, size, reason=reason)
    with segment.window() as window:
        if segment.first or size < (window.source.size or 0):
            # Recovery has accepted these batches, so they follow each other without damage.
            for head in read_batches(window, segment.first, segment.first + size):
                header = head.header
                records = header.recordCount if header and header.recordCount == header.possible_records else None
                found.add(1, records, head.size, head.baseOffset, head.lastOffset)
        else:
            headers = summarize_headers(segment.target, window)
            found.batches, found.records = headers.batches, None if headers.uncounted else headers.records
            found.soundBytes = size - headers.torn - headers.junk - headers.padding
            if headers.first is not None and headers.last is not None:
                found.span(headers.first, headers.last)
    return found
