"""The pager: output for people that is longer than the screen goes through it, if standard output is the terminal that
this process is in the foreground of.

Nothing waits for the end of the output: the pager starts with the line that does not fit on the screen. Until then the
lines are held for PATIENCE seconds at most. Output goes to the pager by a pipe of its own, and file descriptor 1 stays
the terminal, so that no other process keeps the pipe open, and the terminal's width is known."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from kdump import streams
from kdump.status_line import STATUS

if TYPE_CHECKING:  # it takes 10 ms to import, and most runs start no pager
    import subprocess

USUAL = ("less", "-FRX")
"""The pager if none is set: it shows colors, and leaves the text on the terminal."""
ESCAPE = r"\x1b\[[0-9;]*[A-Za-z]"
"""An escape sequence, which takes no room on the terminal."""
SHELL = frozenset("|&;<>$`*?")
"""Characters of a command that only a shell understands."""
PATIENCE = 0.2
"""Maximum seconds for which lines wait to be followed by more than fit on the screen."""
MAX_HELD = 1 << 20
"""Maximum bytes of output that are kept to be shown in the pager, too: more than any screen has. A value without line
breaks may be longer than memory."""
STDOUT = 1

_started: list[Pager] = []
"""The pagers of this run: at most one."""


def pager_command() -> list[str]:
    """Return the command of the user's pager, from KDUMP_PAGER, else PAGER, else USUAL; empty if there is none."""
    import shlex
    import shutil

    for name in ("KDUMP_PAGER", "PAGER"):
        command = os.environ.get(name)
        if command is not None:
            break
    else:
        return [*USUAL] if shutil.which(USUAL[0]) else []
    if SHELL & {*command}:
        return ["/bin/sh", "-c", command]
    try:
        words = shlex.split(command)
    except ValueError:
        return []
    is_pager = bool(words) and os.path.basename(words[0]) != "cat" and shutil.which(words[0]) is not None
    return words if is_pager else []


def can_page() -> bool:
    """Return True if there is someone who can use a pager: standard output is the terminal of this process, which is
    not in the background, and the terminal can do more than print."""
    if os.environ.get("TERM", "dumb") == "dumb" or not sys.stdout.isatty():
        return False
    try:
        return os.tcgetpgrp(STDOUT) == os.getpgrp() and sys.stdout.fileno() == STDOUT
    except (OSError, ValueError):
        return False


def use_pager() -> Pager | None:
    """Return the pager that output goes to from here on; None if there is none."""
    if _started:
        return _started[0]
    command = pager_command() if can_page() else []
    if not command:
        return None
    pager = Pager(command)
    _started.append(pager)
    streams.before_error(pager.release)
    return pager


def end_pager(*, now: bool = False) -> None:
    """Write what is still held, or wait until the user has quit the pager; `now`: end it."""
    while _started:
        _started.pop().end(now=now)
    streams.before_error(None)


class Pager:
    """Writes to the terminal until the output is longer than the screen, then to the pager, from the first line on."""

    def __init__(self, command: list[str]) -> None:
        import shutil

        self.command = command
        self._columns, lines = shutil.get_terminal_size()
        self._left = lines - 1
        """Lines of the terminal that are still free; one is left for the prompt."""
        self._lock = threading.RLock()
        self._all: list[bytes] = []
        """The output so far, until the pager starts."""
        self._size = 0
        """Its size in bytes."""
        self._held: list[bytes] = []
        """Its end that has not been written."""
        self._timer: threading.Timer | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._is_over = False

    def write(self, data: bytes | memoryview) -> None:
        """Write to the terminal or the pager, or hold the data for a moment."""
        with self._lock:
            if self._process is not None or self._is_over:
                _put(data)
                return
            output = bytes(data)
            self._all.append(output)
            self._held.append(output)
            self._size += len(output)
            self._left -= self._lines(output)
            if self._left < 0 or self._size > MAX_HELD:
                self._overflow()
            elif self._timer is None:
                self._timer = threading.Timer(PATIENCE, self.release)
                self._timer.daemon = True
                self._timer.start()

    def _lines(self, output: bytes) -> int:
        """Return how many lines of the terminal the text takes, up to one more than are free."""
        import re

        count = 0
        for line in output.split(b"\n", self._left + 1)[:-1]:
            length = len(re.sub(ESCAPE, "", line.decode("utf-8", "replace"))) if len(line) > self._columns else 0
            count += max(1, -(-length // self._columns))
        return count

    def release(self) -> None:
        """Write what is held to the terminal."""
        with self._lock:
            held, self._held = self._held, []
            if self._timer is not None:
                self._timer.cancel()
            for data in held:
                _put(data)

    def _overflow(self) -> None:
        """Start the pager, and write the output so far to it; if it cannot be started, write on to the terminal."""
        output, self._all = self._all, []
        if self._timer is not None:
            self._timer.cancel()
        if self._start():
            self._held = []
            for data in output:
                _put(data)
        else:
            self._is_over = True
            self.release()

    def _start(self) -> bool:
        """Start the pager. Return False if that fails."""
        STATUS.clear()
        import subprocess

        try:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, env={"LESS": "FRX", "LV": "-c"} | os.environ
            )
        except OSError:
            return False
        assert self._process.stdin is not None
        streams.before_error(None)
        streams.divert(self._process.stdin.fileno())
        return True

    def end(self, *, now: bool) -> None:
        """Write what is held; if the pager was started, wait until the user has quit it, or end it `now`."""
        self.release()
        process = self._process
        if process is None:
            return
        with suppress(ValueError):
            sys.stdout.flush()
        assert process.stdin is not None
        streams.divert(None)
        with suppress(OSError):
            process.stdin.close()
        if now:
            process.terminate()
        while process.returncode is None:
            try:
                process.wait()
            except KeyboardInterrupt:  # meant for the pager, which has the terminal
                continue
            except BaseException:  # a signal that ends this process
                process.terminate()
                raise
        streams.release_errors()


def _put(data: bytes | memoryview) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
