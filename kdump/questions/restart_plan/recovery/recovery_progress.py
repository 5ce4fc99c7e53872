"""How far a running recovery is, and whether it is moving: from the files that it rewrites, and from what the kernel
counts of its threads, which also moves inside a segment: bytes read, CPU time, and whether they wait for the disk.

Recovery begins to rewrite the indexes of a segment, and after its end writes a producer snapshot there. Nothing shows
from the files how far it is inside a segment: an .index keeps its old bytes until it is done. A recovery thread lives
until the last log of all directories has been loaded, so its counters only grow. A thread's name in /proc is truncated
to 15 characters.

Source: LogSegment.recover, LogLoader.recoverSegment; proc(5); LogManager.LogRecoveryThreadFactory (since 3.3, KIP-831;
before, threads have the default names of a pool); LogManager.startupWithConfigOverrides, which starts the log cleaner
once logs are loaded."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from kdump.answer import BYTES, EPOCH_MS, Doc, PathText, answer
from kdump.io import file_system
from kdump.log.lock_holder import lock_holder
from kdump.questions.restart_plan.recovery.recovery_time import batch_size_of
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


RECOVERY, POOL, CLEANER = "log-recovery-", "pool-", "kafka-log-clean"
"""How the names of threads begin."""
PROC = "/proc"
WAITS_FOR_DISK = "D"
"""State of a thread in uninterruptible sleep."""
GONE = "ZX"
"""States of a thread that has ended, whose parent has not asked for its status yet."""


class BrokerThreads(NamedTuple):
    """`alive`: whether the process is there. `has_loaded`: whether it has a thread that is started after loading.
    `recovering`: number of recovery threads, `waiting`: those that wait for the disk. `read`: bytes that they have
    read; None if that cannot be read, because the process is another user's. `ticks`: CPU time that they have used, in
    clock ticks."""

    alive: bool
    has_loaded: bool = False
    recovering: int = 0
    waiting: int = 0
    read: int | None = None
    ticks: int = 0


class _Thread(NamedTuple):
    name: str
    state: str
    ticks: int


def broker_threads(process: int, proc: str = PROC) -> BrokerThreads:
    """Return what the recovery threads of a process have done."""
    tasks = os.path.join(proc, str(process), "task")
    try:
        numbers = file_system.listdir(tasks)
    except OSError:
        return BrokerThreads(False)
    threads = {number: thread for number in numbers if (thread := _thread(os.path.join(tasks, number))) is not None}
    has_loaded = any(thread.name.startswith(CLEANER) for thread in threads.values())
    chosen = {number: thread for number, thread in threads.items() if thread.name.startswith(RECOVERY)}
    if not chosen and not has_loaded:
        chosen = {number: thread for number, thread in threads.items() if thread.name.startswith(POOL)}
    counts = [_bytes_read(os.path.join(tasks, number)) for number in chosen]
    readable = [count for count in counts if count is not None]
    return BrokerThreads(
        bool(threads),
        has_loaded,
        len(chosen),
        sum(thread.state == WAITS_FOR_DISK for thread in chosen.values()),
        sum(readable) if readable else None,
        sum(thread.ticks for thread in chosen.values()),
    )


def _thread(path: str) -> _Thread | None:
    """Return a thread; None if it has ended. Its name is in parentheses and may contain any character."""
    try:
        with open(os.path.join(path, "stat"), errors="replace") as file:
            head, _, rest = file.read().rpartition(")")
        fields = rest.split()
        if fields[0] in GONE:
            return None
        return _Thread(head.partition("(")[2], fields[0], int(fields[11]) + int(fields[12]))
    except (OSError, ValueError, IndexError):
        return None


def _bytes_read(path: str) -> int | None:
    try:
        with open(os.path.join(path, "io")) as file:
            rows = dict(line.split(": ") for line in file.read().splitlines())
        return int(rows["rchar"])
    except (OSError, ValueError, KeyError):
        return None


def process_start(process: int) -> int | None:
    """Return when a process started, in epoch ns; None if it has ended."""
    try:
        with open(os.path.join(PROC, str(process), "stat"), errors="replace") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return int((time.time() - age) * 1e9)


class FilesDone(NamedTuple):
    """How much of a recovery is done. `started`: number of segments that have been begun; `current`: logs that have
    been begun and are not done."""

    logs: int
    segments: int
    bytes: int
    started: int
    current: list[CurrentLog]

    @property
    def worth(self) -> int:
        """What is done in bytes that take as long, for logs and segments count, too."""
        return self.bytes + self.segments * SEGMENT_WORTH + self.logs * LOG_WORTH


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
        done = self._files.look()
        threads = BrokerThreads(False) if self.process is None else broker_threads(self.process, self.proc)
        self._had_threads = self._had_threads or threads.recovering > 0
        logs = [log for work in self.works for log in work.logs]
        segments = sum(log.recovered for log in logs)
        whole = FilesDone(len(logs), segments, sum(log.bytes for log in logs), segments, [])
        is_loaded = self._is_loaded(done, threads, whole)
        if is_loaded:
            done = whole
        self._done = max(self._done, done.bytes, self._bytes_read(threads, logs, whole))
        done = done._replace(bytes=self._done)
        marks = (done.segments, done.started, threads.ticks if threads.read is None else threads.read)
        is_first = self._last is None
        if marks != self._last:
            if self._moved is not None and now - self._moved >= IDLE:
                self._history.clear()  # its speed is that since it moves again
            self._last = marks
            self._moved = None if is_first else now
            self._began = now if is_first else self._began
        idle = now - (self._began if self._moved is None else self._moved)
        speed, left = self._pace(now, done, whole)
        return RecoveryProgress(
            int(now * 1000),
            self._state(threads, done, idle, is_first=is_first, is_loaded=is_loaded),
            self.process,
            whole.logs,
            done.logs,
            whole.segments,
            done.segments,
            whole.bytes,
            done.bytes,
            speed,
            0.0 if is_loaded else left,
            round(idle, 1),
            self._evidence(threads),
            threads.recovering,
            threads.waiting,
            done.current,
        )

    def _is_loaded(self, done: FilesDone, threads: BrokerThreads, whole: FilesDone) -> bool:
        """Return True if all logs are loaded: what follows has begun, the recovery threads are gone, or, if no process
        is known, all files are done."""
        if self.process is None:
            return done.logs == whole.logs > 0 and done.segments > 0
        return threads.alive and not threads.recovering and (threads.has_loaded or self._had_threads)

    def _state(self, threads: BrokerThreads, done: FilesDone, idle: float, *, is_first: bool, is_loaded: bool) -> str:
        if is_loaded:
            return LOADED
        if self.process is not None and not threads.alive:
            return ENDED
        if not threads.recovering and not done.started:
            return WAITING
        if is_first or (self._moved is None and idle < IDLE):
            return FIRST_LOOK
        return STALLED if idle >= IDLE else MOVING

    def _evidence(self, threads: BrokerThreads) -> list[str]:
        files = [FILES] if self._files is not None and self._files.states else []
        if threads.read is not None:
            return [*files, COUNTERS]
        return [*files, CPU_TIME] if threads.recovering else files

    def _bytes_read(self, threads: BrokerThreads, logs: list[LogWork], whole: FilesDone) -> int:
        """Return how many of the bytes to be recovered the threads have read, from all bytes that they have read."""
        if threads.read is None:
            return 0
        recovered = sum(log.bytes + log.againBytes for log in logs)
        headers = sum(log.producerBytes for log in logs) / self.batch_size * HEADER_BYTES
        expected = recovered * (1 + BATCH_OVERHEAD / self.batch_size) + headers
        return min(whole.bytes, round(threads.read * whole.bytes / expected)) if expected else 0

    def _pace(self, now: float, done: FilesDone, whole: FilesDone) -> tuple[int | None, float | None]:
        """Return the bytes per second recently, and the seconds left at this pace."""
        recent = [look for look in self._history if look[0] >= now - RECENT]
        self._history = [*recent, (now, done.bytes, done.worth)]
        begun, bytes_before, before = self._history[0]
        elapsed = now - begun
        if elapsed <= 0:
            return None, None
        pace = (done.worth - before) / elapsed if before or elapsed >= EARLY else 0
        left = round((whole.worth - done.worth) / pace, 1) if pace > 0 else None
        return int((done.bytes - bytes_before) / elapsed), left


def follow_recovery(
    works: Sequence[DirectoryWork],
    interval: float,
    *,
    sleep: Callable[[float], None] = time.sleep,
    proc: str = PROC,
) -> Iterator[RecoveryProgress]:
    """Yield how far the recovery is, every `interval` seconds, until it has ended. The broker is the process that holds
    the lock of a log directory; without one, only what changes from now on is seen."""
    follower = RecoveryFollower(works, since=int(time.time() * 1e9), batch_size=batch_size_of(works), proc=proc)
    pause = min(interval, 1.0)
    while True:
        if follower.process is None:
            process = next(filter(None, (lock_holder(work.path) for work in works)), None)
            started = None if process is None else process_start(process)
            if process is not None and started is not None:
                follower.process, follower.since = process, started
        progress = follower.look(time.time())
        yield progress
        if progress.state in ENDS:
            return
        sleep(pause)
        pause = interval


AHEAD = 64
"""Logs after the last known one that are looked at each time; all of them now and then."""
SWEEP = 20
"""Looks after which all logs are looked at."""


@dataclass
class RecoveredFiles:
    """Looks at the files of log directories again and again. What was changed at `since` (epoch ns) or later has been
    recovered. `states`: by log, how many of its segments have been started, and are done."""

    works: Sequence[DirectoryWork]
    since: int
    states: dict[str, tuple[int, int]] = field(default_factory=dict)
    _looks: int = 0

    def look(self) -> FilesDone:
        """Return how much is done."""
        is_sweep = self._looks % SWEEP == 0
        self._looks += 1
        logs = segments = size = started = 0
        current = []
        for work in self.works:
            last = self._look_at(work, is_sweep=is_sweep)
            for place, log in enumerate(work.logs):
                begun, done = self.states.get(log.path, (0, 0))
                is_done = done == log.recovered if log.bases else place < last
                logs += is_done
                segments += done
                started += begun
                size += sum(log.sizes[:done])
                if begun and not is_done:
                    current.append(CurrentLog(log.path, place + 1, log.bytes))
        return FilesDone(logs, segments, size, started, current)

    def _look_at(self, work: DirectoryWork, *, is_sweep: bool) -> int:
        """Look at the logs that may have been begun; return the place of the last one that has."""
        last = max((place for place, log in enumerate(work.logs) if log.path in self.states), default=-1)
        for place, log in enumerate(work.logs):
            begun, done = self.states.get(log.path, (0, 0))
            if done < log.recovered and (is_sweep or begun or place <= last + AHEAD):
                state = self._state(log)
                if state[0]:
                    self.states[log.path] = state
                    last = max(last, place)
        return last

    def _state(self, log: LogWork) -> tuple[int, int]:
        """Return how many of a log's segments have been begun and done: they are recovered in order."""
        low, high = 0, log.recovered
        while low < high:
            middle = (low + high) // 2 if low else 0
            if self._is_new(f"{log.segment(middle)}.index"):
                low = middle + 1
            else:
                high = middle
        if not low:
            return 0, 0
        return low, low - (low < log.recovered or not self._has_new_snapshot(log))

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
        stems = [name[:-9] for name in names if name.endswith(".snapshot")]
        ends = [stem for stem in stems if stem.isdecimal() and int(stem) > log.bases[-1]]
        return any(self._is_new(os.path.join(log.path, f"{stem}.snapshot")) for stem in ends)
