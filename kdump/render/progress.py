"""Progress of long operations: one line on the terminal of standard error, for every command in the same way.

A command shows progress from its beginning to its end (`Progress` around all of it, in kdump.command_line.exit_status).
What it reads is a Progress inside, with a name, and a total where the size is known. The line appears when nothing has
been written to the terminal for PATIENCE seconds, so rows that come regularly replace it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from kdump.io.low_impact_reads import bytes_read
from kdump.render.amounts import duration_text, size_text
from kdump.render.escape import path_text, printable
from kdump.render.style import cut_start
from kdump.status_line import STATUS, STDERR

PATIENCE = 1.0
"""Seconds before the line is shown."""
PERIOD = 0.2
"""Seconds between two updates."""
WIDTH = 80
"""Columns of a terminal that does not report them."""
NAME = 0.4
"""Maximum part of the line that the name takes."""
FIGURES = 52
"""Columns left for the figures."""
BAR = 8
"""Minimum columns of the bar; without room for it, there is none."""
FULL, EMPTY = "━", "─"
STEADY = 1.0
"""Seconds after which the rate so far predicts the time that is left."""

_shown: list[Progress] = []
"""The operations in progress: the last one is shown."""


class Progress:
    """An operation in progress, shown within its `with` block if standard error is a terminal. `expected` returns the
    total in bytes; it is called only if the line is shown. `counts_reads`: shows all bytes that this process reads, as
    long as the operation reports none itself. Without a name, nothing is shown: waiting is no progress."""

    def __init__(self, name: str, *, expected: Callable[[], int] | None = None, counts_reads: bool = False) -> None:
        self.name = name
        self.done = 0
        """Bytes that have been processed."""
        self.total: int | None = None
        """Bytes that `done` will reach; None or 0 if unknown."""
        self._expected, self._counts_reads = expected, counts_reads
        self._activity = ""
        self._began = STATUS.clock()
        self._read_before = bytes_read()
        self._ticker: _Ticker | None = None

    def __enter__(self) -> Progress:
        if not is_enabled():
            self._expected = None  # nothing is shown, and `more` may be called for each batch
        elif not _shown:
            STATUS.quiet_since = STATUS.clock()
            self._ticker = _Ticker()
            self._ticker.start()
        _shown.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _shown.remove(self)
        if self._ticker is not None:
            self._ticker.end()

    @property
    def listeners(self) -> dict[str, Any]:
        """What a Run calls to show its progress here."""
        return {"more": self.more, "expect": self.expect, "at": self.at, "show": self.show}

    def show(self, activity: str) -> None:
        """Show what is being done before or after what `done` counts; "" for nothing."""
        self._activity = activity

    def at(self, position: int, size: int | None) -> None:
        """Report that the file has been read to `position` of `size` bytes (None: unknown)."""
        self.done, self.total = position, size

    def more(self, count: int) -> None:
        """Report that `count` more bytes have been read, of `total`."""
        self.done += count
        if self._expected is not None and is_due():
            self.total, self._expected = self._expected(), None

    def expect(self, total: int) -> None:
        self.total = total

    def text(self, width: int) -> str:
        """Return the line for a terminal of `width` columns."""
        if not self.name:
            return ""
        seconds = max(0.001, STATUS.clock() - self._began)
        done, total = self.done, self.total
        if self._counts_reads:
            done = done or bytes_read() - self._read_before
        name = cut_start(printable(path_text(self.name)), int(width * NAME))
        if self._activity:
            return cut_start(f"{name}: {self._activity} …", width)
        parts = [size_text(done)] if done else []
        share: float | None = None
        if total and done <= total:  # more than that: the file has grown
            share = done / total
            parts = [f"{int(100 * share)}%", f"{size_text(done)} of {size_text(total)}"]
        rate = done / seconds
        parts += [f"{size_text(int(rate))}/s"] if done else []
        if share and seconds >= STEADY:
            parts.append(f"{_seconds(seconds / share - seconds)} left")
        elif not share:
            parts.append(_seconds(seconds))
        line = "  ".join([name, *parts])
        bar = width - len(name) - FIGURES - 2
        if share is not None and bar >= BAR and len(line) + bar + 2 <= width:
            full = int(bar * share)
            line = "  ".join([name, FULL * full + EMPTY * (bar - full), *parts])
        return cut_start(line, width)


def is_enabled() -> bool:
    """Return True if standard error is a terminal that can show progress."""
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def is_due() -> bool:
    """Return True if progress is shown now."""
    return bool(_shown) and is_enabled() and STATUS.clock() - STATUS.quiet_since >= PATIENCE


def tick() -> None:
    """Show the operation in progress, if it is time."""
    shown = _shown[-1:]
    if shown and is_due():
        try:
            width = os.get_terminal_size(STDERR).columns or WIDTH
        except OSError:
            width = WIDTH
        STATUS.show(shown[0].text(width - 1))  # with a character in the last column, some terminals wrap


class _Ticker(threading.Thread):
    """Calls `tick` regularly, whatever the operation does meanwhile."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(PERIOD):
            tick()

    def end(self) -> None:
        self._ended.set()
        self.join(PERIOD)  # it may wait for a terminal that is stopped
        STATUS.clear()


def _seconds(seconds: float) -> str:
    return duration_text(int(max(0.0, seconds)) * 1000) if seconds >= 1 else "0 s"
