"""Standard output and standard error of a run: a closed or full stream does not change the exit status.

The exit status is a result about the disk. A failure to write to standard output is reported once, on standard error;
text that cannot be written to standard error is lost."""

from __future__ import annotations

import errno
import io
import os
import select
import sys
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

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        with STATUS.giving_way(view, to_terminal=self._is_terminal):
            self._write_all(view)
        return len(view)

    def _write_all(self, data: memoryview) -> None:
        if self.is_lost:
            return
        try:
            write_all(self.fileno(), data)
        except OSError as error:
            self.is_lost = True
            if error.errno != errno.EPIPE:
                self._report(error)
            elif self.ends_with_reader:
                raise ReaderGone from None

    def _report(self, error: OSError) -> None:
        if self._reported_as:
            reason = "closed" if error.errno == errno.EBADF else error.strerror
            sys.stderr.write(f"kdump: {self._reported_as}: {reason}; the remaining output is discarded\n")
            sys.stderr.flush()


_output: Lossy | None = None


def settle() -> None:
    """Make standard output and standard error Lossy. Closed streams are connected to the null device: otherwise the
    next file to be opened, perhaps for writing, would get their file descriptor."""
    global _output
    stdout, stderr = sys.stdout, sys.stderr
    for fd, stream in enumerate((sys.stdin, stdout, stderr)):
        if stream is None:
            _fill(fd)
    sys.stderr = _text(Lossy(2), stderr)
    _output = Lossy(1, "standard output")
    sys.stdout = _text(_output, stdout)


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
