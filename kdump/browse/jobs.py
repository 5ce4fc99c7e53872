"""Work in threads, so that keys are obeyed meanwhile: one job a group, the newest; what it says, and how far it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast

from textual.app import App

from kdump.browse.levels import NotThere
from kdump.browse.rows import Cancelled
from kdump.log.errors import SourceError

T = TypeVar("T")


class Job:
    """Something that is being done. `done` of `total` bytes, where that is known."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.done = 0
        self.total = 0
        self.cancelled = False

    def met(self, position: int) -> None:
        """Reading has come to a position. Raises Cancelled."""
        self.done = position
        if self.cancelled:
            raise Cancelled

    def add(self, count: int) -> None:
        """So many more bytes have been read. Raises Cancelled."""
        self.met(self.done + count)


class Shows(Protocol):
    """Who is told how a job ended that did not give its answer."""

    def trouble(self, text: str) -> None: ...


class Jobs:
    """The jobs of an app."""

    def __init__(self, app: App[Any], shows: Shows) -> None:
        self.app = app
        self.shows = shows
        self.running: dict[str, Job] = {}
        self.loop: asyncio.AbstractEventLoop | None = None

    def start(self, group: str, what: str, work: Callable[[Job], T], then: Callable[[T], None]) -> Job:
        """Do `work` in a thread, and `then`, back here, take its answer. An older job of the group is given up; what
        cannot be read, or is not there, is told to a person."""
        job = Job(what)
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
            except (SourceError, OSError, NotThere) as error:
                if not job.cancelled:
                    self.shows.trouble(str(error))
                return
            finally:
                job.cancelled = True
                if self.running.get(group) is job:
                    del self.running[group]
            then(answer)

        self.app.run_worker(cast(Any, run), group=group, exclusive=True)
        return job

    def tell(self, hear: Callable[..., None], *values: Any) -> None:
        """From a job's thread: call `hear` where the keys are heard."""
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(hear, *values)

    def cancel(self, group: str) -> bool:
        """Give up a job; whether there was one."""
        job = self.running.pop(group, None)
        if job is not None:
            job.cancelled = True
            self.app.workers.cancel_group(self.app, group)
        return job is not None
