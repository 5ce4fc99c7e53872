"""Whole processes, timed from outside, each writing into a pipe that `cat` empties, as into jq."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple


class Run(NamedTuple):
    """Seconds of the clock and of all processors, and KiB resident at the peak."""

    seconds: float
    cpu: float
    peak: int


class Failed(Exception):
    """A command that did not end with 0."""


def run(command: Sequence[str]) -> Run:
    """One run of the command. Raises Failed."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    cat = subprocess.Popen(["cat"], stdin=process.stdout, stdout=subprocess.DEVNULL)
    assert process.stdout is not None
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    cat.wait()
    seconds = time.perf_counter() - began
    if process.returncode:
        raise Failed(f"exit {process.returncode}: {' '.join(command)}")
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)


def in_turn(commands: Sequence[Sequence[str] | None], runs: int) -> list[Run | None]:
    """The median run of each, taken in turn so that all meet the same machine; one round before warms it up. None
    stays None."""
    rounds = [[run(command) if command else None for command in commands] for _ in range(runs + 1)][1:]
    return [_middle([taken[i] for taken in rounds]) for i in range(len(commands))]


def _middle(runs: Sequence[Run | None]) -> Run | None:
    taken = [one for one in runs if one is not None]
    if not taken:
        return None
    return Run(median(one.seconds for one in taken), median(one.cpu for one in taken), max(one.peak for one in taken))


def least(work: Callable[[], object], runs: int) -> float:
    """Seconds of the quickest of some runs of a piece of this process's own work: a limit, not an average."""
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)
