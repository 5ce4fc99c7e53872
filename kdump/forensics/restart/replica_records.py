"""Counts the records of a partition directory between two offsets, by batch headers."""

from __future__ import annotations

from itertools import pairwise

from kdump.check.options import Options
from kdump.log.errors import SourceError
from kdump.log.partition_directory import partition
from kdump.log.partition_reader import PartitionReader
from kdump.log.paths import Target
from kdump.log.region import Batch
from kdump.log.segment_summary import summarize_headers

MOST_OFFSETS = 10_000_000
"""Maximum number of offsets in which records are counted: a terabyte of headers takes minutes."""


class RecordCounter:
    """Counts records, each offset range once."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._known: dict[tuple[str, int, int], int | None] = {}

    def count(self, path: str, first: int, end: int) -> int | None:
        """Return the number of records at the offsets first..end-1; None if it is unknown."""
        if end - first > MOST_OFFSETS:
            return None
        key = path, first, end
        if key not in self._known:
            try:
                self._known[key] = self._count(path, first, end)
            except (SourceError, OSError):
                self._known[key] = None
        return self._known[key]

    def _count(self, path: str, first: int, end: int) -> int | None:
        segments = [segment.log for segment in partition(path).segments if segment.log is not None]
        bases = [each.name_offset or 0 for each in segments]
        total = 0
        for target, (base, following) in zip(segments, pairwise([*bases, end])):
            if max(base, following) <= first and target is not segments[-1]:
                continue
            if base >= end:
                break
            inside = base >= first and following <= end and target is not segments[-1]
            found = self._whole(target) if inside else self._some(target, first, end)
            if found is None:
                return None
            total += found
        return total

    def _whole(self, target: Target) -> int | None:
        window = self.options.open(target)
        try:
            totals = summarize_headers(target, window)
        finally:
            window.source.close()
        return None if totals.uncounted else totals.records

    def _some(self, target: Target, first: int, end: int) -> int | None:
        total = 0
        for region in PartitionReader(self.options.open, self.options.limits).segment(target):
            if isinstance(region, Batch) and first <= region.lastOffset < end:
                if region.possible_records is None:
                    return None
                total += region.possible_records
        return total
