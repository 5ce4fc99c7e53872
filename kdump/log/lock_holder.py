"""Detects a broker that is running on a log directory: it holds a lock on the .lock file (LogManager.lockLogDirs)."""

from __future__ import annotations

import os
import re

from kdump.io import file_system
from kdump.log.file_kinds import CLEAN_MARK, LOCK

LOCKS = "/proc/locks"
ENTRY = re.compile(r"POSIX\s+\S+\s+WRITE\s+(\d+)\s+([0-9a-f]+):([0-9a-f]+):(\d+)\s")


def is_running(directory: str) -> bool | None:
    """Return True if a broker is running on a log directory, False if it was shut down cleanly and not started since
    (LogManager.shutdown, loadLogs); None if that is unknown."""
    if lock_holder(directory) is not None:
        return True
    return False if file_system.exists(os.path.join(directory, CLEAN_MARK)) else None


def lock_holder(directory: str) -> int | None:
    """Return the ID of the process that holds the lock; None if there is none, or if it cannot be determined (not on
    Linux, in another container, on a network file system, in a bundle)."""
    if file_system.tree_at(directory) is not None:
        return None
    try:
        status = os.stat(os.path.join(directory, LOCK))
        with open(LOCKS) as file:
            lines = file.read()
    except OSError:
        return None
    device = os.major(status.st_dev), os.minor(status.st_dev)
    for process, major, minor, inode in ENTRY.findall(lines):
        if (int(major, 16), int(minor, 16), int(inode)) == (*device, status.st_ino):
            return int(process)
    return None
