"""Default number of parallel jobs, and how their processes begin and end."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from kdump.idle import is_idle
from kdump.io.errors import Gone, SourceError
from kdump.signals import ENDING

if TYPE_CHECKING:  # slow to import
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing.context import BaseContext

Result = TypeVar("Result")

MAX_JOBS = 4
"""Maximum jobs: more would wait for the disk and for each other, and each uses memory."""


def usual_jobs() -> int:
    """Return the number of cores that this process may use, at most MAX_JOBS; 1 if it is to yield to others."""
    if is_idle():
        return 1
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        cores = os.cpu_count() or 1
    return min(MAX_JOBS, cores)


def worker_context() -> BaseContext:
    """Return how worker processes start: forked, with what this process has imported, if no other thread runs; else
    spawned, because a thread may hold a lock, such as the one that draws progress."""
    import multiprocessing

    may_fork = sys.platform == "linux" and threading.active_count() == 1
    return multiprocessing.get_context("fork" if may_fork else "spawn")


def begin_worker() -> None:
    """Have signals end this worker at once: one that was forked has the handlers of the process that started it. And
    have the garbage collector leave alone what it inherited, of which its writes would make copies."""
    gc.freeze()
    for signal_number in ENDING:
        if callable(signal.getsignal(signal_number)):
            signal.signal(signal_number, signal.SIG_DFL)


def submitted(pool: ProcessPoolExecutor, work: Callable[..., Result], *given: object) -> Future[Result]:
    """Submit work, and return its future. Once a worker has ended, the future has BrokenExecutor, as that of earlier
    work does."""
    from concurrent.futures import BrokenExecutor, Future

    try:
        return pool.submit(work, *given)
    except BrokenExecutor as error:
        future = Future[Result]()
        future.set_exception(error)
        return future


def worker_ended(path: str) -> SourceError:
    """Return the note for what a worker was reading when it ended, as one that the kernel killed."""
    return SourceError(Gone(f"{path}: the worker process that read it ended; this process reads the rest"))


def stop_workers(pool: ProcessPoolExecutor) -> None:
    """Kill the workers: they only read, and their results are no longer needed. One that has just been forked would
    take SIGTERM as its parent does, and wait for ever for a lock of one that ended."""
    for worker in list((pool._processes or {}).values()):  # (3.14 has kill_workers)
        worker.kill()
    pool.shutdown(cancel_futures=True)
