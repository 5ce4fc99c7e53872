"""The files and directories that are read: those of this machine, below the path of a bundle, those that it describes
(docs/bundle.md), and files that remote storage adds to a directory. The functions are those of os and os.path.

What only this machine has is asked of os itself: output directories, /proc, decoders' files."""

from __future__ import annotations

import os
import stat as modes
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from errno import EPERM
from itertools import chain
from typing import Any, Protocol

from kdump.io.link_boundary import refusal, refuse


class Entry(Protocol):
    """What scandir yields."""

    @property
    def name(self) -> str: ...
    @property
    def path(self) -> str: ...
    def is_dir(self) -> bool: ...
    def stat(self) -> os.stat_result: ...


class FileTree(Protocol):
    """Files that are not on this machine's disks. `inside` is a path relative to the tree, empty for its root; each
    method raises OSError as the system call does."""

    def stat(self, inside: str, *, follow: bool = True) -> os.stat_result: ...
    def entries(self, inside: str, path: str) -> Iterator[Entry]:
        """Return what is in a directory whose path the user sees as `path`. Iterating raises OSError, too."""
        ...

    def readlink(self, inside: str) -> str: ...
    def open(self, inside: str, path: str) -> Any:
        """Return a kdump.io.source.Source of a file. Raises SourceError."""
        ...

    def has_records(self, inside: str) -> bool:
        """Return False if segments in a directory lack records."""
        ...


class AddedFiles(FileTree, Protocol):
    """Files that are shown in a directory next to those that are there. `is_directory`: it is not there itself."""

    is_directory: bool

    def __contains__(self, name: object) -> bool: ...


_trees: dict[str, FileTree] = {}
"""By absolute path."""
_added: dict[str, AddedFiles] = {}
"""By the absolute path of the directory."""
_source = ""


def mount(path: str, tree: FileTree) -> None:
    """Show a tree in the place of what is at `path`."""
    _trees[os.path.abspath(path)] = tree


def unmount(path: str) -> None:
    """Show again what is at `path` on this machine."""
    _trees.pop(os.path.abspath(path), None)


def add_files(added: dict[str, AddedFiles], source: str = "") -> None:
    """Show files in directories, by their absolute paths, in place of those that were added before. `source`: the path
    or URL that they are from."""
    global _added, _source
    _added, _source = added, source


def added_files() -> tuple[dict[str, AddedFiles], str]:
    """Return what was added, and where it is from."""
    return _added, _source


def is_mounted() -> bool:
    """Return True if any tree is mounted, or files are added, or a source that has none."""
    return bool(_trees or _added or _source)


def tree_at(path: str) -> tuple[FileTree, str] | None:
    """Return the tree in which a path is, and the path in it; None if it is in none."""
    if not (_trees or _added) or path == "-" or "://" in path or "\0" in path:
        return None
    full = os.path.abspath(path)
    above, _, name = full.rpartition("/")
    if above in _added and name in _added[above]:
        return _added[above], name
    if full in _added and _added[full].is_directory:
        return _added[full], ""
    for root, tree in _trees.items():
        if full == root:
            return tree, ""
        if full.startswith(root + "/"):
            return tree, full[len(root) + 1 :]
    return None


def stat(path: str, *, follow: bool = True) -> os.stat_result:
    tree = tree_at(path)
    return os.stat(path, follow_symlinks=follow) if tree is None else tree[0].stat(tree[1], follow=follow)


def _mode(path: str, *, follow: bool = True) -> int:
    """Return the mode of a file, 0 if it does not exist."""
    try:
        return stat(path, follow=follow).st_mode
    except (OSError, ValueError):
        return 0


def exists(path: str) -> bool:
    return bool(_mode(path))


def lexists(path: str) -> bool:
    return bool(_mode(path, follow=False))


def isdir(path: str) -> bool:
    return modes.S_ISDIR(_mode(path))


def isfile(path: str) -> bool:
    return modes.S_ISREG(_mode(path))


def islink(path: str) -> bool:
    return modes.S_ISLNK(_mode(path, follow=False))


def getsize(path: str) -> int:
    return stat(path).st_size


def has_records(path: str) -> bool:
    """Return False if segments in a directory are described in a bundle that does not have all of their records."""
    tree = tree_at(path)
    return tree is None or tree[0].has_records(tree[1])


def readlink(path: str) -> str:
    tree = tree_at(path)
    return os.readlink(path) if tree is None else tree[0].readlink(tree[1])


def scandir(path: str) -> AbstractContextManager[Iterator[Any]]:
    """Raises OSError, also for a link that leads out of the log directories."""
    tree = tree_at(path)
    if tree is None:
        refuse(path)
    here = os.scandir(path) if tree is None else nullcontext(tree[0].entries(tree[1], path))
    added = _added.get(os.path.abspath(path)) if _added else None
    return here if added is None or added.is_directory else _both(here, added.entries("", path))


@contextmanager
def _both(here: AbstractContextManager[Iterator[Any]], added: Iterator[Entry]) -> Iterator[Iterator[Any]]:
    with here as entries:
        yield chain(entries, added)


def listdir(path: str) -> list[str]:
    with scandir(path) as entries:
        return [entry.name for entry in entries]


def walk(
    top: str, onerror: Callable[[OSError], object] | None = None, *, followlinks: bool = False
) -> Iterator[tuple[str, list[str], list[str]]]:
    if tree_at(top) is None:
        for directory, below, files in os.walk(top, onerror=onerror, followlinks=followlinks):
            yield directory, below, files
            for name in list(below) if followlinks else ():
                path = os.path.join(directory, name)
                reason = refusal(path)
                if reason is not None:
                    below.remove(name)
                    if onerror is not None:
                        onerror(OSError(EPERM, reason, path))
        return
    try:
        with scandir(top) as listing:
            entries = list(listing)
    except OSError as error:
        if onerror is not None:
            onerror(error)
        return
    below = [entry.name for entry in entries if entry.is_dir()]
    yield top, below, [entry.name for entry in entries if not entry.is_dir()]
    for name in below:
        path = os.path.join(top, name)
        if followlinks or not islink(path):
            yield from walk(path, onerror, followlinks=followlinks)
