"""The files and directories that this run of a command tried to read and could not, wherever in the code that was.

Many answers also depend on small files next to the segments, and are given without one that cannot be read. Then not
all was read, which the first line and the exit status must show. Whatever opens, lists or reads files notes every
failure here, so that no reader of a small file has to pass it on."""

from __future__ import annotations

import os
from itertools import combinations

_found: dict[str, str] | None = None
"""The first failure of each path, in order; None outside of a command, as in a program that uses kdump as a library."""


def begin() -> None:
    """Forget earlier failures: a run begins."""
    global _found
    _found = {}


def note(path: str, message: str) -> None:
    """Note that `path` could not be read, or not completely. `message`: one line that begins with the path."""
    if _found is not None:
        _found.setdefault(os.path.abspath(path), message)


def add(failures: dict[str, str]) -> None:
    """Note the failures of a worker."""
    for path, message in failures.items():
        note(path, message)


def same_failure(message: str) -> str:
    """Return what is equal for two lines about one failure: the path with which they begin may be written in several
    ways, relative, absolute, or with a "." in it."""
    is_url = "://" in message.partition(": ")[0]
    # Where the path ends is unknown, as it may contain ": ": each end begins a component that is not that of a path.
    return message if is_url or ": " not in message else os.path.abspath(message.replace(": ", "/\0"))


def paths_in(message: str) -> set[str]:
    """Return what may be an absolute path in a message, whose parts ": " separates: a path may contain that, too."""
    parts = message.split(": ")
    return {os.path.abspath(": ".join(parts[begin:end])) for begin, end in combinations(range(len(parts) + 1), 2)}


def failures() -> dict[str, str]:
    """Return one line for each path that could not be read, by absolute path."""
    return dict(_found or {})
