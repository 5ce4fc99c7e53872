"""How far a running recovery is, and whether it is moving: from the files that it rewrites, and from what the kernel
counts of its threads, which also moves inside a segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from kdump.answer import BYTES, EPOCH_MS, Doc, PathText, answer
from kdump.forensics.recovery.recovered_files import FilesDone, RecoveredFiles
from kdump.forensics.recovery.recovery_threads import PROC, BrokerThreads, broker_threads
from kdump.forensics.recovery.recovery_work import DirectoryWork

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
