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
from kdump.render.stdout import Output
from kdump.render.table import Column, Table

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


def estimate_text(each: RecoveryTime) -> str:
    """Return the estimate with its range: about 12 min (8 min to 17 min)."""
    if each.secondsMost < SHORT:
        return f"less than {SHORT} s"
    return f"about {_rounded(each.seconds)} ({_rounded(each.secondsLeast)} to {_rounded(each.secondsMost)})"


def speed_text(bytes_per_second: int) -> str:
    return f"{size_text(bytes_per_second)}/s"


def short_line(each: RecoveryTime) -> str:
    """Return one line about the estimate, for the plan."""
    text = f"{estimate_text(each)} until {count_text(each.logs, 'log is', 'logs are')} loaded"
    if each.secondsMost < SHORT:
        return text
    return f"{text}{_assumed(each)}; --estimate shows details, --follow whether a running recovery moves"


def _assumed(each: RecoveryTime) -> str:
    is_assumed = each.readSpeedFrom == ASSUMED
    return f", if the disk delivers {speed_text(each.readSpeed)} (assumed; see --read-speed)" if is_assumed else ""


def time_lines(each: RecoveryTime) -> Iterator[str]:
    """Yield what the estimate is, and what it depends on."""
    yield (
        f"{estimate_text(each)} until {count_text(each.logs, 'log is', 'logs are')} loaded: "
        f"{count_text(each.segments, 'segment')} of {count_text(each.recoveredLogs, 'log')} "
        + ("is read" if each.segments == 1 else "are read")
        + f", {size_text(each.bytes)}, and "
        + ("its indexes rebuilt" if each.segments == 1 else "their indexes rebuilt")
    )
    if each.secondsMost < SHORT:
        return
    origin = {
        GIVEN: "as given",
        METADATA: "as the cluster's metadata has it",
        PROPERTIES: "as server.properties has it",
        "default": "the default of num.recovery.threads.per.data.dir",
    }[each.threadsFrom]
    processors = "" if each.processors is None else f", on {count_text(each.processors, 'processor')}"
    yield f"  with {count_text(each.threads, 'thread')} per log directory ({origin}){processors}"
    measured = {
        MEASURED: "measured now",
        ASSUMED: "assumed: it could not be measured; --read-speed sets it",
    }.get(each.readSpeedFrom, "as given")
    cached = f"; {size_text(each.cachedBytes)} of it {'is' if each.cachedBytes else 'are'} in the page cache"
    yield f"  from a disk that delivers {speed_text(each.readSpeed)} ({measured}){cached if each.cachedBytes else ''}"
    others = [f"{other.threads}: {rough_duration(other.seconds)}" for other in each.otherThreads]
    yield f"  with another number of threads: {', '.join(others)}"


class RecoveryTimeReport(Sink[RecoveryTime | LogWork]):
    """Writes an estimate, when how many logs are loaded, and those that take longest."""

    shows_unread = True

    def __init__(self, output: Output, *, full: bool = False) -> None:
        self.output = output
        self.full = full
        self.logs: list[LogWork] = []

    def add(self, answer: RecoveryTime | LogWork) -> None:
        if isinstance(answer, LogWork):
            self.logs.append(answer)
            return
        for text in answer.unread:
            self.output.text(f"not read: {text}")
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
        table = Table(columns(), self.output, full=self.full)
        for log in shown:
            table.add(log)
        table.flush()
        if len(shown) < len(self.logs):
            self.output.text(f"{count_text(len(self.logs) - len(shown), 'more log')} (--full)")


def columns() -> list[Column]:
    """Return the columns of the table of logs."""
    return [
        Column("path", "partition", lambda log: printable(path_text(log.path.rpartition("/")[2])), least=16),
        Column("number", "number", lambda log: "?" if log.number is None else f"{log.number:,}", True, 6),
        Column("recovered", "re-read", lambda log: f"{log.recovered:,}", True, 7),
        Column("bytes", "reads", lambda log: size_text(log.bytes), True, 8),
        Column("startsAfter", "starts after", lambda log: _seconds(log.startsAfter), True, 8),
        Column("endsAfter", "done after", lambda log: _seconds(log.endsAfter), True, 8),
    ]


