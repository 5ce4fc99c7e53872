"""How far a running recovery is, and whether it is moving: from the files that it rewrites, and from what the kernel
counts of its threads, which also moves inside a segment.

Recovery begins to rewrite the indexes of a segment, and after its end writes a producer snapshot there. Nothing shows
from the files how far it is inside a segment: an .index keeps its old bytes until it is done.

Source: LogSegment.recover, LogLoader.recoverSegment.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from kdump.answer import BYTES, EPOCH_MS, Doc, PathText, answer
from kdump.io import file_system
from kdump.questions.restart_plan.recovery.recovery_threads import PROC, BrokerThreads, broker_threads
from kdump.questions.restart_plan.recovery.recovery_work import DirectoryWork, LogWork

FILES, COUNTERS, CPU_TIME = "files", "counters", "cpuTime"
"""What shows that a recovery moves: indexes and snapshots; bytes that its threads have read; their CPU time."""
FIRST_LOOK, WAITING, MOVING, STALLED, LOADED, ENDED = "firstLook", "waiting", "moving", "stalled", "loaded", "ended"
ENDS = (LOADED, ENDED)
IDLE = 30.0
"""Seconds without any movement after which it has stalled."""
EARLY = 5.0
"""Seconds after the beginning of a recovery in which nothing is known about its end."""
RECENT = 60.0
"""Seconds over which its speed is determined."""
BATCH_OVERHEAD = 17
"""Bytes that recovery reads twice of each batch (FileLogInputStream: the header up to magic)."""
HEADER_BYTES = 78
"""Bytes that it reads of a batch for producer state alone."""
LOG_WORTH, SEGMENT_WORTH = 256 << 10, 1 << 20
"""Bytes that take about as long as what is done once per log, and per segment."""


class CurrentLog(NamedTuple):
    """A log that is being recovered."""

    path: Annotated[PathText, Doc("partition directory")]
    number: Annotated[int, Doc("its place in the order in which the broker loads the directory's logs, from 1")]
    bytes: Annotated[int, Doc("bytes that are read for it", BYTES)]


@answer("recoveryProgress")
class RecoveryProgress(NamedTuple):
    """How far a recovery is at one time."""

    time: Annotated[int, Doc("when it was looked at", EPOCH_MS)]
    state: Annotated[
        str,
        Doc(
            "firstLook (nothing to compare with yet), waiting (no recovery has begun), moving, stalled (nothing has "
            "moved for 30 s), loaded (all logs are) or ended (the broker has exited before that)"
        ),
    ]
    process: Annotated[int | None, Doc("process ID of the broker; null if it cannot be determined")]
    logs: Annotated[int, Doc("number of logs that are loaded")]
    logsDone: Annotated[int, Doc("number of those that are done")]
    segments: Annotated[int, Doc("number of segments that are recovered")]
    segmentsDone: Annotated[int, Doc("number of those that are done")]
    bytes: Annotated[int, Doc("bytes that recovery reads in all", BYTES)]
    bytesDone: Annotated[int, Doc("bytes that it has read; without counters, those of segments that are done", BYTES)]
    bytesPerSecond: Annotated[int | None, Doc("its speed in the last minute; null at first", "bytes/s")]
    secondsLeft: Annotated[float | None, Doc("time left at this speed; null if nothing moves", "s")]
    idleSeconds: Annotated[float, Doc("for how long nothing has moved", "s")]
    evidence: Annotated[
        list[str],
        Doc("what shows it: files (indexes and snapshots), counters (bytes that its threads have read), cpuTime"),
    ]
    threads: Annotated[int, Doc("number of recovery threads")]
    threadsWaiting: Annotated[int, Doc("number of those that wait for the disk")]
    current: Annotated[list[CurrentLog], Doc("logs that are being recovered: each an object with path, number, bytes")]


@dataclass
class RecoveryFollower:
    """Looks at a recovery again and again. `process`: the broker's, None if unknown; `since`: its start, or when
    looking began, in epoch ns; `batch_size`: mean size of batches in bytes."""

    works: Sequence[DirectoryWork]
    since: int
    process: int | None = None
    batch_size: int = 1 << 14
    proc: str = PROC
    _files: RecoveredFiles | None = None
    _history: list[tuple[float, int, int]] = field(default_factory=list)
    _began: float = 0.0
    _moved: float | None = None
    _last: tuple[int, ...] | None = None
    _had_threads: bool = False
    _done: int = 0

    def look(self, now: float) -> RecoveryProgress:
        """Return how far it is at the time `now` (seconds since the epoch)."""
        if self._files is None or self._files.since != self.since:
            self._files = RecoveredFiles(self.works, self.since)
        files = self._files.look()
        threads = BrokerThreads(False) if self.process is None else broker_threads(self.process, self.proc)
        self._had_threads = self._had_threads or threads.recovering > 0
        logs = sum(len(work.logs) for work in self.works)
        segments = sum(len(log.bases) for work in self.works for log in work.logs)
        total = sum(work.bytes for work in self.works)
        is_loaded = self._is_loaded(files, threads, logs)
        if is_loaded:
            files = FilesDone(logs, segments, total, segments, [])
        self._done = done = max(self._done, files.bytes, self._bytes_read(threads, total))
        marks = (files.segments, files.started, threads.ticks if threads.read is None else threads.read)
        is_first = self._last is None
        if marks != self._last:
            if self._moved is not None and now - self._moved >= IDLE:
                self._history.clear()  # its speed is that since it moves again
            self._last = marks
            self._moved = None if is_first else now
            self._began = now if is_first else self._began
        idle = now - (self._began if self._moved is None else self._moved)
        speed, left = self._pace(now, done, files, logs, segments, total)
        return RecoveryProgress(
            int(now * 1000),
            self._state(threads, files, idle, is_first=is_first, is_loaded=is_loaded),
            self.process,
            logs,
            files.logs,
            segments,
            files.segments,
            total,
            done,
            speed,
            0.0 if is_loaded else left,
            round(idle, 1),
            self._evidence(threads),
            threads.recovering,
            threads.waiting,
            [CurrentLog(log.path, log.position + 1, log.bytes) for log in files.current],
        )

    def _is_loaded(self, files: FilesDone, threads: BrokerThreads, logs: int) -> bool:
        """Return True if all logs are loaded: what follows has begun, the recovery threads are gone, or, if no process
        is known, all files are done."""
        if self.process is None:
            return files.logs == logs and logs > 0 and files.segments > 0
        return threads.alive and not threads.recovering and (threads.has_loaded or self._had_threads)

    def _state(self, threads: BrokerThreads, files: FilesDone, idle: float, *, is_first: bool, is_loaded: bool) -> str:
        if is_loaded:
            return LOADED
        if self.process is not None and not threads.alive:
            return ENDED
        if not threads.recovering and not files.started:
            return WAITING
        if is_first or (self._moved is None and idle < IDLE):
            return FIRST_LOOK
        return STALLED if idle >= IDLE else MOVING

    def _evidence(self, threads: BrokerThreads) -> list[str]:
        assert self._files is not None
        found = [FILES] if self._files.states else []
        if threads.read is not None:
            return [*found, COUNTERS]
        return [*found, CPU_TIME] if threads.recovering else found

    def _bytes_read(self, threads: BrokerThreads, total: int) -> int:
        """Return how many of the bytes to be recovered the threads have read, from all bytes that they have read."""
        if threads.read is None:
            return 0
        logs = [log for work in self.works for log in work.logs]
        recovered = sum(log.bytes + log.againBytes for log in logs)
        headers = sum(log.producerBytes for log in logs) / self.batch_size * HEADER_BYTES
        expected = recovered * (1 + BATCH_OVERHEAD / self.batch_size) + headers
        return min(total, round(threads.read * total / expected)) if expected else 0

    def _pace(
        self, now: float, done: int, files: FilesDone, logs: int, segments: int, total: int
    ) -> tuple[int | None, float | None]:
        """Return the bytes per second recently, and the seconds left at this pace, which counts logs and segments,
        too."""
        worth = done + files.segments * SEGMENT_WORTH + files.logs * LOG_WORTH
        left = total + segments * SEGMENT_WORTH + logs * LOG_WORTH - worth
        self._history = [each for each in self._history if each[0] >= now - RECENT] + [(now, done, worth)]
        (begun, bytes_before, before), (ended, bytes_after, after) = self._history[0], self._history[-1]
        if ended <= begun:
            return None, None
        pace = (after - before) / (ended - begun)
        if not before and ended - begun < EARLY:
            pace = 0
        return int((bytes_after - bytes_before) / (ended - begun)), round(left / pace, 1) if pace > 0 else None


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
