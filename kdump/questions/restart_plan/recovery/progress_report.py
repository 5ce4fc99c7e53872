"""Output of `kdump restart-plan --follow` for people: whether a recovery is moving, how far it is, and when it ends."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

from kdump.format.count_text import count_text, first_of
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
from kdump.questions.restart_plan.recovery.report import rough_duration, speed_text
from kdump.render.amounts import duration_text, size_text
from kdump.render.escape import path_text, printable
from kdump.render.sink import Sink
from kdump.render.stdout import Output

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
