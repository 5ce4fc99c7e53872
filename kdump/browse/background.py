"""Background jobs in threads, so that keys stay responsive: one job per group, the newest, with its progress; and
kdump verify as such a job."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from textual.screen import Screen

from kdump.browse.browser import NotFound
from kdump.browse.listings import Cancelled
from kdump.check.engine.units import units
from kdump.check.finding import ERROR, INFO, Finding
from kdump.check.options import Options
from kdump.check.totals import CheckTotals
from kdump.format.count_text import count_text
from kdump.io.directory_listing import is_inside, real_path
from kdump.io.errors import SourceError
from kdump.io.fault_tolerant import careful_source
from kdump.io.run import Run

MAX_FINDINGS = 10_000
"""Maximum number of findings that are kept."""
T = TypeVar("T")


class Job:
    """A running job. `done` of `total` bytes have been read; `total` is 0 if unknown."""

    def __init__(self, description: str) -> None:
        self.description = description
        self.done = 0
        self.total = 0
        self.cancelled = False
        self.run = Run(more=self._more, expect=self._expect, at=self._at)

    @property
    def percent(self) -> str:
        """How much has been read, after a space; empty if the total is unknown."""
        return f" {100 * min(self.done, self.total) // self.total}%" if self.total else ""

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
        self.screen, self.trouble = screen, trouble
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


@dataclass
class BackgroundVerify:
    """One verify run over `path`. `place`: index of the current finding, -1 before the first; `left_out`: number of
    findings above MAX_FINDINGS; `info`: number of informational findings that are kept."""

    path: str
    findings: list[Finding] = field(default_factory=list)
    place: int = -1
    running: bool = True
    stopped: bool = False
    """Whether the user ended it before all was checked."""
    left_out: int = 0
    info: int = 0
    totals: CheckTotals = field(default_factory=CheckTotals)

    def covers(self, path: str) -> bool:
        return is_inside(real_path(path), real_path(self.path))

    def add(self, finding: Finding) -> bool:
        """Add a finding. Return True if it is an error or a warning; informational findings are listed, but skipped by
        `step`."""
        if len(self.findings) >= MAX_FINDINGS:
            self.left_out += 1
            return False
        self.findings.append(finding)
        self.info += finding.severity == INFO
        return finding.severity != INFO

    def step(self, direction: int) -> Finding | None:
        """Return the next or previous error or warning and make it current; None if there is none."""
        place = self.place + direction
        while 0 <= place < len(self.findings):
            if self.findings[place].severity != INFO:
                self.place = place
                return self.findings[place]
            place += direction
        return None

    @property
    def serious(self) -> int:
        return len(self.findings) - self.info

    @property
    def serious_text(self) -> str:
        errors = sum(finding.severity == ERROR for finding in self.findings)
        return f"{count_text(errors, 'error')}, {count_text(self.serious - errors, 'warning')}"

    def summary(self) -> str:
        """Return a one-line summary."""
        if self.running:
            return f"checking {self.path} …"
        totals, unread = self.totals, self.totals.unread
        read = f"{count_text(totals.partitions, 'partition')}, {count_text(totals.files, 'file')}, "
        read += f"{count_text(totals.batches, 'batch', 'batches')} read"
        if self.stopped:
            return f"STOPPED, not all was checked: {self.serious_text} so far in {self.path}: {read}"
        counts = self.serious_text if self.serious else "no error or warning"
        if not unread:
            return f"{counts} in {self.path}: {read}"
        return f"NOT READ: {count_text(len(unread), 'place')}; {counts} in the rest of {self.path}: {read}; {unread[0]}"


def verify(check: BackgroundVerify, run: Run) -> None:
    """Run the check. `run.found` is called with each finding. Raises Cancelled from `run.more`."""
    options = Options.of(
        run, now=int(time.time() * 1000), open_source=careful_source, unreadable=check.totals.add_unreadable
    )
    work = list(units((check.path,), options))
    run.expect(sum(unit.size for unit in work))
    for unit in work:
        run.more(0)
        for finding in unit.run(check.totals):
            run.found(finding)
