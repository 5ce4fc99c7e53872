"""What the kernel counts of a broker's recovery threads: bytes read, CPU time, and whether they wait for the disk.

A recovery thread lives until the last log of all directories has been loaded, so its counters only grow. A thread's
name in /proc is truncated to 15 characters.

Source: proc(5); LogManager.LogRecoveryThreadFactory (since 3.3, KIP-831; before, threads have the default names of a
pool); LogManager.startupWithConfigOverrides, which starts the log cleaner once logs are loaded.
"""

from __future__ import annotations

import os
import time
from typing import NamedTuple

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
        numbers = os.listdir(tasks)
    except OSError:
        return BrokerThreads(False)
    threads = {number: each for number in numbers if (each := _thread(os.path.join(tasks, number))) is not None}
    has_loaded = any(each.name.startswith(CLEANER) for each in threads.values())
    chosen = {number: each for number, each in threads.items() if each.name.startswith(RECOVERY)}
    if not chosen and not has_loaded:
        chosen = {number: each for number, each in threads.items() if each.name.startswith(POOL)}
    counts = [_bytes_read(os.path.join(tasks, number)) for number in chosen]
    known = [count for count in counts if count is not None]
    return BrokerThreads(
        bool(threads),
        has_loaded,
        len(chosen),
        sum(each.state == WAITS_FOR_DISK for each in chosen.values()),
        sum(known) if known else None,
        sum(each.ticks for each in chosen.values()),
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


def process_start(process: int, proc: str = PROC) -> int | None:
    """Return when a process started, in epoch ns; None if it has ended."""
    try:
        with open(os.path.join(proc, str(process), "stat"), errors="replace") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return int((time.time() - age) * 1e9)
