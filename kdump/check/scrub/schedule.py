"""Which segments a scrub reads now: no more than it must, so that each is read once per cadence, and no more than its
budget."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

DAY = 86_400_000
RUNS = 10
"""Number of runs that show how often there is one."""
SOON = 1.25
"""A segment is due if it would be late in the next run, if that came by this factor later than usual."""


class Waiting(NamedTuple):
    """Something to be read: a segment of unit number `unit`, or all that is left of that (no segment). `checked`: when
    it was read last, in epoch ms; 0 for never."""

    checked: int
    size: int
    unit: int
    segment: str | None


@dataclass
class Budget:
    """How much a run may read: in bytes and in seconds, None for no limit."""

    bytes: int | None = None
    seconds: float | None = None
    used: int = 0
    began: float = field(default_factory=time.monotonic)

    def allows(self, size: int) -> bool:
        """Take so many bytes of the budget, if they are left in it and its time is not over."""
        if self.bytes is not None and self.used + size > self.bytes:
            return False
        if size and self.seconds is not None and time.monotonic() - self.began > self.seconds:
            return False
        self.used += size
        return True


def interval_of(runs: Iterable[int], now: int, cadence: int) -> int:
    """Return the time until the next run in ms, as far as the latest ones show it, which began at `runs`: the longest,
    without a single outage."""
    began = [*sorted(began for began in runs if began < now)[-RUNS:], now]
    between = sorted(later - earlier for earlier, later in pairwise(began)) or [DAY]
    return max(1, min(between[-2 if len(between) > 2 else -1], cadence))


def due_now(waiting: Iterable[Waiting], now: int, cadence: int, interval: int, budget: int | None) -> list[Waiting]:
    """Return what is to be read in this run, the oldest check first: what would be late in the next run, and of what is
    due later so much that the runs until then have room for the rest (`budget`: bytes that each may read). Times in ms.
    What was checked after `now` is due: the clock was moved, and nothing is known of its age."""
    ordered = sorted(
        (one._replace(checked=0) if one.checked > now else one for one in waiting), key=lambda one: one.checked
    )
    needed = total = 0
    pace = interval * SOON
    for one in ordered:
        total += one.size
        left = max(0, one.checked + cadence - now) if one.checked else 0
        later = int(left // pace)  # runs after this one that come before it is late
        if not later:
            needed = total
        elif budget is not None:
            needed = max(needed, total - later * budget)
    chosen: list[Waiting] = []
    total = 0
    for one in ordered:
        if total >= needed and (one.size or one.checked):
            break
        chosen.append(one)
        total += one.size
    return chosen
