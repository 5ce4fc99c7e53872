"""How much of the processors a command with --idle takes while other processes are at work.

The lowest priority does not suffice: it leaves all time to others that they ask for, but what runs in the time between
slows down what shares its core and its caches. A broker that left a quarter of two virtual processors idle lost 27 %
of its throughput to a process that used this quarter (docs/scrub.md)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from threading import Lock

from kdump.io.token_bucket import TokenBucket

SHARE = 0.003
"""Part of the time of all processors of the machine."""
AT_WORK = 0.1
"""Other processes are at work if together they use more than this part of the time of all processors."""
LOOK = 1.0
"""Seconds between two looks at what others use."""
FREE = 0.5
"""Seconds of processor time that are not counted: a short command does not wait."""
STAT = "/proc/stat"
BUSY = (0, 1, 2, 5, 6)
"""Fields of the line cpu in /proc/stat: user, nice, system, irq, softirq (proc_stat(5))."""


def machine_time() -> float:
    """Return for how many seconds all processors together have worked. Raises OSError, ValueError or IndexError
    where the system does not say."""
    with open(STAT, encoding="ascii") as file:
        fields = file.readline().split()[1:]
    return sum(int(fields[each]) for each in BUSY) / os.sysconf("SC_CLK_TCK")


class ProcessorShare:
    """Keeps this process to SHARE of the processors while others are at work. Where the system does not say what they
    do, they count as idle. The arguments are for tests; all return seconds."""

    def __init__(
        self,
        cores: int | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        own: Callable[[], float] = time.process_time,
        machine: Callable[[], float] = machine_time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._cores = cores or os.cpu_count() or 1
        self._clock, self._own, self._machine, self._pause = clock, own, machine, sleep
        self._bucket = self._new_bucket()
        self._lock = Lock()
        self._counted = own() + FREE
        self._before = self._now()
        self._others_work = self._before[1] is not None  # until the first look says otherwise

    def wait(self) -> None:
        """Wait until the processor time that this process has used is within its share."""
        with self._lock:
            self._look()
            used = self._own() - self._counted
            if used <= 0:
                return
            self._counted += used
            if self._others_work:
                self._bucket.take(round(used * 1e6))

    def _new_bucket(self) -> TokenBucket:
        """Return a bucket of microseconds of processor time."""
        return TokenBucket(max(1, round(self._cores * SHARE * 1e6)), clock=self._clock, sleep=self._sleep)

    def _sleep(self, seconds: float) -> None:
        """Sleep, but not on after the others have ended."""
        end = self._clock() + seconds
        while self._others_work and (left := end - self._clock()) > 0:
            self._pause(min(left, LOOK))
            self._look()

    def _look(self) -> None:
        """Find out whether others are at work, if it is time to."""
        elapsed = self._clock() - self._before[0]
        if elapsed >= LOOK:
            before, self._before = self._before, self._now()
            if before[1] is not None and self._before[1] is not None:
                self._others_work = self._before[1] - before[1] > AT_WORK * self._cores * elapsed
                if not self._others_work:
                    self._bucket = self._new_bucket()  # what was used until now is forgotten

    def _now(self) -> tuple[float, float | None]:
        """Return the time, and for how long others have worked until now; None if it is not known."""
        try:
            return self._clock(), self._machine() - self._own()
        except (OSError, ValueError, IndexError):
            return self._clock(), None
