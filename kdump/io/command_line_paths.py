"""The paths on the command line, and which of them existed when the run began: a file that goes away while a command
runs is retention at work, and one that was never there is a typo."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from kdump.io import file_system
from kdump.io.errors import SourceError, SourceNotFound, reason, went_away
from kdump.io.link_boundary import NO_ROOTS, begin

_present: frozenset[str] = frozenset()
"""Paths that the user named and that existed when the run began."""


def note_existing_paths(words: Iterable[str]) -> None:
    """Note which of these words of a command line are paths that exist. A named file or directory that is missing later
    went away while the command ran; one that is missing now is an error of whoever named it."""
    local = (without_slash(word) for word in words if "://" not in word)
    set_existing_paths(frozenset(word for word in local if file_system.exists(word)))


def set_existing_paths(paths: frozenset[str], roots: Mapping[str, str] = NO_ROOTS) -> None:
    """Set the paths that existed when the run began. `roots`: as link_boundary.begin has them, in a worker process."""
    global _present
    _present = paths
    begin(paths, roots)


def existing_paths() -> frozenset[str]:
    """Return the paths that `note_existing_paths` has found."""
    return _present


def without_slash(path: str) -> str:
    """Return a path without slashes at its end, which mean nothing to Kafka or to kdump, and one that begins with - as
    ./-…, as a command that is printed of it needs it."""
    if "://" in path:
        return path
    path = path.rstrip("/") or path[:1]
    return f"./{path}" if path[:1] == "-" != path else path


def missing(path: str) -> SourceError:
    """Return the error for a path that does not exist, or may not be looked for; its text is a Gone if it existed when
    the run began."""
    try:
        file_system.stat(path, follow=False)
    except FileNotFoundError:
        pass
    except OSError as error:
        return SourceError.at(path, reason(error, path))
    except ValueError:  # a null byte
        pass
    return SourceNotFound(went_away(path) if path in _present else f"{path}: no such file or directory")


def no_kafka_files(path: str, message: str) -> SourceError:
    """Return the error for a directory without any Kafka files. It, or a named file in it, may have gone in the
    meantime."""
    if "://" in path:
        return SourceError(message, path)
    here = os.path.abspath(path)
    gone = (
        present for present in _present if here in (os.path.abspath(present), os.path.dirname(os.path.abspath(present)))
    )
    lost = next((present for present in gone if not file_system.exists(present)), path)
    return SourceError(message, path) if file_system.exists(lost) else missing(lost)
