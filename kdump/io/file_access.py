"""Who may read what is written: nobody who may not read what it is made of."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress

from kdump.io.directory_listing import is_url

ALL, OWNER = 0o666, 0o600
"""Permission bits of a file that all may read and write, as far as the umask lets them, and of its owner's alone."""


def access_of(paths: Iterable[str]) -> int:
    """Return the permission bits for a new file made of what is at or below the paths: of the group and of others those
    that every file and directory there, and every directory above, gives them."""
    access = ALL
    for path in paths:
        if is_url(path) or path == "-":
            continue
        for status in _statuses(os.path.realpath(path)):
            access &= _access(status)
            if access == OWNER:
                return access
    return access


def _statuses(path: str) -> Iterator[os.stat_result]:
    """Yield the status of a file or directory, of the directories above it, and of what is below it."""
    above = path
    while above != os.path.dirname(above):
        above = os.path.dirname(above)
        with suppress(OSError):
            yield os.stat(above)
    with suppress(OSError):
        yield os.stat(path)
    for directory, below, files in os.walk(path):
        for name in (*below, *files):
            with suppress(OSError):  # it went away, or is a broken link
                yield os.stat(os.path.join(directory, name))


def _access(status: os.stat_result) -> int:
    """Return the bits for a file that those may read who may read this one, or enter this directory."""
    group, others = status.st_mode >> 3 & 7, status.st_mode & 7
    if status.st_gid != os.getegid():
        group = others  # the new file is of another group
    if stat.S_ISDIR(status.st_mode):
        group, others = (6 if bits & 1 else 0 for bits in (group, others))
    return OWNER | (group & 6) << 3 | others & 6


def of_directory(access: int) -> int:
    """Return the permission bits of a directory whose files have these."""
    return access | (access & 0o444) >> 2


def make_directories(path: str, access: int) -> None:
    """Create a directory, and those above it that do not exist, for files with these permission bits."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for directory in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(directory, of_directory(access))


def new_file(path: str, access: int) -> int:
    """Create a file with these permission bits, and return its descriptor. Raises OSError, also if it exists."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, access)
