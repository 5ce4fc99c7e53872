"""The file systems of log directories: their size, what is free, and what is reserved for root.

Only the broker's own host has these: there are none for a bundle, or for a copy of partitions.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from kdump.cluster.disks import Node
from kdump.io import file_system
from kdump.io.directory_listing import is_inside, is_url
from kdump.log.lock_holder import lock_holder
from kdump.log.log_directory import COPY_OF_PARTITIONS, LogDirectory
from kdump.questions.space.answer import RUNNING, STOPPED, UNKNOWN

MOUNTS = "/proc/self/mounts"
ESCAPED = re.compile(r"\\([0-7]{3})")


class FileSystem(NamedTuple):
    """A file system. `free` is what any user can write, `reserved` what only root can (tune2fs -m). The numbers of
    inodes are None if they are not limited."""

    device: int
    mount: str | None
    type: str | None
    source: str | None
    total: int
    used: int
    free: int
    reserved: int
    inodes: int | None = None
    inodes_free: int | None = None


def not_the_disk(directory: LogDirectory) -> str | None:
    """Return what a log directory is if it is not the broker's own disk, so that its file system and locks say nothing
    about the broker; None otherwise."""
    if is_url(directory.path):
        return "a URL"
    if file_system.tree_at(directory.path) is not None:
        return "a bundle"
    return COPY_OF_PARTITIONS if directory.is_copy_of_partitions else None


def file_system_of(directory: LogDirectory) -> FileSystem | None:
    """Return the file system of a log directory; None if it is not the broker's own disk, or if it cannot be
    determined."""
    if not_the_disk(directory) is not None:
        return None
    path = directory.path
    try:
        found = os.statvfs(path)
        device = os.stat(path).st_dev
    except OSError:
        return None
    mount, kind, source = _mount_of(os.path.realpath(path))
    size = found.f_frsize
    return FileSystem(
        device,
        mount,
        kind,
        source,
        found.f_blocks * size,
        (found.f_blocks - found.f_bfree) * size,
        found.f_bavail * size,
        (found.f_bfree - found.f_bavail) * size,
        found.f_files or None,
        found.f_favail if found.f_files else None,
    )


def _mount_of(path: str) -> tuple[str | None, str | None, str | None]:
    """Return mount point, type and device of the file system that contains `path`."""
    best: tuple[str | None, str | None, str | None] = None, None, None
    try:
        with open(MOUNTS, errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return best
    for line in lines:
        fields = [ESCAPED.sub(lambda match: chr(int(match[1], 8)), each) for each in line.split(" ")]
        if len(fields) > 2 and is_inside(path, fields[1]) and len(fields[1]) >= len(best[0] or ""):
            best = fields[1], fields[2], fields[0]
    return best


def state_of(broker: Node) -> str:
    """Return whether the broker is running, by the locks on its log directories."""
    if any(not_the_disk(each) is not None for each in broker.directories):
        return UNKNOWN
    return RUNNING if any(lock_holder(each.path) is not None for each in broker.directories) else STOPPED
