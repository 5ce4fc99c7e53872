"""The files that a bundle consists of, in a directory or packed into a tar file."""

from __future__ import annotations

import errno
import os
import stat
import tarfile
from collections.abc import Callable
from functools import partial

from kdump.format.bundle_container import ReadAt
from kdump.log.bundle_names import CONTAINER, MANIFEST
from kdump.log.errors import SourceError

ReadMember = Callable[[str], tuple[ReadAt, int]]
"""Returns a function that reads a member (position, count), and its size in bytes. Raises OSError."""


def read_member(root: str, name: str) -> tuple[ReadAt, int]:
    """Find a member of a bundle that is a directory. Raises OSError."""
    path = os.path.join(root, name)
    if os.path.islink(path) or not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    return partial(_pread, path, 0), os.stat(path).st_size


def _pread(path: str, base: int, position: int, count: int) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(fd, count, base + position)
    finally:
        os.close(fd)


def packed_members(path: str) -> ReadMember:
    """Return a function that finds the members of a tar file. Raises SourceError for members that no bundle has."""
    members: dict[str, tuple[int, int]] = {}
    try:
        with tarfile.open(path, "r:") as archive:
            for member in archive:
                if member.isdir():
                    continue
                name = member.name
                known = name == MANIFEST or (name.endswith(CONTAINER) and name.count("/") == 1)
                if not member.isreg() or not known or name.startswith("/") or ".." in name.split("/"):
                    raise SourceError(f"{path}: {name!r} is not a file of a bundle; nothing of it was read")
                members[name] = (member.offset_data, member.size)
    except (tarfile.TarError, OSError) as error:
        raise SourceError(f"{path}: not a packed bundle: {error}") from error

    def read(name: str) -> tuple[ReadAt, int]:
        if name not in members:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        start, size = members[name]
        return lambda position, count: _pread(path, start, position, max(0, min(count, size - position))), size

    return read
