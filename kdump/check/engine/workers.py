"""Checks units one after the other in this process, or in parallel in worker processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeVar

from kdump.check.engine.units import CheckUnit
from kdump.check.finding import Finding
from kdump.check.options import Options
from kdump.check.totals import CheckTotals
from kdump.io import unreadable_paths
from kdump.io.command_line_paths import existing_paths, set_existing_paths
from kdump.io.fault_tolerant import careful_source
from kdump.io.file_system import AddedFiles, add_files, added_files
from kdump.io.link_boundary import roots
from kdump.io.low_impact_reads import limit_rate, rate_for_workers
from kdump.io.mounted_paths import mount_paths, unmount_paths
from kdump.io.shared_counter import FromWorker, SharedCounter, result_of
from kdump.io.token_bucket import TokenBucket
from kdump.parallel_jobs import begin_worker, stop_workers, submitted, usual_jobs, worker_context, worker_ended
from kdump.signals import uninterrupted

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing.connection import Connection

MAX_HELD = 1000
"""Maximum number of a unit's findings that a worker returns directly; it writes the rest to a file."""
Result = TypeVar("Result")
UnitResult = tuple[list[Finding], str, CheckTotals]
"""Findings, path of the file with the rest of them (empty if there is none), and what was checked."""

_directory = ""
"""Directory of the files with the rest of the findings."""
_counter: SharedCounter | None = None
pipes: Sequence[Connection] = ()
"""In a worker: where it may send results before its work is done."""


LARGE = 256 * 1024 * 1024
"""Total size in bytes from which several processes are worth their startup time."""


def usual_jobs_for(units: list[CheckUnit]) -> int:
    """Return the default number of jobs: one unless there is enough data."""
    return 1 if sum(unit.size for unit in units) < LARGE else usual_jobs()


def processes_for(units: list[CheckUnit], jobs: int) -> int:
    """Return the number of processes among which to divide the units. A log directory's own files need none of their
    own."""
    return max(1, min(jobs, sum(unit.directory is None for unit in units)))


def _begin(
    rate: TokenBucket | None,
    counter: SharedCounter,
    directory: str,
    named: frozenset[str],
    above: Mapping[str, str],
    own_pipes: Sequence[Connection],
    added: tuple[dict[str, AddedFiles], str],
    keys: tuple[str, ...],
) -> None:
    from kdump.io.aiven import use_keys

    begin_worker()
    set_existing_paths(named, above)
    unmount_paths()
    mount_paths(named)
    add_files(*added)
    use_keys(keys)
    limit_rate(rate)
    global _directory, _counter, pipes
    _directory, _counter, pipes = directory, counter, own_pipes


def _run(unit: CheckUnit, totals: CheckTotals) -> Iterator[Finding]:
    return replace(unit, options=replace(unit.options, open_source=careful_source)).run(totals)


def in_worker(work: Callable[[CheckUnit], Result], unit: CheckUnit) -> FromWorker[Result]:
    """Do the work on a unit in a worker."""
    with counted(unit.options) as options:
        return work(replace(unit, options=options)), unreadable_paths.failures()


@contextmanager
def counted(options: Options) -> Iterator[Options]:
    """Yield options with which a worker reads: what it reads is counted where it was started, and what it cannot read
    is in `failures`."""
    assert _counter is not None
    unreadable_paths.begin()
    yield replace(options, open_source=careful_source, more=_counter.add)
    _counter.flush()


def _check(unit: CheckUnit) -> UnitResult:
    totals = CheckTotals()
    findings = unit.run(totals)
    held = list(islice(findings, MAX_HELD))
    return held, _write_rest(findings), totals


def _write_rest(findings: Iterator[Finding]) -> str:
    """Write findings to a temporary file, and return its path; the empty string if there are none."""
    import pickle
    import tempfile

    first = next(findings, None)
    if first is None:
        return ""
    fd, path = tempfile.mkstemp(dir=_directory)
    with open(fd, "wb") as file:
        for finding in chain((first,), findings):
            pickle.dump(finding, file)
    return path


def _findings(held: list[Finding], path: str) -> Iterator[Finding]:
    """Yield the findings of _check, and delete its file."""
    yield from held
    if path:
        import pickle

        with open(path, "rb") as file:
            while file.peek(1):
                yield pickle.load(file)
        os.unlink(path)


def worker_pool(
    stack: ExitStack, processes: int, paths: Iterable[str] | None = None, own_pipes: Sequence[Connection] = ()
) -> tuple[ProcessPoolExecutor, SharedCounter] | None:
    """Return the pool of worker processes, and the counter of what they read; None if shared files cannot be created,
    because disks are full or read-only or there is no /dev/shm. `paths`: those that the user named, whose
    bundles the workers mount; by default, existing_paths. `own_pipes`: the `pipes` of the workers."""
    import tempfile
    from concurrent.futures import ProcessPoolExecutor

    from kdump.io.aiven import key_files

    context = worker_context()
    try:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="kdump-"))
        counter = SharedCounter(context)
        named = frozenset(paths or existing_paths())
        given = (rate_for_workers(context), counter, directory, named, roots(), own_pipes, added_files(), key_files())
        pool = ProcessPoolExecutor(processes, context, _begin, given)
    except OSError:
        return None
    return stack.enter_context(pool), counter


def run_all(units: list[CheckUnit], jobs: int, totals: CheckTotals) -> Iterator[tuple[CheckUnit, Iterator[Finding]]]:
    """Check the units, in parallel if possible, and yield each with its findings, in order. If a worker has ended (out
    of memory, perhaps), this process checks the rest.

    `totals` includes a unit once its findings have been consumed. If shared files cannot be created, one process is
    used, whatever `jobs` is. A log directory's own files are checked in this process: to send the list of its
    partitions to a worker would take more memory than to check them."""
    with ExitStack() as stack:
        processes = processes_for(units, jobs)
        made = worker_pool(stack, processes) if processes > 1 else None
        if made is None:
            for unit in units:
                yield unit, _run(unit, totals)
            return
        from concurrent.futures import BrokenExecutor

        pool, counter = made
        futures: dict[int, Future[FromWorker[UnitResult]]] = {}
        try:
            with uninterrupted():  # so that stop_workers reaches every worker that was started
                for number in sorted(range(len(units)), key=lambda number: -units[number].size):
                    if units[number].directory is None:
                        futures[number] = submitted(pool, in_worker, _check, units[number])
            for number, unit in enumerate(units):
                held, path, counted = None, "", CheckTotals()
                if number in futures:
                    try:
                        held, path, counted = result_of(futures.pop(number), counter, unit.options)
                    except BrokenExecutor:
                        futures.clear()
                        unit.options.unreadable(worker_ended(unit.name))
                totals.add(counted)
                yield unit, _run(unit, totals) if held is None else _findings(held, path)
        except BaseException:
            stop_workers(pool)
            raise
