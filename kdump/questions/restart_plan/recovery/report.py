"""Output of `kdump restart-plan --estimate` and `--follow` for people: how long a recovery takes, and in which order;
whether one is moving, how far it is, and when it ends."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

from kdump.format.count_text import count_text, first_of
from kdump.questions.restart_plan.recovery.read_speed import ASSUMED, GIVEN, MEASURED
from kdump.questions.restart_plan.recovery.recovery_progress import (
    COUNTERS,
    ENDED,
    ENDS,
    FIRST_LOOK,
    LOADED,
    MOVING,
    STALLED,
    WAITING,
    RecoveryProgress,
)
from kdump.questions.restart_plan.recovery.recovery_time import METADATA, PROPERTIES, RecoveryTime
from kdump.questions.restart_plan.recovery.recovery_work import LogWork
from kdump.render.amounts import duration_text, size_text
from kdump.render.escape import path_text, printable
from kdump.render.sink import Sink
from kdump.render.state_tables import write_answers
from kdump.render.stdout import Output

SHORT = 10
"""Seconds below which an estimate is not worth a number."""
LONGEST = 10
"""Number of logs that are listed; --full and JSON show all."""
SHARES = (10, 25, 50, 75, 90)
"""Percentages of the time for which it is stated how many logs are loaded."""


def rough_duration(seconds: float) -> str:
    """Format an estimate, with no more precision than it has: about 12 min."""
    return f"less than {SHORT} s" if seconds < SHORT else f"about {_rounded(seconds)}"


def _rounded(seconds: float) -> str:
    if seconds < 57.5:
        return f"{max(1, round(seconds) if seconds < SHORT else round(seconds / 5) * 5)} s"
    if seconds < 600:
        return duration_text(round(seconds / 10) * 10_000)
    if seconds < 7200:
        return f"{round(seconds / 60)} min"
    return duration_text(round(seconds / 600) * 600_000)


def estimate_text(estimate: RecoveryTime) -> str:
    """Return the estimate with its range: about 12 min (8 min to 17 min)."""
    if estimate.secondsMost < SHORT:
        return f"less than {SHORT} s"
    return f"about {_rounded(estimate.seconds)} ({_rounded(estimate.secondsLeast)} to {_rounded(estimate.secondsMost)})"


def speed_text(bytes_per_second: int) -> str:
    return f"{size_text(bytes_per_second)}/s"


def short_line(estimate: RecoveryTime) -> str:
    """Return one line about the estimate, for the plan."""
    line = f"{estimate_text(estimate)} until {count_text(estimate.logs, 'log is', 'logs are')} loaded"
    if estimate.secondsMost < SHORT:
        return line
    return f"{line}{_assumed(estimate)}; --estimate shows details, --follow whether a running recovery moves"


def _assumed(estimate: RecoveryTime) -> str:
    is_assumed = estimate.readSpeedFrom == ASSUMED
    return f", if the disk delivers {speed_text(estimate.readSpeed)} (assumed; see --read-speed)" if is_assumed else ""


def time_lines(estimate: RecoveryTime) -> Iterator[str]:
    """Yield what the estimate is, and what it depends on."""
    yield (
        f"{estimate_text(estimate)} until {count_text(estimate.logs, 'log is', 'logs are')} loaded: "
        f"{count_text(estimate.segments, 'segment')} of {count_text(estimate.recoveredLogs, 'log')} "
        + ("is read" if estimate.segments == 1 else "are read")
        + f", {size_text(estimate.bytes)}, and "
        + ("its indexes rebuilt" if estimate.segments == 1 else "their indexes rebuilt")
    )
    if estimate.secondsMost < SHORT:
        return
    origin = {
        GIVEN: "as given",
        METADATA: "as the cluster's metadata has it",
        PROPERTIES: "as server.properties has it",
        "default": "the default of num.recovery.threads.per.data.dir",
    }[estimate.threadsFrom]
    processors = "" if estimate.processors is None else f", on {count_text(estimate.processors, 'processor')}"
    yield f"  with {count_text(estimate.threads, 'thread')} per log directory ({origin}){processors}"
    measured = {MEASURED: "measured now", ASSUMED: "assumed: it could not be measured; --read-speed sets it"}.get(
        estimate.readSpeedFrom, "as given"
    )
    cached = f"; {size_text(estimate.cachedBytes)} of it is in the page cache" if estimate.cachedBytes else ""
    yield f"  from a disk that delivers {speed_text(estimate.readSpeed)} ({measured}){cached}"
    others = [f"{other.threads}: {rough_duration(other.seconds)}" for other in estimate.otherThreads]
    yield f"  with another number of threads: {', '.join(others)}"


class RecoveryTimeReport(Sink[RecoveryTime | LogWork]):
    """Writes an estimate, when how many logs are loaded, and those that take longest."""

    shows_unread = True

    def __init__(self, output: Output, *, full: bool = False) -> None:
        self.output, self.full = output, full
        self.logs: list[LogWork] = []

    def add(self, answer: RecoveryTime | LogWork) -> None:
        if isinstance(answer, LogWork):
            self.logs.append(answer)
            return
        for problem in answer.unread:
            self.output.text(f"not read: {problem}")
        names = ", ".join(answer.directories)
        if not answer.segments:
            self.output.text(f"{names}: nothing is recovered: {count_text(answer.logs, 'log')} after a clean shutdown")
            return
        head, *rest = time_lines(answer)
        self.output.text(f"{names}: {head}")
        for line in rest:
            self.output.text(line)
        self._milestones(answer)
        self._table()

    def _milestones(self, answer: RecoveryTime) -> None:
        """Write how many logs are loaded after parts of the time, and which is then being loaded."""
        timed = [(log.endsAfter, log.startsAfter, log) for log in self.logs if log.endsAfter is not None]
        if answer.secondsMost < SHORT or len(answer.directories) > 1 or len(timed) < len(self.logs) or len(timed) < 2:
            return
        self.output.line("")
        self.output.text(
            "the broker's log counts logs, which differ in size; it loads them in the order of the file system"
        )
        for share in SHARES:
            now = answer.seconds * share / 100
            done = sum(end <= now for end, _, _ in timed)
            current = [log for end, start, log in timed if start is not None and start <= now < end]
            largest = max(current, key=lambda log: log.bytes, default=None)
            loading = "" if largest is None else f"; loading {_place(largest)}"
            self.output.text(f"  after {_rounded(now)} ({share}%): {done:,} of {len(timed):,}{loading}")

    def _table(self) -> None:
        shown = self.logs if self.full else sorted(self.logs, key=lambda log: -log.bytes)[:LONGEST]
        shown = [log for log in shown if log.recovered or self.full]
        if not shown:
            return
        self.output.line("")
        if not self.full:
            self.output.text("logs that take longest")
        write_answers(self.output, shown, full=self.full)
        if len(shown) < len(self.logs):
            self.output.text(f"{count_text(len(self.logs) - len(shown), 'more log')} (--full)")


def _place(log: LogWork) -> str:
    """Return a log with its place in the order of loading."""
    return f"{log.path.rpartition('/')[2]} (number {log.number:,}, {size_text(log.bytes)})"


# --- --follow ---

WORDS = {
    FIRST_LOOK: "FIRST LOOK",
    WAITING: "WAITING",
    MOVING: "MOVING",
    STALLED: "NOTHING HAS MOVED",
    LOADED: "LOADED",
    ENDED: "THE BROKER HAS EXITED",
}
STYLES = {MOVING: "name", LOADED: "name", STALLED: "bad", ENDED: "bad"}
PAUSE = "NO MOVEMENT"
"""For some seconds, which is not long enough to be STALLED."""
QUIET = 5
"""Seconds without movement, after there was some, from which on it is a pause."""
FAR = 120
"""Seconds from which on a time of day is stated, too."""


class RecoveryProgressReport(Sink[RecoveryProgress]):
    """Writes a line each time."""

    streams = True

    def __init__(self, output: Output) -> None:
        self.output = output
        self.last: RecoveryProgress | None = None

    def add(self, answer: RecoveryProgress) -> None:
        if self.last is None or self.last.process != answer.process:
            for line in head_lines(answer):
                self.output.text(line, indent=2)
        word = PAUSE if is_pause(answer) else WORDS[answer.state]
        rest = progress_text(answer)
        clock = time_text(answer.time)
        first, *more = self.output.wrapped(printable(path_text(f"{clock}  {word}{rest}")), len(clock) + 2)
        self.output.line(
            first.replace(word, self.output.paint(word, "torn" if word == PAUSE else STYLES.get(answer.state, "")), 1)
        )
        for line in more:
            self.output.line(line)
        self.output.flush()
        self.last = answer


def time_text(milliseconds: float) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).strftime("%H:%M:%SZ")


def head_lines(progress: RecoveryProgress) -> Iterator[str]:
    """Yield what is followed, and what can be seen of it."""
    logs, segments = count_text(progress.logs, "log"), count_text(progress.segments, "segment")
    work = f"{logs}, {segments} to recover, {size_text(progress.bytes)}"
    if progress.process is None:
        yield f"{work}; no process is known to hold the lock, so only files that change from now on are seen"
        return
    yield f"process {progress.process}: {work}; if it is killed, the next startup recovers all of this again"
    if progress.threads and COUNTERS not in progress.evidence:
        yield (
            "what its threads have read is not visible to this user (run kdump as root or as the broker's user): "
            "inside a segment, only their CPU time shows that they move"
        )


def progress_text(progress: RecoveryProgress) -> str:
    """Return how far a recovery is."""
    if progress.state == WAITING:
        return ": no recovery has begun; " + (
            "no process holds the lock of these directories"
            if progress.process is None
            else "the broker loads its logs once it has read the cluster's metadata"
        )
    line = f": {', '.join(_amounts(progress))}"
    if progress.state == LOADED:
        return line
    if progress.state == ENDED:
        done = "all of them were done; " if progress.logsDone == progress.logs else ""
        return f"{line}; {done}see the end of its log, and kdump restart-plan for the next startup"
    if progress.state == STALLED:
        return f" for {duration_text(int(progress.idleSeconds) * 1000)}{line}{_stalled(progress)}{_current(progress)}"
    if is_pause(progress):
        return f" for {duration_text(int(progress.idleSeconds) * 1000)}{line}{_current(progress)}"
    if progress.bytesPerSecond:
        line += f"; {speed_text(progress.bytesPerSecond)}"
    if progress.secondsLeft is not None and progress.state == MOVING:
        line += f"; {rough_duration(progress.secondsLeft)} left"
        if progress.secondsLeft >= FAR:
            line += f", until {time_text(progress.time + progress.secondsLeft * 1000)[:-4]}Z"
    return line + _current(progress)


def is_pause(progress: RecoveryProgress) -> bool:
    """Return True if nothing moves at the moment."""
    return (progress.state == FIRST_LOOK and progress.idleSeconds > 0) or (
        progress.state == MOVING and progress.idleSeconds >= QUIET
    )


def _amounts(progress: RecoveryProgress) -> Iterator[str]:
    yield f"{progress.logsDone:,} of {count_text(progress.logs, 'log')}"
    yield f"{progress.segmentsDone:,} of {count_text(progress.segments, 'segment')}"
    if progress.bytes:
        least = "" if COUNTERS in progress.evidence or progress.state in ENDS else "at least "
        yield f"{least}{100 * progress.bytesDone // progress.bytes}% of {size_text(progress.bytes)}"


def _current(progress: RecoveryProgress) -> str:
    names = [
        f"{log.path.rpartition('/')[2]} (number {log.number:,}, {size_text(log.bytes)})" for log in progress.current
    ]
    return f"; now {first_of(names)}" if names else ""


def _stalled(progress: RecoveryProgress) -> str:
    """Return what it means that nothing has moved, and what to look at."""
    seen = "neither its files nor what its threads have read"
    if COUNTERS not in progress.evidence:
        seen = "neither its files nor the CPU time of its threads" if progress.threads else "its files have not changed"
    waiting = (
        f"; {count_text(progress.threadsWaiting, 'thread waits', 'threads wait')} for the disk: see dmesg"
        if progress.threadsWaiting
        else ""
    )
    if progress.process is None:
        return f"; {seen}"
    return f"; {seen}{waiting}; jcmd {progress.process} Thread.print shows where its threads are"
