"""The file systems of log directories: their size, what is free, and what is reserved for root.

Only the broker's own host has these: there are none for a bundle, or for a copy of partitions."""

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
    """A file system, with the fields of SpaceDirectory. `free` is what any user can write, `reserved` what only root
    can (tune2fs -m). The numbers of inodes are None if they are not limited."""

    number: int
    mount: str | None
    fileSystem: str | None
    device: str | None
    total: int
    used: int
    free: int
    reserved: int
    inodes: int | None = None
    inodesFree: int | None = None


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
        status = os.statvfs(path)
        number = os.stat(path).st_dev
    except OSError:
        return None
    blocks = status.f_blocks, status.f_blocks - status.f_bfree, status.f_bavail, status.f_bfree - status.f_bavail
    sizes = (count * status.f_frsize for count in blocks)
    inodes = (status.f_files, status.f_favail) if status.f_files else (None, None)
    return FileSystem(number, *_mount_of(os.path.realpath(path)), *sizes, *inodes)


def _mount_of(path: str) -> tuple[str | None, str | None, str | None]:
    """Return mount point, type and device of the file system that contains `path`; None where they are unknown."""
    best: tuple[str | None, str | None, str | None] = None, None, None
    try:
        with open(MOUNTS, errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return best
    for line in lines:
        fields = [ESCAPED.sub(lambda match: chr(int(match[1], 8)), part) for part in line.split(" ")]
        if len(fields) > 2 and is_inside(path, fields[1]) and len(fields[1]) >= len(best[0] or ""):
            best = fields[1], fields[2], fields[0]
    return best


def state_of(broker: Node) -> str:
    """Return whether the broker is running, by the locks on its log directories."""
    if any(not_the_disk(directory) is not None for directory in broker.directories):
        return UNKNOWN
    return RUNNING if any(lock_holder(directory.path) is not None for directory in broker.directories) else STOPPED
