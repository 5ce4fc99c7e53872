"""The token bucket that limits the rate of reading; kdump.io.low_impact_reads applies it (--max-rate)."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # slow to import
    from multiprocessing.context import BaseContext

BURST = 0.25
"""Seconds of the rate whose bytes may be read at once after a pause."""


class _Moment(Protocol):
    value: float


class _Local:
    value = 0.0


class TokenBucket:
    """A token bucket of `per_second` bytes per second, initially filled with BURST seconds' worth.

    With a multiprocessing `context`, the processes that receive it when they start (args of a Process, initargs of a
    pool) share the bucket, so the limit applies to all of them together. `clock` must be the same in all of them, as
    time.monotonic is."""

    def __init__(
        self,
        per_second: int,
        context: BaseContext | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if per_second <= 0:
            raise ValueError(f"{per_second} bytes per second")
        self.per_second, self._clock, self._sleep = per_second, clock, sleep
        # The whole state of the bucket: the time when everything taken so far is paid for. A past time means full.
        self._paid: _Moment
        self._lock: AbstractContextManager[Any]
        if context is None:
            self._paid, self._lock = _Local(), Lock()
        else:
            paid = context.Value("d", 0.0)
            self._paid, self._lock = paid, paid.get_lock()
        self._paid.value = clock() - BURST

    @property
    def is_shared(self) -> bool:
        return not isinstance(self._paid, _Local)

    def shared(self, context: BaseContext) -> TokenBucket:
        """Return this limit in a form that can be passed to worker processes. Raises OSError without shared memory."""
        bucket = TokenBucket(self.per_second, context, clock=self._clock, sleep=self._sleep)
        bucket._paid.value = self._paid.value
        return bucket

    def take(self, count: int) -> None:
        """Wait until `count` more bytes may be read; `count` may exceed the capacity of the bucket."""
        with self._lock:
            now = self._clock()
            paid = max(self._paid.value, now - BURST) + count / self.per_second
            self._paid.value = paid
        if paid > now:
            self._sleep(paid - now)
