"""Standard output and standard error of a run: a closed or full stream does not change the exit status.

The exit status is a result about the disk. A failure to write to standard output is reported once, on standard error;
text that cannot be written to standard error is lost."""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from collections.abc import Callable
from typing import Any, TextIO

from kdump.status_line import STATUS


class ReaderGone(BaseException):
    """Raised when the reader of standard output has gone (`| head`) and the command has no other result."""


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Write all bytes, also if another process has made the pipe non-blocking. Raises OSError."""
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(fd, left) :]
        except BlockingIOError:
            select.select([], [fd], [])


class Lossy(io.FileIO):
    """A file descriptor whose writes appear to succeed: after the first failure, data is discarded."""

    def __init__(self, fd: int, name: str = "") -> None:
        super().__init__(fd, "wb", closefd=False)
        self._reported_as = name
        """Name of the stream in the report of the first failure; empty: do not report it."""
        self._is_terminal = self.isatty()
        self.is_lost = False
        self.ends_with_reader = False
        """Whether to raise ReaderGone, once, when the reader of a pipe has gone."""
        self.before: Callable[[], None] | None = None
        """Called before each write to a terminal."""
        self.pipe: int | None = None
        """File descriptor that data goes to instead, and not to the terminal."""
        self.held: bytearray | None = None
        """Text that waits until the pager has left the terminal."""

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        if self.held is not None:
            self.held += view[: MAX_HELD - len(self.held)]
            return len(view)
        if self.before is not None and self._is_terminal:
            self.before()
        with STATUS.giving_way(view, to_terminal=self._is_terminal and self.pipe is None):
            self._write_all(view)
        return len(view)

    def _write_all(self, data: memoryview) -> None:
        if self.is_lost:
            return
        try:
            write_all(self.fileno() if self.pipe is None else self.pipe, data)
        except OSError as error:
            self.is_lost = True
            if self.pipe is not None:
                release_errors()
            if error.errno != errno.EPIPE:
                self._report(error)
            elif self.ends_with_reader:
                release_errors()
                raise ReaderGone from None

    def _report(self, error: OSError) -> None:
        if self._reported_as:
            reason = "closed" if error.errno == errno.EBADF else error.strerror
            sys.stderr.write(f"kdump: {self._reported_as}: {reason}; the remaining output is discarded\n")
            sys.stderr.flush()


_output: Lossy | None = None
_errors: Lossy | None = None
MAX_HELD = 1 << 16
"""Maximum bytes of standard error that are held while a pager has the terminal; the rest is lost."""


def settle() -> None:
    """Make standard output and standard error Lossy. Closed streams are connected to the null device: otherwise the
    next file to be opened, perhaps for writing, would get their file descriptor."""
    global _output, _errors
    stdout, stderr = sys.stdout, sys.stderr
    for fd, stream in enumerate((sys.stdin, stdout, stderr)):
        if stream is None:
            _fill(fd)
    _errors = Lossy(2)
    sys.stderr = _text(_errors, stderr)
    _output = Lossy(1, "standard output")
    sys.stdout = _text(_output, stdout)


def before_error(action: Callable[[], None] | None) -> None:
    """Have `action` called before each write to standard error, if it is a terminal."""
    if _errors is not None:
        _errors.before = action


def divert(pipe: int | None) -> None:
    """Write standard output to this pipe from here on, to a pager that has the terminal; None: to the terminal again,
    unless the reader of the pipe had gone. Until `release_errors`, progress is not shown, and standard error is held
    if it is the terminal."""
    if _output is None:
        return
    _output.pipe = pipe
    if pipe is not None:
        STATUS.is_paused = True
        if _errors is not None and _errors.isatty():
            _errors.held = bytearray()


def release_errors() -> None:
    """Write what standard error has held, and show progress again: the pager has left the terminal."""
    STATUS.is_paused = False
    if _errors is not None and _errors.held is not None:
        held, _errors.held = _errors.held, None
        _errors.write(held)


def end_with_reader(ends: bool) -> None:
    """Set whether ReaderGone ends the run when the reader has gone; otherwise it continues without output."""
    if _output is not None:
        _output.ends_with_reader = ends


def _fill(fd: int) -> None:
    """Open the null device as the closed descriptor `fd`: read-only, so that writes still fail."""
    null = os.open(os.devnull, os.O_RDONLY)
    if null != fd:
        os.dup2(null, fd)
        os.close(null)
    os.set_inheritable(fd, True)


def _text(raw: Lossy, before: TextIO | None) -> TextIO:
    encoding, errors = (before.encoding, before.errors) if before is not None else ("utf-8", "backslashreplace")
    buffer = io.BufferedWriter(raw)
    return io.TextIOWrapper(buffer, encoding, errors, line_buffering=raw.fileno() == 2 or raw.isatty())
