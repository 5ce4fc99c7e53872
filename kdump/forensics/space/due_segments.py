"""Which segments retention deletes, from sizes and time indexes alone: `kdump retention` reads every batch header
instead, which takes too long on a full disk of a thousand partitions.

A broker takes the largest timestamp of a rolled segment from the last entry of its .timeindex, and from the file's
modification time without one (LogSegment.largestTimestamp). Of a segment that it recovers, it is that of the batches:
these are read only if the .timeindex is not as it was when the segment was rolled. The active segment is never counted:
a broker deletes it, too, once all its records are due, but not before it has rolled a new one.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from kdump.check.options import Options
from kdump.forensics.retention.configs import OPTION, Setting, Settings
from kdump.forensics.retention.deletion import NOW, LogFacts, due_now
from kdump.forensics.retention.observed_segments import ObservedSegment
from kdump.forensics.space.usage import PartitionUsage
from kdump.log import file_kinds
from kdump.log.errors import SourceError
from kdump.log.indexed_timestamp import complete_timestamp, indexed_timestamp
from kdump.log.paths import Target
from kdump.log.segment_summary import summarize_headers


class OpenedFiles:
    """Counts the files that were opened."""

    def __init__(self) -> None:
        self.count = 0


class TimedSegment(ObservedSegment):
    """A rolled segment whose largest timestamp is determined when it is first needed. `recovers`: whether startup
    re-reads it."""

    opened: OpenedFiles
    _stamp: int | None = None

    @property
    def timestamp(self) -> int:
        if self._stamp is None:
            self._stamp = self._newest()
        return self._stamp

    def _newest(self) -> int:
        self.opened.count += 1
        read = complete_timestamp if self.recovers else indexed_timestamp
        stamp = read(self.target) if self.size or not self.recovers else None
        if stamp is None and self.recovers:
            stamp = self._of_batches()
        return self.modified if stamp is None else stamp

    def _of_batches(self) -> int | None:
        """Return the largest timestamp of the batches; None if they have none, or cannot be read."""
        self.opened.count += 1
        try:
            window = Options().open(self.target)
            with closing(window.source):
                newest = summarize_headers(self.target, window).newest
        except SourceError:
            return None
        return newest if newest is not None and newest >= 0 else None


class RetainedLog:
    """A live partition, for retention. `high_watermark` is the checkpointed one, None if that is unknown or the log has
    one replica. `remote_end`: see LogFacts. `recovery_point`: offset from which on startup recovers the log; None if it
    does not. `cleaned`: the offset in cleaner-offset-checkpoint."""

    def __init__(
        self,
        usage: PartitionUsage,
        log_start: int | None,
        high_watermark: int | None,
        remote_end: int | None,
        now: int,
        opened: OpenedFiles,
        recovery_point: int | None = None,
        cleaned: int | None = None,
    ) -> None:
        self.usage = usage
        self.cleaned = cleaned
        self.moves = self.is_offline = False
        """Whether it is moved to another log directory, or its log directory is offline: retention and the cleaner wait
        for the end of that."""
        self.segments: list[ObservedSegment] = []
        place = usage.place
        for number, base in enumerate(usage.bases):
            path = f"{place.path}/{base:020}.log"
            target = Target(path, base, place.topic, place.partition, file_kinds.SEGMENT, place.source)
            segment = TimedSegment(target, base, usage.sizes[number], usage.times[number])
            segment.opened = opened
            after = usage.bases[number + 1] if number + 1 < len(usage.bases) else None
            is_above = recovery_point is not None and (after is None or after > recovery_point)
            segment.recovers = is_above or base in usage.unindexed
            self.segments.append(segment)
        active = self.segments[-1]
        active.is_read = False
        first = active.base if high_watermark is None else high_watermark
        self.facts = LogFacts(
            log_start=max(log_start or 0, self.segments[0].base),
            log_end=max(active.base, first),
            high_watermark=high_watermark,
            last_stable=None,
            now=now,
            remote_end=remote_end,
        )

    def due(self, settings: Settings, later: int = 0) -> int:
        """Return how many of the first segments the next check deletes, or one that runs `later` ms from now; the
        active segment is not counted."""
        cleans = settings["log.cleaner.enable"]
        if self.is_offline or (self.moves and cleans) or (settings.compacts and not cleans):
            return 0
        found = due_now(self.segments, self.facts._replace(now=self.facts.now + later), settings)
        count = sum(each.state == NOW for each in found)
        return min(count, len(self.segments) - 1)

    def allocated(self, first: int, stop: int) -> int:
        """Return what the segments first..stop - 1 occupy, with their indexes and producer snapshots."""
        return sum(self.usage.allocs[first:stop])

    def start_after(self, count: int) -> int:
        """Return the log start offset after the first `count` segments are deleted."""
        return max(self.facts.log_start, self.segments[count].base)


def with_value(settings: Settings, config: str, value: float) -> Settings:
    """Return the settings with another value of one config."""
    return replace(settings, values={**settings.values, config: Setting(value, OPTION)})
