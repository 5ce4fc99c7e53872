"""Checks the records of compressed batches in threads, ahead of the rules, which see all batches in order.

Most of the time goes into decompression, which releases the interpreter lock. Records of other batches are checked by
the compiled core faster than another thread could begin.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import repeat
from threading import Event

from kdump.core.column_numbers import ATTRIBUTES
from kdump.format.batch_header import COMPRESSION
from kdump.log.errors import SourceError
from kdump.log.region import BatchRun, Region

RUNS_PER_THREAD = 2
"""Number of batch runs that are read ahead, for each thread: one to work on, one to go on with."""
Suspects = list[int]
"""Numbers of the batches in a run whose records may have a problem, in ascending order."""


def checked_ahead(
    found: Iterable[Region], suspects: Callable[[BatchRun, Callable[[], bool]], Suspects], threads: int
) -> Iterator[tuple[Region, Suspects | None]]:
    """Yield the regions, in order, each batch run with its suspects if a thread has looked for them. `suspects` must be
    safe to call in several threads; it is also given a function that returns True once its result is no longer needed.
    Other regions are not read ahead: a Batch can be read only until the next one. If `found` raises, that is passed on
    after the regions before it."""
    if threads < 2:
        yield from zip(found, repeat(None))
        return
    pool = ThreadPoolExecutor(threads, "records")  # starts its threads when they are needed
    waiting: deque[tuple[BatchRun, Future[Suspects] | None]] = deque()
    ended = Event()
    failure: list[SourceError] = []
    try:
        for region in _until_error(found, failure):
            if isinstance(region, BatchRun):
                is_compressed = region.headers.of(0, ATTRIBUTES) & COMPRESSION.mask
                waiting.append((region, pool.submit(suspects, region, ended.is_set) if is_compressed else None))
                if len(waiting) > RUNS_PER_THREAD * threads:
                    yield _result(*waiting.popleft())
                continue
            while waiting:
                yield _result(*waiting.popleft())
            yield region, None
        while waiting:
            yield _result(*waiting.popleft())
        for error in failure:
            raise error
    finally:
        ended.set()  # the interpreter waits for its threads at exit, also after an interrupt
        pool.shutdown(wait=False, cancel_futures=True)


def _until_error(found: Iterable[Region], failure: list[SourceError]) -> Iterator[Region]:
    """Yield the regions up to an error, which is added to `failure`."""
    try:
        yield from found
    except SourceError as error:
        failure.append(error)


def _result(run: BatchRun, future: Future[Suspects] | None) -> tuple[BatchRun, Suspects | None]:
    return run, None if future is None else future.result()
