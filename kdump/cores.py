"""How many pieces of work go on side by side where nobody says."""

from __future__ import annotations

import os

MOST = 4
"""More would wait for the disk, and for each other, and each takes memory."""


def usual_jobs() -> int:
    """As many as this process may use cores."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        cores = os.cpu_count() or 1
    return min(MOST, cores)
