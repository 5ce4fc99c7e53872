"""Runs functions in forked processes. Imports nothing of kdump, except to run it."""

from __future__ import annotations

import fcntl
import gc
import os
import pty
import signal
import struct
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn


def exit_status(run: Callable[[], object]) -> int:
    """Run a function in a fork, and return the status with which a Python process would exit after it; a signal is
    negative."""
    pid = os.fork()
    if not pid:
        gc.freeze()  # see tests/unread.py
        run_and_exit(run)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def run_and_exit(run: Callable[[], object]) -> NoReturn:
    """Run a function, and end this process with the status with which a Python process would exit after it."""
    status = 1
    try:
        run()
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    finally:
        sys.settrace(None)
        sys.stdout.flush()
        os._exit(status)


def signal_arrives(number: int) -> None:
    """Send this process a signal, and discard what is in its file of standard error: what was printed before may stay,
    and the run says nothing after it."""
    os.ftruncate(2, 0)
    os.lseek(2, 0, os.SEEK_SET)
    signal.raise_signal(number)


def become_kdump(*arguments: str) -> NoReturn:
    """Run a command on the standard streams, and exit. For a fork, whose modules are imported, as nothing else of a
    terminal is about how Python starts."""
    from kdump.cli import main

    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.argv = ["kdump", *arguments]
    run_and_exit(main)


def in_terminal(*arguments: object, columns: int = 80, environment: dict[str, str] | None = None) -> str:
    """Return what a command of kdump writes to a terminal of that width, without progress, however slow it is."""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        for name in ("NO_COLOR", "COLUMNS", "LINES"):
            os.environ.pop(name, None)
        os.environ.update({"TERM": "xterm-256color", **(environment or {})})
        from kdump.render import progress

        progress.PATIENCE = float("inf")
        become_kdump(*map(str, arguments))
    parts = []
    with suppress(OSError):  # the other end is closed
        while part := os.read(terminal, 65536):
            parts.append(part)
    os.waitpid(pid, 0)
    return b"".join(parts).decode().replace("\r\n", "\n")
