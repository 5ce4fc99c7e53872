"""File fingerprints (size, modification time) by which a scan recognizes unchanged files."""

from __future__ import annotations

from kdump.io import file_system
from kdump.io.directory_listing import is_url, version
from kdump.log.paths import Target

Stamp = tuple[int, int | str]
"""Size in bytes and modification time in ns; for an object store, whatever it provides instead."""


def file_stamp(target: Target) -> Stamp:
    """Return the current stamp of a file; the size is -1 if it does not exist or cannot be accessed."""
    if is_url(target.path):
        return version(target.path)
    try:
        now = file_system.stat(target.path)
    except OSError:
        return -1, 0
    return now.st_size, now.st_mtime_ns
