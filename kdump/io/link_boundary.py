"""Links in a log directory that lead out of it, and pipes and devices in one: they are named, and not read. Whoever may
write to a log directory could otherwise have root show what only root may read, or wait for ever."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Mapping
from functools import lru_cache

LINK_LEAVES = "a link leads out of the log directories"
NO_ROOTS: Mapping[str, str] = {}
_roots: dict[str, str] = {}
"""Log directories, and partition directories that are read by themselves, by their absolute path: where they are."""
_named: frozenset[str] = frozenset()
"""Where the paths are that the user named."""


def begin(named: Iterable[str], roots: Mapping[str, str] = NO_ROOTS) -> None:
    """Begin a run with these paths on its command line. `roots`: of the process that this one works for."""
    global _named
    _named = frozenset(map(os.path.realpath, named))
    _roots.clear()
    _roots.update(roots)
    _directory_above.cache_clear()
    _real.cache_clear()


def roots() -> dict[str, str]:
    """Return the directories that `add_root` was called for, by absolute path: where they are."""
    return dict(_roots)


def add_root(directory: str) -> None:
    """Note that a directory on this machine is a log directory, or a partition directory."""
    whole = os.path.abspath(directory)
    if whole not in _roots and refusal(whole) is None:
        _roots[whole] = os.path.realpath(whole)
        _directory_above.cache_clear()


def refusal(path: str) -> str | None:
    """Return why a file or directory below one of these directories is not read; None if it is, or is below none."""
    if not _roots:
        return None
    above, name = os.path.split(path)
    real_above, is_read = _directory_above(above)
    if real_above is None:
        return None
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode) or name in ("", ".", ".."):
            real_above, status = os.path.realpath(path), os.stat(path)
            is_read = _is_read(real_above)
    except (OSError, ValueError):
        return None
    if not is_read:
        real = os.path.realpath(path)
        return f"{LINK_LEAVES}, to {real}; it is not read unless you pass that path, too"
    return None if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode) else "not a file"


def refuse(path: str) -> None:
    """Raise OSError if the file or directory is not read."""
    reason = refusal(path)
    if reason is not None:
        raise OSError(errno.EPERM, reason, path)


@lru_cache(1024)
def _directory_above(path: str) -> tuple[str | None, bool]:
    """Return where a directory is that is at or below one of `_roots`, None if it is not; and whether what is in it is
    read."""
    directory = os.path.abspath(path)
    if not _is_below(directory, _roots):
        return None, False
    real = _real(directory)
    return real, _is_read(real)


@lru_cache(16)
def _real(directory: str) -> str:
    """Return where an absolute directory is, with fewer calls than os.path.realpath for many in one directory."""
    above, name = os.path.split(directory)
    return os.path.realpath(directory) if not name or os.path.islink(directory) else os.path.join(_real(above), name)


def _is_read(real: str) -> bool:
    return _is_below(real, frozenset(_roots.values())) or _is_below(real, _named)


def _is_below(path: str, directories: Mapping[str, str] | frozenset[str]) -> bool:
    """Return True if an absolute path is one of the directories, or below one."""
    while path not in directories:
        above = os.path.dirname(path)
        if above == path:
            return False
        path = above
    return True
