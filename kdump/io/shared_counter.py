"""Brings to one process what its workers read, and what they cannot read."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from kdump.io import unreadable_paths
from kdump.io.run import Run

if TYPE_CHECKING:  # slow to import
    from concurrent.futures import Future
    from multiprocessing.context import BaseContext

STEP = 1 << 20
"""Bytes that a worker reports at once."""
PAUSE = 0.2
"""Seconds between two looks at the counter."""

Result = TypeVar("Result")
FromWorker = tuple[Result, dict[str, str]]
"""A result, and what could not be read for it, by path."""


class SharedCounter:
    """A number of bytes to which worker processes add, if it is passed to them when they start. Raises OSError if
    shared memory is not available."""

    def __init__(self, context: BaseContext) -> None:
        self._total = context.Value("q", 0)
        self._pending = 0
        self._taken = 0

    def add(self, count: int) -> None:
        """Add bytes, in a worker; they may be counted only at the next `flush`."""
        self._pending += count
        if self._pending >= STEP:
            self.flush()

    def flush(self) -> None:
        with self._total.get_lock():
            self._total.value += self._pending
        self._pending = 0

    def take(self) -> int:
        """Return the bytes that were counted since the last call."""
        now: int = self._total.value
        count, self._taken = now - self._taken, now
        return count


def result_of(future: Future[FromWorker[Result]], counter: SharedCounter, run: Run) -> Result:
    """Wait for a worker's result, and note what it could not read. Until then, calls `run.more` with the bytes that the
    workers have read."""
    from concurrent.futures import wait

    while True:
        done, _ = wait([future], PAUSE)
        run.more(counter.take())
        if done:
            result, failures = future.result()
            unreadable_paths.add(failures)
            return result
