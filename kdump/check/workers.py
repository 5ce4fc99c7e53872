"""Units side by side: one after the other here, or in processes of their own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING

from kdump.check.finding import Finding
from kdump.check.run import Unit
from kdump.check.totals import Totals
from kdump.cores import usual_jobs
from kdump.log.careful import careful
from kdump.log.rate import Rate
from kdump.log.source import Source, open_source
from kdump.signals import uninterrupted

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

HELD = 1000
"""Findings of a unit that travel as they are; if there are more, the rest goes through a file."""
Done = tuple[list[Finding], str, Totals]
"""Findings, the file with the rest of them (empty: there is none), and what was checked."""

_rate: Rate | None = None
_directory = ""
"""Of the files for findings that are many."""


LARGE = 256 * 1024 * 1024
"""Bytes above which several processes are worth their start."""


def usual_processes(units: list[Unit]) -> int:
    """How many processes where nobody says: one, unless there is enough to do."""
    return usual_jobs() if len(units) > 1 and sum(unit.size for unit in units) >= LARGE else 1


def careful_source(path: str, rate: Rate | None = None) -> Source:
    """The file at `path`, read as under a live broker. Raises SourceError."""
    return open_source(path, wrap=partial(careful, rate=rate))


def _begin(rate: Rate | None, directory: str) -> None:
    global _rate, _directory
    _rate, _directory = rate, directory


def _work(unit: Unit) -> Done:
    """A unit in a worker. The rate cannot travel with it: all workers share one."""
    import pickle
    import tempfile

    totals = Totals()
    unit.options = replace(unit.options, open_source=partial(careful_source, rate=_rate))
    findings = unit.run(totals, lambda size: None)
    held = list(islice(findings, HELD))
    more = next(findings, None)
    if more is None:
        return held, "", totals
    fd, path = tempfile.mkstemp(dir=_directory)
    with open(fd, "wb") as file:
        for finding in chain((more,), findings):
            pickle.dump(finding, file)
    return held, path, totals


def _findings(held: list[Finding], path: str) -> Iterator[Finding]:
    """What _work has found."""
    yield from held
    if path:
        import pickle

        with open(path, "rb") as file:
            while file.peek(1):
                yield pickle.load(file)
        os.unlink(path)


def _pool(stack: ExitStack, processes: int, max_rate: int | None) -> ProcessPoolExecutor | None:
    """None where nothing can be written that processes share: disks are full or read-only, there is no /dev/shm."""
    import multiprocessing
    import tempfile
    from concurrent.futures import ProcessPoolExecutor

    # Not forked: a thread may already draw progress.
    context = multiprocessing.get_context("spawn")
    try:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="kdump-"))
        rate = Rate(max_rate, context) if max_rate else None
        pool = ProcessPoolExecutor(processes, context, _begin, (rate, directory))
    except OSError:
        return None
    return stack.enter_context(pool)


def stop(pool: ProcessPoolExecutor) -> None:
    """End its workers, which only read, at once: what they would find is no longer needed."""
    for worker in list((pool._processes or {}).values()):  # (3.14 has terminate_workers)
        worker.terminate()
    pool.shutdown(cancel_futures=True)


def run_all(
    units: list[Unit], jobs: int, max_rate: int | None, totals: Totals, met: Callable[[int], None]
) -> Iterator[tuple[Unit, Iterator[Finding]]]:
    """Each unit, in order, with its findings; `met` is told of bytes that have been read. What was checked is added to
    `totals` when a unit's findings have been taken. `max_rate`: bytes a second, of all together. Where nothing can be
    written that processes share, there is one process, whatever `jobs` says."""
    with ExitStack() as stack:
        pool = _pool(stack, min(jobs, len(units)), max_rate) if min(jobs, len(units)) > 1 else None
        if pool is None:
            rate = Rate(max_rate) if max_rate else None
            for unit in units:
                unit.options = replace(unit.options, open_source=partial(careful_source, rate=rate))
                yield unit, unit.run(totals, met)
            return
        futures: dict[int, Future[Done]] = {}
        try:
            with uninterrupted():  # a worker that is started has to be known to `stop`
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
