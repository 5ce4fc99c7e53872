"""The last line of the terminal: shows progress on standard error, and gives way to everything else that is written."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

STDERR = 2
CLEAR = b"\r\x1b[K"


class StatusLine:
    """One line of text on the terminal of file descriptor `fd`. Every write to standard output and standard error goes
    through `giving_way` (kdump.streams), so that no text is mixed with it: a line is not shown while a write waits for
    its reader, nor after output that does not end with a line break."""

    def __init__(self, fd: int = STDERR, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.quiet_since = 0.0
        """When something else was last written to the terminal, by `clock`."""
        self._fd = fd
        self._lock = threading.RLock()
        self._shown = ""
        self._at_start = True  # what the terminal shows ends with a line break

    def show(self, text: str) -> None:
        """Show `text`, in place of the text before. It must fit in the terminal's width."""
        if not self._lock.acquire(blocking=False):  # something is being written, perhaps to a reader that waits
            return
        try:
            if text != self._shown and self._at_start and _is_in_foreground(self._fd):
                self._write(CLEAR + text.encode("utf-8", "backslashreplace"))
                self._shown = text
        finally:
            self._lock.release()

    def clear(self) -> None:
        with self._lock:
            if self._shown:
                self._write(CLEAR)
                self._shown = ""

    @contextmanager
    def giving_way(self, data: memoryview, *, to_terminal: bool) -> Iterator[None]:
        """Surround a write of `data` to standard output or standard error."""
        with self._lock:
            if to_terminal and data:
                self.clear()
            yield
            if to_terminal and data:
                self._at_start = data[-1] == ord("\n")
                self.quiet_since = self.clock()

    def _write(self, data: bytes) -> None:
        with suppress(OSError):
            os.write(self._fd, data)


def _is_in_foreground(fd: int) -> bool:
    """Return False for a job in the background of a shell, which must not write over what the user types."""
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:  # not the terminal that controls this process
        return True


STATUS = StatusLine()
"""The status line of this process."""
