"""The paths on the command line, and which of them existed when the run began: a file that goes away while a command
runs is retention at work, and one that was never there is a typo."""

from __future__ import annotations

import os
from collections.abc import Iterable

from kdump.log.errors import SourceError, went_away

_present: frozenset[str] = frozenset()
"""Paths that the user named and that existed when the run began."""


def look_at(words: Iterable[str]) -> None:
    """Note which of these words of a command line are paths that exist. A named file or directory that is missing later
    went away while the command ran; one that is missing now is an error of whoever named it."""
    be_present(frozenset(word for word in words if "://" not in word and os.path.exists(word)))


def be_present(paths: frozenset[str]) -> None:
    """Set the paths that existed when the run began, in a worker process."""
    global _present
    _present = paths


def present() -> frozenset[str]:
    """Return the paths that `look_at` has found."""
    return _present


def missing(path: str) -> SourceError:
    """Return the error for a path that does not exist; its text is a Gone if it existed when the run began."""
    return SourceError(went_away(path) if path in _present else f"{path}: no such file or directory")


def nothing_in(path: str, text: str) -> SourceError:
    """Return the error for a directory without any Kafka files, which may have gone in the meantime."""
    return SourceError(text) if "://" in path or os.path.exists(path) else missing(path)
