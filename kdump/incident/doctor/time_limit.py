"""Limits the time that is spent on a question."""

from __future__ import annotations

import time
from collections.abc import Callable

from kdump.io.errors import ReadingStopped


class OutOfTime(Exception):
    """The time for a question is over: what it has found so far is its answer."""


class TimeLimit:
    """So many seconds from now on."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds

    @property
    def is_over(self) -> bool:
        return self._clock() >= self._end

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return max(0.0, self._end - self._clock())

    def part(self, share: float) -> TimeLimit:
        """Return a limit of a share of what is left."""
        return TimeLimit(self.left * share, self._clock)

    def raise_if_over(self) -> None:
        """Raise OutOfTime if the time is over."""
        if self.is_over:
            raise OutOfTime

    def stop_reading(self) -> None:
        """Raise ReadingStopped if the time is over: a check then ends before the next batch, and draws no conclusion
        from what it did not read."""
        if self.is_over:
            raise ReadingStopped("out of time")
