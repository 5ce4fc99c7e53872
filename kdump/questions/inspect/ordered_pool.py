"""Thread pool whose tasks write their output in submission order.

Threads are sufficient, because codecs, checksums and the compiled core run without the interpreter lock;
docs/performance.md compares them with processes.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from kdump.render.stdout import Output

HELD = 4 << 20
"""Bytes of output that a task may buffer before its turn; then it blocks."""


class OrderedPool:
    """A pool of `jobs` threads that write to `output`. Nothing else may use `output` between `submit` and `drain`."""

    def __init__(self, output: Output, jobs: int) -> None:
        self.output = output
        self.jobs = jobs
        self._changed = threading.Condition()
        self._waiting: deque[tuple[int, Callable[[OutputSlot], None]]] = deque()
        self._submitted = 0
        self._turn = 0
        self._error: BaseException | None = None
        self._threads: list[threading.Thread] = []

    def submit(self, work: Callable[[OutputSlot], None]) -> None:
        """Queue `work`; blocks while `jobs` tasks are waiting. Raises the exception of an earlier task, if one
        failed."""
        with self._changed:
            self._changed.wait_for(lambda: self._error or len(self._waiting) < self.jobs)
            self._raise()
            self._waiting.append((self._submitted, work))
            self._submitted += 1
            self._changed.notify_all()
        if len(self._threads) < self.jobs:
            thread = threading.Thread(target=self._run, daemon=True)
            self._threads.append(thread)
            thread.start()

    def drain(self) -> None:
        """Wait until all output is written. Raises the exception of a task, if one failed."""
        with self._changed:
            self._changed.wait_for(lambda: self._error or self._turn == self._submitted)
            self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                number, work = self._waiting.popleft()
                self._changed.notify_all()
            turn = OutputSlot(self, number)
            try:
                work(turn)
                turn.end()
            except BaseException as error:
                with self._changed:
                    self._error = self._error or error
                    self._changed.notify_all()
                return

    def wait(self, number: int) -> None:
        """Wait until it is this task's turn to write. Raises the exception of another task: its output will never
        come."""
        with self._changed:
            self._changed.wait_for(lambda: self._error or self._turn == number)
            self._raise()

    def done(self) -> None:
        """Pass the turn to the next task."""
        with self._changed:
            self._turn += 1
            self._changed.notify_all()


class OutputSlot(Output):
    """Output of one task: buffered until the tasks before it have written theirs."""

    def __init__(self, ordered: OrderedPool, number: int) -> None:
        self.ordered = ordered
        self.number = number
        self.terminal = False
        self._parts: list[bytes] = []
        self._size = 0
        self._mine = False

    def write(self, data: bytes) -> None:
        if self._mine:
            self.ordered.output.write(data)
            return
        self._parts.append(data)
        self._size += len(data)
        if self._size >= HELD:
            self._take()

    def write_now(self, data: bytes | memoryview) -> None:
        if self._mine:
            self.ordered.output.write_now(data)
        else:
            self.write(bytes(data))

    def tick(self) -> None:
        pass

    def flush(self) -> None:
        pass

    def end(self) -> None:
        """Write what is buffered and pass on the turn."""
        self._take()
        self.ordered.output.flush()
        self.ordered.done()

    def _take(self) -> None:
        """Wait for the turn, then write what is buffered."""
        if self._mine:
            return
        self.ordered.wait(self.number)
        self._mine = True
        parts, self._parts, self._size = self._parts, [], 0
        for part in parts:
            self.ordered.output.write_now(part)
