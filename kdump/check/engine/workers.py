"""Checks units one after the other in this process, or in parallel in worker processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING

from kdump.check.engine.units import CheckUnit
from kdump.check.finding import Finding
from kdump.check.totals import CheckTotals
from kdump.cores import usual_jobs
from kdump.log.command_line_paths import existing_paths, set_existing_paths
from kdump.log.fault_tolerant import fault_tolerant
from kdump.log.rate_limit import RateLimit
from kdump.log.source import Source, open_source
from kdump.signals import uninterrupted

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

MAX_HELD = 1000
"""Maximum number of a unit's findings that a worker returns directly; it writes the rest to a file."""
Done = tuple[list[Finding], str, CheckTotals]
"""Findings, path of the file with the rest of them (empty if there is none), and what was checked."""

_rate: RateLimit | None = None
_directory = ""
"""Directory of the files with the rest of the findings."""


LARGE = 256 * 1024 * 1024
"""Total size in bytes from which several processes are worth their startup time."""


def usual_processes(units: list[CheckUnit]) -> int:
    """Return the default number of processes: one unless there are several units with enough data."""
    return usual_jobs() if len(units) > 1 and sum(unit.size for unit in units) >= LARGE else 1


def careful_source(path: str, rate: RateLimit | None = None) -> Source:
    """Open the file at `path` so that a live broker is not disturbed (see log/fault_tolerant.py). Raises
    SourceError."""
    return open_source(path, wrap=partial(fault_tolerant, rate=rate))


def _begin(rate: RateLimit | None, directory: str, named: frozenset[str]) -> None:
    set_existing_paths(named)
    global _rate, _directory
    _rate, _directory = rate, directory


def _work(unit: CheckUnit) -> Done:
    """Check a unit in a worker. The rate is not part of the unit, because all workers share it."""
    import pickle
    import tempfile

    totals = CheckTotals()
    unit.options = replace(unit.options, open_source=partial(careful_source, rate=_rate))
    findings = unit.run(totals, lambda size: None)
    held = list(islice(findings, MAX_HELD))
    more = next(findings, None)
    if more is None:
        return held, "", totals
    fd, path = tempfile.mkstemp(dir=_directory)
    with open(fd, "wb") as file:
        for finding in chain((more,), findings):
            pickle.dump(finding, file)
    return held, path, totals


def _findings(held: list[Finding], path: str) -> Iterator[Finding]:
    """Yield the findings of _work, and delete its file."""
    yield from held
    if path:
        import pickle

        with open(path, "rb") as file:
            while file.peek(1):
                yield pickle.load(file)
        os.unlink(path)


def _pool(stack: ExitStack, processes: int, max_rate: int | None) -> ProcessPoolExecutor | None:
    """Return the pool of worker processes; None if shared files cannot be created, because disks are full or read-only
    or there is no /dev/shm."""
    import multiprocessing
    import tempfile
    from concurrent.futures import ProcessPoolExecutor

    # Spawned, not forked: a thread may be drawing progress already.
    context = multiprocessing.get_context("spawn")
    try:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="kdump-"))
        rate = RateLimit(max_rate, context) if max_rate else None
        pool = ProcessPoolExecutor(processes, context, _begin, (rate, directory, existing_paths()))
    except OSError:
        return None
    return stack.enter_context(pool)


def stop(pool: ProcessPoolExecutor) -> None:
    """Terminate the workers at once: they only read, and their results are no longer needed."""
    for worker in list((pool._processes or {}).values()):  # (3.14 has terminate_workers)
        worker.terminate()
    pool.shutdown(cancel_futures=True)


def run_all(
    units: list[CheckUnit], jobs: int, max_rate: int | None, totals: CheckTotals, met: Callable[[int], None]
) -> Iterator[tuple[CheckUnit, Iterator[Finding]]]:
    """Check the units, in parallel if possible, and yield each with its findings, in order.

    Calls `met` with bytes read. `totals` includes a unit once its findings have been consumed. `max_rate`: bytes per
    second for all workers together. If shared files cannot be created, one process is used, whatever `jobs` is.
    """
    with ExitStack() as stack:
        pool = _pool(stack, min(jobs, len(units)), max_rate) if min(jobs, len(units)) > 1 else None
        if pool is None:
            rate = RateLimit(max_rate) if max_rate else None
            for unit in units:
                unit.options = replace(unit.options, open_source=partial(careful_source, rate=rate))
                yield unit, unit.run(totals, met)
                unit.check = None  # which has the state of the whole partition
            return
        futures: dict[int, Future[Done]] = {}
        try:
            with uninterrupted():  # so that `stop` reaches every worker that was started
                for number in sorted(range(len(units)), key=lambda number: -units[number].size):
                    futures[number] = pool.submit(_work, units[number])
            for number, unit in enumerate(units):
                held, path, counted = futures.pop(number).result()
                totals.add(counted)
                met(unit.size)
                yield unit, _findings(held, path)
        except BaseException:
            stop(pool)
            raise
