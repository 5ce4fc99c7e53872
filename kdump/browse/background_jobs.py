"""Background jobs in threads, so that keys stay responsive: one job per group, the newest, with its progress."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar, cast

from textual.screen import Screen

from kdump.browse.browser import NotFound
from kdump.browse.row_listings import Cancelled
from kdump.log.errors import SourceError
from kdump.log.run import Run

T = TypeVar("T")


class Job:
    """A running job. `done` of `total` bytes have been read; `total` is 0 if unknown."""

    def __init__(self, description: str) -> None:
        self.description = description
        self.done = 0
        self.total = 0
        self.cancelled = False
        self.run = Run(more=self._more, expect=self._expect, at=self._at)

    def _at(self, position: int, size: int | None = None) -> None:
        """Record that reading has reached `position`. Raises Cancelled."""
        self.done = position
        if self.cancelled:
            raise Cancelled

    def _more(self, count: int) -> None:
        """Record that `count` more bytes have been read. Raises Cancelled."""
        self._at(self.done + count)

    def _expect(self, total: int) -> None:
        self.total = total


class Jobs:
    """The jobs of a screen. `trouble` displays the reason why a job ended without a result."""

    def __init__(self, screen: Screen[Any], trouble: Callable[[str], None]) -> None:
        self.screen = screen
        self.trouble = trouble
        self.running: dict[str, Job] = {}
        self.loop: asyncio.AbstractEventLoop | None = None

    def start(self, group: str, description: str, work: Callable[[Job], T], then: Callable[[T], None]) -> Job:
        """Run `work` in a thread, then call `then` with its result in the app's thread. Cancels an older job of the
        group. SourceError, OSError and NotFound are displayed by `trouble`."""
        job = Job(description)
        self.cancel(group)
        self.loop = asyncio.get_running_loop()
        self.running[group] = job

        async def run() -> None:
            try:
                answer = await asyncio.to_thread(work, job)
                if job.cancelled:
                    return
            except Cancelled:
                return
            except (SourceError, OSError, NotFound) as error:
                if not job.cancelled:
                    self.trouble(str(error))
                return
            finally:
                job.cancelled = True
                if self.running.get(group) is job:
                    del self.running[group]
            then(answer)

        self.screen.run_worker(cast(Any, run), group=group, exclusive=True)
        return job

    def call_in_app(self, callback: Callable[..., None], *values: Any) -> None:
        """Call `callback` in the app's thread; to be used from a job's thread."""
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(callback, *values)

    def cancel(self, group: str) -> bool:
        """Cancel the job of a group. Returns True if there was one."""
        job = self.running.pop(group, None)
        if job is not None:
            job.cancelled = True
            self.screen.workers.cancel_group(self.screen, group)
        return job is not None
