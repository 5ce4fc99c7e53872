"""Lets this process yield to all others (--idle), to spare a live broker's processor and disk."""

from __future__ import annotations

import os
import sys

NICENESS = 19
"""The lowest priority for the processor."""
IDLE_CLASS = 3
"""IOPRIO_CLASS_IDLE: the disk is used only while no other process uses it (with the I/O schedulers bfq and, for writes,
mq-deadline; others ignore it)."""
CLASS_SHIFT = 13
WHO_PROCESS = 1
IOPRIO_SET = {"x86_64": 251, "aarch64": 30}
"""Number of the system call ioprio_set, by machine."""

_is_idle = False


def be_idle() -> None:
    """Give this process the lowest priority for processor and disk. Processes and threads that it starts inherit both.
    The disk's priority is set only on Linux; a system that refuses it (a sandbox) leaves it unchanged."""
    import ctypes
    import platform

    global _is_idle
    _is_idle = True
    os.nice(NICENESS - os.getpriority(os.PRIO_PROCESS, 0))
    call = IOPRIO_SET.get(platform.machine()) if sys.platform == "linux" else None
    if call is not None:
        ctypes.CDLL(None).syscall(call, WHO_PROCESS, 0, IDLE_CLASS << CLASS_SHIFT)


def is_idle() -> bool:
    """Return True after `be_idle`."""
    return _is_idle
