"""The files and directories that this run of a command tried to read and could not, wherever in the code that was.

Many answers also depend on small files next to the segments, and are given without one that cannot be read. Then not
all was read, which the first line and the exit status must show. Whatever opens, lists or reads files notes every
failure here, so that no reader of a small file has to pass it on."""

from __future__ import annotations

import os

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


def same_failure(message: str) -> str:
    """Return what is equal for two lines about one failure: the path with which they begin may be written in several
    ways, relative, absolute, or with a "." in it."""
    path, colon, reason = message.partition(": ")
    return f"{os.path.abspath(path)}{colon}{reason}" if colon and "://" not in path else message


def failures() -> dict[str, str]:
    """Return one line for each path that could not be read, by absolute path."""
    return dict(_found or {})
