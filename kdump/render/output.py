"""Standard output: what it is, and writing to it so that nothing waits for the whole file."""

from __future__ import annotations

import fcntl
import os
import stat
import sys
import time
from contextlib import suppress
from typing import BinaryIO

from kdump.log.errors import SourceError

BUFFER = 64 * 1024
PIPE = 1 << 20
"""Bytes that a pipe is given room for: as many as anybody may ask for (/proc/sys/fs/pipe-max-size)."""
PATIENCE = 0.1
"""Seconds that a finished line may wait in the buffer."""


class Output:
    """Lines or bytes to standard output. `terminal` says whether a person watches."""

    def __init__(self) -> None:
        if sys.stdout is None:
            raise SourceError("standard output is closed")
        self.terminal = sys.stdout.isatty()
        self._parts: list[bytes] = []
        self._size = 0
        self._flushed = 0.0
        self._stream = sys.stdout.buffer
        _widen(self._stream)

    @property
    def colour(self) -> bool:
        return self.terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    @property
    def width(self) -> int | None:
        """Columns of the terminal; None in a pipe, where nothing is cut."""
        if not self.terminal:
            return None
        import shutil

        return max(20, shutil.get_terminal_size().columns)

    def line(self, text: str) -> None:
        self.write(text.encode("utf-8", "backslashreplace") + b"\n")

    def wrapped(self, text: str, indent: int) -> list[str]:
        """The text in lines that fit the terminal, all but the first with an indent; in a pipe it stays one line."""
        from textwrap import wrap

        return [text] if self.width is None else wrap(text, self.width, subsequent_indent=" " * indent) or [""]

    def write(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)
        if self._size >= BUFFER or self.terminal:
            self.flush()
        else:
            self.tick()

    def write_now(self, data: bytes | memoryview) -> None:
        """As `write`, of bytes that will not stay as they are: small ones are copied, many go out at once."""
        if len(data) < BUFFER:
            self.write(bytes(data))
            return
        self.flush()
        self._out(data)

    def tick(self) -> None:
        """Called now and then while no line comes: what has waited long enough goes out."""
        if self._size and time.monotonic() - self._flushed > PATIENCE:
            self.flush()

    def flush(self) -> None:
        data = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        self._out(data)

    def _out(self, data: bytes | memoryview) -> None:
        try:
            left = memoryview(data)
            while left:
                done = self._stream.write(left)
                if done is None:  # somebody has made it non-blocking, and it is full
                    time.sleep(PATIENCE / 10)
                else:
                    left = left[done:]
            self._stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            # Python would try once more, and complain, when it ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            raise SourceError(f"standard output: {error.strerror}") from error
        self._flushed = time.monotonic()


def _widen(stream: BinaryIO) -> None:
    """A pipe gets more room, so that writer and reader need not take turns every 64 KiB."""
    with suppress(OSError, AttributeError):  # it is no pipe, the user has too many large ones, or this is no Linux
        if stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode):
            fcntl.fcntl(stream, fcntl.F_SETPIPE_SZ, PIPE)
