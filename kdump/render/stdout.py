"""Standard output: its properties, and buffered writing that does not delay output until the whole file is read."""

from __future__ import annotations

import fcntl
import os
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO, TextIO

from kdump.render.escape import path_text, printable
from kdump.render.style import Paint, painter

BUFFER = 64 * 1024
PIPE = 1 << 20
"""Requested pipe capacity in bytes: the default limit for unprivileged users (/proc/sys/fs/pipe-max-size)."""
AUTO, ALWAYS, NEVER = COLORS = ("auto", "always", "never")
PATIENCE = 0.1
"""Maximum time in seconds that a finished line waits in the buffer."""


class Output:
    """Writes lines or bytes to standard output, or another stream as prepared by kdump.streams. `terminal`: output goes
    to a terminal. `color` is one of COLORS."""

    def __init__(self, color: str = AUTO, stream: TextIO | None = None) -> None:
        stream = stream or sys.stdout
        self.color = color
        self.terminal = stream.isatty()
        self.is_empty = True
        """Whether nothing has been written yet."""
        self.headline: Callable[[], str] | None = None
        """Returns a line to write before all others, or an empty string. Called when the first bytes are written: in a
        pipe, that is when BUFFER bytes are ready, or at the end."""
        self.left_out: dict[str, None] = {}
        """The columns of tables for which the terminal had no room."""
        self._parts: list[bytes] = []
        self._size = 0
        self._flushed = 0.0
        self._paint: Paint | None = None
        self._stream = stream.buffer
        _widen(self._stream)

    @property
    def colour(self) -> bool:
        """Whether to use colors. Under AUTO: on a terminal, or if FORCE_COLOR is set; NO_COLOR takes precedence."""
        if self.color != AUTO:
            return self.color == ALWAYS
        if os.environ.get("NO_COLOR"):
            return False
        return bool(os.environ.get("FORCE_COLOR")) or (self.terminal and os.environ.get("TERM", "dumb") != "dumb")

    @property
    def width(self) -> int | None:
        """Columns of the terminal; None for a pipe, where nothing is truncated."""
        if not self.terminal:
            return None
        import shutil

        return max(20, shutil.get_terminal_size().columns)

    def line(self, text: str) -> None:
        self.write(text.encode("utf-8", "backslashreplace") + b"\n")

    def wrapped(self, text: str, indent: int) -> list[str]:
        """Wrap the text to the terminal's width, with an indent on all lines but the first. A pipe gets a single
        line."""
        if self.width is None:
            return [text]
        from kdump.render.wrap import wrapped  # a pipe needs none of it

        return wrapped(text, self.width, " " * indent)

    def text(self, text: str, head: str = "", style: str = "", *, indent: int | None = None) -> None:
        """Write text for people, wrapped, and with what cannot be printed escaped. `style` is that of the first
        occurrence of `head`, or of all of it. Further lines are indented by `indent`, or by 2 more than the first."""
        text, head = printable(path_text(text)), printable(path_text(head))
        own = len(text) - len(text.lstrip()) + 2
        for number, line in enumerate(self.wrapped(text, own if indent is None else indent)):
            if head:
                line = line if number else line.replace(head, self.paint(head, style), 1)
            self.line(line if head or not line else self.paint(line, style))

    def title(self, text: str, style: str = "head") -> None:
        """Write an empty line, then a styled one."""
        self.line("")
        self.text(text, style=style)

    @property
    def paint(self) -> Paint:
        if self._paint is None:
            self._paint = painter(self.colour)
        return self._paint

    def write(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)
        if self._size >= BUFFER or self.terminal:
            self.flush()
        else:
            self.tick()

    def write_now(self, data: bytes | memoryview) -> None:
        """Like `write`, for a buffer that will be reused: small data is copied, large data is written immediately."""
        if len(data) < BUFFER:
            self.write(bytes(data))
            return
        self.flush()
        self._out(data)

    def tick(self) -> None:
        """Flush lines that have waited long enough. Call this regularly while no lines are written."""
        waits = self.headline is not None and self.is_empty and not self.terminal
        if self._size and not waits and time.monotonic() - self._flushed > PATIENCE:
            self.flush()

    def flush(self) -> None:
        data = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        self._out(data)

    def finish(self) -> None:
        """Flush, and write the headline even if there is nothing else to write."""
        self.flush()
        if self.is_empty:
            self._headline()
            self._stream.flush()

    def _headline(self) -> None:
        line = self.headline() if self.headline is not None else ""
        if line:
            self._put(line.encode("utf-8", "backslashreplace") + b"\n")

    def _out(self, data: bytes | memoryview) -> None:
        if self.is_empty and data:
            self._headline()
        self.is_empty = self.is_empty and not data
        self._put(data)
        self._flushed = time.monotonic()

    def _put(self, data: bytes | memoryview) -> None:
        self._stream.write(data)
        self._stream.flush()


def _widen(stream: BinaryIO) -> None:
    """Enlarge a pipe's buffer, so that writer and reader need not alternate every 64 KiB."""
    with suppress(OSError, AttributeError):  # not a pipe, the user's limit for large pipes is reached, or not Linux
        if stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode):
            fcntl.fcntl(stream, fcntl.F_SETPIPE_SZ, PIPE)
