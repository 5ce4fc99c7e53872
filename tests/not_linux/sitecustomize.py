"""Makes a process that starts with this directory in PYTHONPATH one on a system that is not Linux: what only Linux has
is gone from Python's modules, libc and the file system."""

from __future__ import annotations

import builtins
import ctypes
import errno
import fcntl
import io
import mmap
import os
import select
import sys
from typing import Any

MISSING: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (os, ("posix_fadvise", "posix_fallocate", "sched_getaffinity", "sched_setaffinity", "sendfile", "copy_file_range")),
    (os, ("splice", "memfd_create", "eventfd", "pidfd_open", "getxattr", "listxattr", "setxattr", "getrandom")),
    (os, ("O_TMPFILE", "O_DIRECT", "O_NOATIME", "O_PATH", "preadv", "pwritev", "fdatasync", "setns", "unshare")),
    (os, tuple(name for name in dir(os) if name.startswith(("POSIX_FADV_", "SCHED_", "EFD_", "MFD_", "RWF_")))),
    (fcntl, tuple(name for name in dir(fcntl) if name.startswith(("F_SETPIPE", "F_GETPIPE", "F_OFD_", "F_ADD_SEALS")))),
    (mmap, ("MAP_POPULATE", "MAP_STACK", "MADV_HUGEPAGE", "MAP_NORESERVE")),
    (select, ("epoll",)),
)
PLACES = ("/proc", "/sys")
OF_LIBC = ("syscall", "mallopt", "syncfs", "malloc_trim", "prctl", "cachestat")

for module, names in MISSING:
    for name in names:
        if hasattr(module, name):
            delattr(module, name)


def _without_places(function: Any) -> Any:
    def call(path: Any = ".", *arguments: Any, **more: Any) -> Any:
        text = os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else ""
        if text in PLACES or text.startswith(tuple(f"{place}/" for place in PLACES)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), text)
        return function(path, *arguments, **more)

    return call


for name in ("open", "stat", "lstat", "scandir", "listdir", "readlink", "access"):
    setattr(os, name, _without_places(getattr(os, name)))
io.open = builtins.open = _without_places(builtins.open)


class _Library(ctypes.CDLL):
    """A C library without the functions of glibc and Linux."""

    def __getattr__(self, name: str) -> Any:
        if name in OF_LIBC:
            raise AttributeError(name)
        return super().__getattr__(name)


ctypes.CDLL = _Library  # type: ignore[misc]
sys.platform = "freebsd14"
