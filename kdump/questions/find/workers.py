"""Searches directories in worker processes. Each sends what it finds through a pipe, and waits while that is full: what
is found before its turn takes no memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import islice
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import NamedTuple

from kdump.check.engine import workers
from kdump.check.engine.workers import counted, worker_pool
from kdump.io import unreadable_paths
from kdump.io.errors import SourceError
from kdump.io.shared_counter import PAUSE, SharedCounter
from kdump.log.paths import Target
from kdump.parallel_jobs import stop_workers, submitted, worker_ended
from kdump.questions.find.answer import Found
from kdump.questions.find.coverage import Coverage, RemoteOffsets
from kdump.questions.find.search import FindQuery, Search
from kdump.signals import uninterrupted

Files = list[tuple[Target, int]]
MOST = 64
"""Number of messages that are sent together."""
LONGEST = 0.1
"""Seconds that a match waits for others."""


class Searched(NamedTuple):
    """The last message about a directory. `failures`: what could not be read."""

    coverage: Coverage
    remote: RemoteOffsets
    failures: dict[str, str]


Message = Found | Target | SourceError | Searched
"""A Target: the file is about to be read."""


class _Sender:
    """Sends messages through the pipe of a worker, several together."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._waiting: list[Message] = []
        self._sent = time.monotonic()

    def add(self, message: Message) -> None:
        self._waiting.append(message)
        if len(self._waiting) >= MOST:
            self.flush()

    def tick(self) -> None:
        if self._waiting and time.monotonic() - self._sent > LONGEST:
            self.flush()

    def flush(self) -> None:
        self._pipe.send(self._waiting)
        self._waiting, self._sent = [], time.monotonic()


def _search(number: int, query: FindQuery, directories: list[Files], limit: int | None) -> None:
    """Search directories in a worker, and send what is found."""
    sender = _Sender(workers.pipes[number])
    with counted(query.options) as options:
        count = options.more

        def more(size: int) -> None:
            count(size)
            sender.tick()

        search = Search(replace(query, run=replace(options, more=more, begin=sender.add, unreadable=sender.add)))
        for files in directories:
            search.coverage, search.remote = Coverage(), RemoteOffsets()
            for found in islice(search.matches(files), limit):
                sender.add(found.alone())
            sender.add(Searched(search.coverage, search.remote, unreadable_paths.failures()))
            sender.flush()


class SearchWorkers:
    """Workers at work: `owners` has the pipe that the matches in a directory come through, by its number."""

    def __init__(
        self,
        pool: ProcessPoolExecutor,
        counter: SharedCounter,
        owners: list[tuple[Connection, Future[None]]],
        directories: list[Files],
    ) -> None:
        self._pool, self._counter, self._owners, self._directories = pool, counter, owners, directories
        self._is_broken = False

    def stop(self) -> None:
        """Kill them: they search what is not wanted any more."""
        stop_workers(self._pool)

    def matches(self, number: int, search: Search, limit: int | None) -> Iterator[Found]:
        """Yield the matches in the directory with this number, which is the next one; `search` gets what is counted. If
        a worker has ended, this process searches the rest."""
        count, files = 0, self._directories[number]
        try:
            while not self._is_broken:
                for message in self._received(number, search.query):
                    if isinstance(message, Searched):
                        search.coverage.merge(message.coverage)
                        search.remote.merge(message.remote)
                        unreadable_paths.add(message.failures)
                        return
                    if isinstance(message, Found):
                        count += 1
                        yield message
                    elif isinstance(message, Target):
                        search.options.begin(message)
                    else:
                        search.options.unreadable(message)
        except BrokenExecutor:
            self._is_broken = True
            search.options.unreadable(worker_ended(files[0][0].path))
        yield from islice(search.matches(files), count, limit)

    def _received(self, number: int, query: FindQuery) -> list[Message]:
        pipe, future = self._owners[number]
        while not pipe.poll(PAUSE):
            query.options.more(self._counter.take())
            if future.done() and not pipe.poll():
                future.result()  # raises what ended it
                raise BrokenExecutor
        try:
            received: list[Message] = pipe.recv()
        except (EOFError, OSError):  # it ended, perhaps within a message
            raise BrokenExecutor from None
        return received


def start_workers(
    stack: ExitStack,
    query: FindQuery,
    directories: list[Files],
    sizes: list[int],
    processes: int,
) -> SearchWorkers | None:
    """Start workers, each of which searches directories of about the same total size; None if that cannot be done."""
    pipes: list[tuple[Connection, Connection]] = [Pipe(duplex=False) for _ in range(processes)]
    for pipe in pipes:
        stack.enter_context(closing(pipe[0]))
        stack.enter_context(closing(pipe[1]))
    made = worker_pool(stack, processes, query.paths, [sends for _, sends in pipes])
    if made is None:
        return None
    pool, counter = made
    stack.callback(stop_workers, pool)
    totals, parts, numbers = [0] * processes, [list[Files]() for _ in pipes], []
    for files, size in zip(directories, sizes):
        least = totals.index(min(totals))
        totals[least] += size + 1
        parts[least].append(files)
        numbers.append(least)
    with uninterrupted():  # so that stop_workers reaches every worker that was started
        futures = [submitted(pool, _search, number, query, part, query.limit) for number, part in enumerate(parts)]
    for _, sends in pipes:
        sends.close()  # so that what a worker has sent ends when it does
    return SearchWorkers(pool, counter, [(pipes[number][0], futures[number]) for number in numbers], directories)
