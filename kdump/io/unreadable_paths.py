"""The files and directories that a run tried to read and could not, wherever in the code that was.

Many answers also depend on small files next to the segments, and are given without one that cannot be read. Then not
all was read, which the first line and the exit status must show. Whatever opens, lists or reads files notes every
failure here, so that no reader of a small file has to pass it on."""

from __future__ import annotations

from contextvars import ContextVar

from kdump.io.errors import whole_path

_found: ContextVar[dict[str, str] | None] = ContextVar("failures", default=None)
"""The first failure of each path, in order, of the run of this context: a command, a worker, or a call of the API."""


def begin() -> None:
    """Begin a run in this context, without failures."""
    _found.set({})


def note(message: str) -> None:
    """Note that a path could not be read, or not completely. `message`: a Located."""
    found = _found.get()
    if found is not None:
        found.setdefault(whole_path(message), message)


def add(failures: dict[str, str]) -> None:
    """Note the failures of a worker."""
    for message in failures.values():
        note(message)


def failures() -> dict[str, str]:
    """Return one line for each path that could not be read, by `whole_path`."""
    return dict(_found.get() or {})
