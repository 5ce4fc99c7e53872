"""Counts the records of a partition directory between two offsets, by batch headers."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise

from kdump.check.options import Options
from kdump.core.column_numbers import LAST_OFFSET, RECORD_COUNT
from kdump.core.header_columns import total as sum_of
from kdump.log.errors import SourceError
from kdump.log.partition_directory import partition
from kdump.log.partition_reader import PartitionReader
from kdump.log.region import Batch, BatchRun
from kdump.log.region_reader import HEADERS
from kdump.log.run import Run

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
        reader = PartitionReader(self.options.open, Run(self.options.limits), run_mode=HEADERS)
        total = 0
        for target, (base, following) in zip(segments, pairwise([*bases, end])):
            if base >= end:
                break
            if max(base, following) <= first and target is not segments[-1]:
                continue
            for region in reader.segment(target):
                if isinstance(region, BatchRun):
                    lasts = region.headers.column(LAST_OFFSET)
                    inside = (bisect_left(lasts, offset) for offset in (first, end))
                    total += sum_of(region.headers, RECORD_COUNT, *inside)
                elif isinstance(region, Batch) and first <= region.lastOffset < end:
                    if region.recordCount != region.possible_records:
                        return None
                    total += region.possible_records
        return total
