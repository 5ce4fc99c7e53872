"""Runs functions in forked processes. Imports nothing of kdump, except to run it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import NoReturn


def exit_status(run: Callable[[], object]) -> int:
    """Run a function in a fork, and return the status with which a Python process would exit after it; a signal is
    negative."""
    pid = os.fork()
    if not pid:
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


def become_kdump(*arguments: str) -> NoReturn:
    """Run a command on the standard streams, and exit. For a fork, whose modules are imported, as nothing else of a
    terminal is about how Python starts."""
    from kdump.cli import main

    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.argv = ["kdump", *arguments]
    run_and_exit(main)