def _place(log: LogWork) -> str:
    """Return a log with its place in the order of loading."""
    return f"{log.path.rpartition('/')[2]} (number {log.number:,}, {size_text(log.bytes)})"


def _seconds(seconds: float | None) -> str:
    return "?" if seconds is None else duration_text(int(seconds * 1000))


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
        at = time_text(answer.time)
        first, *more = self.output.wrapped(printable(path_text(f"{at}  {word}{rest}")), len(at) + 2)
        self.output.line(
            first.replace(word, self.output.paint(word, "torn" if word == PAUSE else STYLES.get(answer.state, "")), 1)
        )
        for line in more:
            self.output.line(line)
        self.output.flush()
        self.last = answer


def time_text(milliseconds: float) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).strftime("%H:%M:%SZ")


def head_lines(each: RecoveryProgress) -> Iterator[str]:
    """Yield what is followed, and what can be seen of it."""
    work = f"{count_text(each.logs, 'log')}, {count_text(each.segments, 'segment')} to recover, {size_text(each.bytes)}"
    if each.process is None:
        yield f"{work}; no process is known to hold the lock, so only files that change from now on are seen"
        return
    yield f"process {each.process}: {work}; if it is killed, the next startup recovers all of this again"
    if each.threads and COUNTERS not in each.evidence:
        yield (
            "what its threads have read is not visible to this user (run kdump as root or as the broker's user): "
            "inside a segment, only their CPU time shows that they move"
        )


def progress_text(each: RecoveryProgress) -> str:
    """Return how far a recovery is."""
    if each.state == WAITING:
        return ": no recovery has begun; " + (
            "no process holds the lock of these directories"
            if each.process is None
            else "the broker loads its logs once it has read the cluster's metadata"
        )
    text = f": {', '.join(_amounts(each))}"
    if each.state == LOADED:
        return text
    if each.state == ENDED:
        done = "all of them were done; " if each.logsDone == each.logs else ""
        return f"{text}; {done}see the end of its log, and kdump restart-plan for the next startup"
    if each.state == STALLED:
        return f" for {duration_text(int(each.idleSeconds) * 1000)}{text}{_stalled(each)}{_current(each)}"
    if is_pause(each):
        return f" for {duration_text(int(each.idleSeconds) * 1000)}{text}{_current(each)}"
    if each.bytesPerSecond:
        text += f"; {speed_text(each.bytesPerSecond)}"
    if each.secondsLeft is not None and each.state == MOVING:
        text += f"; {rough_duration(each.secondsLeft)} left"
        if each.secondsLeft >= FAR:
            text += f", until {time_text(each.time + each.secondsLeft * 1000)[:-4]}Z"
    return text + _current(each)


def is_pause(each: RecoveryProgress) -> bool:
    """Return True if nothing moves at the moment."""
    return (each.state == FIRST_LOOK and each.idleSeconds > 0) or (each.state == MOVING and each.idleSeconds >= QUIET)


def _amounts(each: RecoveryProgress) -> Iterator[str]:
    yield f"{each.logsDone:,} of {count_text(each.logs, 'log')}"
    yield f"{each.segmentsDone:,} of {count_text(each.segments, 'segment')}"
    if each.bytes:
        least = "" if COUNTERS in each.evidence or each.state in ENDS else "at least "
        yield f"{least}{100 * each.bytesDone // each.bytes}% of {size_text(each.bytes)}"


def _current(each: RecoveryProgress) -> str:
    names = [f"{log.path.rpartition('/')[2]} (number {log.number:,}, {size_text(log.bytes)})" for log in each.current]
    return f"; now {first_of(names)}" if names else ""


def _stalled(each: RecoveryProgress) -> str:
    """Return what it means that nothing has moved, and what to look at."""
    seen = "neither its files nor what its threads have read"
    if COUNTERS not in each.evidence:
        seen = "neither its files nor the CPU time of its threads" if each.threads else "its files have not changed"
    waiting = (
        f"; {count_text(each.threadsWaiting, 'thread waits', 'threads wait')} for the disk: see dmesg"
        if each.threadsWaiting
        else ""
    )
    if each.process is None:
        return f"; {seen}"
    return f"; {seen}{waiting}; jcmd {each.process} Thread.print shows where its threads are"
