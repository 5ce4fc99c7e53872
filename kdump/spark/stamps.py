"""What changes when a file is written to: by which a scan knows one that it has read."""

from __future__ import annotations

import os

from kdump.log.listing import is_url, version
from kdump.log.paths import Target

Stamp = tuple[int, int | str]
"""Bytes, and the time of the last change in ns; of a store whatever it has for that."""


def stamp(at: Target) -> Stamp:
    """Of a file as it is now; of one that is not there, too."""
    if is_url(at.path):
        return version(at.path)
    try:
        now = os.stat(at.path)
    except OSError:
        return -1, 0
    return now.st_size, now.st_mtime_ns
