"""The segments of a log as retention takes them, from names, sizes and time indexes alone.

A broker takes the largest timestamp of a rolled segment from the last entry of its .timeindex, and from the file's
modification time without one (LogSegment.largestTimestamp). Of a segment that it recovers, it is that of the batches:
these are read only if the .timeindex is not as it was when the segment was rolled. What a startup has read already is
not read again."""

from __future__ import annotations

from contextlib import closing

from kdump.check.options import Options
from kdump.io.errors import SourceError
from kdump.log.indexed_timestamp import complete_timestamp, indexed_timestamp
from kdump.log.paths import Target
from kdump.log.segment_summary import summarize_headers
from kdump.questions.retention.observed_segments import ObservedSegment


class DiskSegment(ObservedSegment):
    """A segment, whose largest timestamp is determined when it is first needed. `allocated`: what the .log, its indexes
    and its producer snapshot occupy."""

    def __init__(self, target: Target, size: int, modified: int, allocated: int = 0, stamp: int | None = None) -> None:
        """What only batches show is as the class has it: a broker has a hundred thousand segments, and an attribute
        that is set later costs each 400 bytes."""
        self.target, self.base = target, target.name_offset or 0
        self.size, self.modified, self.allocated = size, modified, allocated
        self.is_read, self.is_indexed = True, False
        self.recovers: bool | None = None
        self._stamp = stamp

    @property
    def timestamp(self) -> int:
        if self._stamp is None:
            self._stamp = self._newest()
        return self._stamp

    def _newest(self) -> int:
        read = complete_timestamp if self.recovers else indexed_timestamp
        stamp = read(self.target) if self.size or not self.recovers else None
        if stamp is None and self.recovers:
            stamp = self._of_batches()
        return self.modified if stamp is None else stamp

    def _of_batches(self) -> int | None:
        """Return the largest timestamp of the batches; None if they have none, or cannot be read."""
        try:
            window = Options().open(self.target)
            with closing(window.source):
                newest = summarize_headers(self.target, window).newest
        except SourceError:
            return None
        return newest if newest is not None and newest >= 0 else None
