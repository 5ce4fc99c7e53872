"""Default number of parallel jobs."""

from __future__ import annotations

import os

from kdump.idle import is_idle

MAX_JOBS = 4
"""Maximum jobs: more would wait for the disk and for each other, and each uses memory."""


def usual_jobs() -> int:
    """Return the number of cores that this process may use, at most MAX_JOBS; 1 if it is to yield to others."""
    if is_idle():
        return 1
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        cores = os.cpu_count() or 1
    return min(MAX_JOBS, cores)
