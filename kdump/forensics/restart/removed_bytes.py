"""Counts batches and records in the bytes that startup removes from the log, including valid batches after damage,
which kdump's own reader finds."""

from __future__ import annotations

from kdump.forensics.restart.plan_values import RemovedBytes
from kdump.kafka.file_log_input_stream import read_batches
from kdump.kafka.log_segment import LogSegment
from kdump.log.batch_validity import impossible_count, is_intact
from kdump.log.legacy_records import read_wrapper
from kdump.log.region import TORN, Batch, BatchRun, LegacyRecordBatch, Limits
from kdump.log.region_reader import CHECKED, regions
from kdump.log.segment_summary import summarize_headers


class RemovedCount:
    """Counts of valid batches (`batches`) and of batches whose checksum or length is invalid (`damaged`)."""

    def __init__(self) -> None:
        self.batches = self.damaged = self.damaged_records = self.valid_bytes = 0
        self.records: int | None = 0
        self.first: int | None = None
        self.last: int | None = None
        self.torn = self.padding = 0

    def add(self, batches: int, records: int | None, size: int, first: int, last: int) -> None:
        self.batches += batches
        self.records = None if self.records is None or records is None else self.records + records
        self.valid_bytes += size
        self.span(first, last)

    def span(self, first: int, last: int) -> None:
        if first >= 0 and last >= first:
            self.first = first if self.first is None else min(self.first, first)
            self.last = last if self.last is None else max(self.last, last)

    def cut(self, kind: str, file: str, position: int, size: int, reason: str) -> RemovedBytes:
        return RemovedBytes(
            kind,
            file,
            position,
            size,
            self.first,
            self.last,
            self.batches,
            self.records,
            self.valid_bytes,
            self.damaged,
            self.damaged_records,
            reason,
        )


def removed_bytes(
    segment: LogSegment, position: int, kind: str, reason: str, whole: int, limits: Limits
) -> RemovedBytes:
    """Count what `segment`, a file of `whole` bytes, contains from byte `position` to its end. Raises SourceError."""
    found = RemovedCount()
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
                if is_intact(region):
                    records = region.possible_records if impossible_count(region) is None else None
                    found.add(1, records, region.size, first, region.lastOffset)
                else:
                    found.damaged += 1
                    found.damaged_records += region.possible_records
                    found.span(first, region.lastOffset)
            elif region.kind == TORN:
                found.torn += region.size
            elif region.kind == "padding":
                found.padding += region.size
            elif region.code == "batch-length-invalid":
                found.damaged += 1  # a batch with an invalid length
    unfinished = found.torn and not (found.batches or found.damaged)
    if unfinished and not reason:
        reason = "an incomplete batch"
    return found.cut(kind, segment.target.path, position, whole - position, reason or "bytes that belong to no batch")


def bytes_of_deleted_segment(segment: LogSegment, size: int, kind: str, reason: str) -> RemovedBytes:
    """Count what the `size` bytes left of a deleted segment contain, by batch headers alone. Raises SourceError."""
    found = RemovedCount()
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
            found.valid_bytes = size - headers.torn - headers.junk - headers.padding
            if headers.first is not None and headers.last is not None:
                found.span(headers.first, headers.last)
    return found.cut(kind, segment.target.path, segment.first, size, reason)
