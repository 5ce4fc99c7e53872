"""Timing of whole processes, from outside. Each writes into a pipe that `cat` empties, as if piped into jq."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple


class Run(NamedTuple):
    """Elapsed seconds, CPU seconds, and peak resident memory in KiB."""

    seconds: float
    cpu: float
    peak: int


class Failed(Exception):
    """Raised if a command exits with a status other than 0."""


def run(command: Sequence[str]) -> Run:
    """Run the command once. Raises Failed."""
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


def with_children(command: Sequence[str], allowed: Sequence[int] = (0,)) -> Run:
    """Run the command once. Its peak is the largest sum of the proportional set sizes (PSS) of all its processes, so
    that memory that they share counts once. It is sampled every 20 ms, and has to last for three samples: while a
    process ends, its shared pages count twice. Raises Failed for a status that is not `allowed`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    peak, latest = 0, deque([0, 0], 3)
    while process.poll() is None:
        latest.append(sum(map(_pss, _tree(process.pid))))
        peak = max(peak, min(latest))
        time.sleep(0.02)
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode not in allowed:
        raise Failed(f"exit {process.returncode}: {' '.join(command)}")
    return Run(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak)


def _tree(pid: int) -> list[int]:
    """Return the IDs of a process and its descendants."""
    found = [pid]
    for each in found:
        with suppress(OSError):
            for task in os.listdir(f"/proc/{each}/task"):
                found += map(int, Path(f"/proc/{each}/task/{task}/children").read_text().split())
    return found


def _pss(pid: int) -> int:
    """Return the proportional set size of a process in KiB; 0 if it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0


def in_turn(commands: Sequence[Sequence[str] | None], runs: int) -> list[Run | None]:
    """Return the median run of each command. The commands take turns, so that all see the same state of the machine,
    after a warm-up round. None stays None."""
    rounds = [[run(command) if command else None for command in commands] for _ in range(runs + 1)][1:]
    return [_middle([taken[i] for taken in rounds]) for i in range(len(commands))]


def _middle(runs: Sequence[Run | None]) -> Run | None:
    taken = [one for one in runs if one is not None]
    if not taken:
        return None
    return Run(median(one.seconds for one in taken), median(one.cpu for one in taken), max(one.peak for one in taken))
