"""Progress bar on stderr for long operations, if stderr is a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from kdump.render.escape import path_text, printable
from kdump.render.output import Output

PATIENCE = 1.0
"""Seconds before a bar is shown."""


class Progress:
    """A bar with bytes, rate and remaining time for one file. No bar is shown if rows go to the same terminal, because
    they already show progress, unless the rows come only at the end (`always`)."""

    def __init__(self, name: str, output: Output, *, always: bool = False) -> None:
        self.name = name
        self.wanted = sys.stderr.isatty() and (always or not output.terminal)
        self.total = 0
        """Total bytes that will be passed to `more`; 0 if unknown."""
        self._done = 0
        self._started = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, activity: str) -> None:
        """Show what is being done after everything has been read; "" removes the text."""
        if not self.wanted:
            return
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        sys.stderr.write(f"\r\x1b[K{activity} …" if activity else "\r\x1b[K")
        sys.stderr.flush()

    def at(self, position: int, size: int | None) -> None:
        """Report that the file has been read to `position` of `size` bytes (None: unknown)."""
        if not self.wanted:
            return
        if self._bar is None:
            if time.monotonic() - self._started < PATIENCE:
                return
            self._start(size)
        self._bar.update(self._task, completed=position, total=size)

    def more(self, count: int) -> None:
        """Report that `count` more bytes have been read, of `total`."""
        self._done += count
        self.at(self._done, self.total or None)

    def expect(self, total: int) -> None:
        self.total = total

    def _start(self, size: int | None) -> None:
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
        from rich.progress import Progress as Bars

        name = escape(printable(path_text(self.name)))
        columns = (TextColumn(name), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
        self._bar = Bars(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("", total=size)
        self._bar.start()
