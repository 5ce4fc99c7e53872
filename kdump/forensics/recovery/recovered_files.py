"""Which segments a running recovery has done, from the files that it rewrites.

Recovery begins to rewrite the indexes of a segment, and after its end writes a producer snapshot there. Nothing shows
from the files how far it is inside a segment: an .index keeps its old bytes until it is done.

Source: LogSegment.recover, LogLoader.recoverSegment.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kdump.forensics.recovery.recovery_work import DirectoryWork, LogWork
from kdump.log import file_system

AHEAD = 64
"""Logs after the last known one that are looked at each time; all of them now and then."""
SWEEP = 20
"""Looks after which all logs are looked at."""


class LogState(NamedTuple):
    """Numbers of recovered segments of a log that have been started, and that are done."""

    started: int
    done: int


class FilesDone(NamedTuple):
    """`current`: logs that have been begun and are not done. `started`: number of segments that have been begun."""

    logs: int
    segments: int
    bytes: int
    started: int
    current: list[LogWork]


@dataclass
class RecoveredFiles:
    """Looks at the files of log directories again and again. What was changed at `since` (epoch ns) or later has been
    recovered."""

    works: Sequence[DirectoryWork]
    since: int
    states: dict[str, LogState] = field(default_factory=dict)
    _looks: int = 0

    def look(self) -> FilesDone:
        """Return how much is done."""
        every = self._looks % SWEEP == 0
        self._looks += 1
        found = [self._directory(work, every=every) for work in self.works]
        return FilesDone(
            sum(each.logs for each in found),
            sum(each.segments for each in found),
            sum(each.bytes for each in found),
            sum(each.started for each in found),
            [log for each in found for log in each.current],
        )

    def _directory(self, work: DirectoryWork, *, every: bool) -> FilesDone:
        last = self._last(work)
        for log in work.logs:
            known = self.states.get(log.path)
            if known is not None and known.done == len(log.bases):
                continue
            if log.bases and (every or known is not None or log.position <= last + AHEAD):
                state = self._state(log)
                if state.started:
                    self.states[log.path] = state
                    last = max(last, log.position)
        last = self._last(work)
        logs = segments = size = started = 0
        current = []
        for log in work.logs:
            state = self.states.get(log.path, LogState(0, 0))
            is_done = state.done == len(log.bases) if log.bases else log.position < last
            logs += is_done
            segments += state.done
            started += state.started
            size += sum(log.sizes[: state.done])
            if state.started and not is_done:
                current.append(log)
        return FilesDone(logs, segments, size, started, current)

    def _last(self, work: DirectoryWork) -> int:
        """Return the place of the last log that has been begun."""
        return max((log.position for log in work.logs if log.path in self.states), default=-1)

    def _state(self, log: LogWork) -> LogState:
        """Return which of a log's segments have been begun and done: they are recovered in order."""
        low, high = 0, len(log.bases)
        while low < high:
            middle = (low + high) // 2 if low else 0
            if self._is_new(f"{log.segment(middle)}.index"):
                low = middle + 1
            else:
                high = middle
        if not low:
            return LogState(0, 0)
        is_last_done = low == len(log.bases) and self._has_new_snapshot(log)
        return LogState(low, low if is_last_done else low - 1)

    def _is_new(self, path: str) -> bool:
        try:
            return file_system.stat(path).st_mtime_ns >= self.since
        except OSError:
            return False

    def _has_new_snapshot(self, log: LogWork) -> bool:
        """Return True if there is a snapshot of the log's end, written after the last segment was recovered."""
        try:
            names = file_system.listdir(log.path)
        except OSError:
            return False
        last = log.bases[-1]
        ends = [
            name for name in names if name.endswith(".snapshot") and name[:-9].isdecimal() and int(name[:-9]) > last
        ]
        return any(self._is_new(os.path.join(log.path, name)) for name in ends)
