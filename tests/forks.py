"""Runs functions in forked processes. Imports nothing of kdump."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable


def exit_status(run: Callable[[], object]) -> int:
    """Run a function in a fork, and return the status with which a Python process would exit after it; a signal is
    negative."""
    pid = os.fork()
    if not pid:
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
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
