"""What the log layer raises: a path or device that cannot be read. Bad bytes are never an exception here."""

from __future__ import annotations

import errno
from collections.abc import Callable


class SourceError(Exception):
    """One line: which path, where in it, and why. The command line shows it and exits with 2, except for a Gone."""

    def __str__(self) -> str:
        """The text as it was given: a Gone or Unread keeps its type."""
        return self.args[0] if self.args and isinstance(self.args[0], str) else super().__str__()


class Missing(SourceError):
    """There is no file or directory at the path, or no longer."""


class Unread(str):
    """The text of a SourceError, among other problems that are text: something was not read at all."""


class Gone(str):
    """The text of a SourceError about a file or directory that was listed and is no longer there: retention, compaction
    or a deleted topic at work. It is noted; the rest is read, and the exit status is 0."""


def went_away(path: str) -> Gone:
    """The one sentence for it."""
    return Gone(f"{path}: went away while this ran, as retention or compaction does")


def is_gone(problem: SourceError | str) -> bool:
    """Return True for what is to be noted, and is not an error."""
    return isinstance(str(problem) if isinstance(problem, SourceError) else problem, Gone)  # str() of a Gone is a str


def unread(error: SourceError) -> Unread | Gone:
    """The text of what could not be read, among other problems that are text."""
    text = str(error)
    return text if isinstance(text, Gone) else Unread(text)


def is_missing(error: OSError) -> bool:
    """Return True if the file or directory is not there, or no longer."""
    return error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)


def listing_error(error: OSError, path: str) -> str:
    """Why a directory that was listed, or a file in one, cannot be read."""
    return went_away(path) if is_missing(error) else f"{path}: {error.strerror}"


def within(place: str, problem: str) -> str:
    """The problem with where it is; an Unread stays one."""
    return type(problem)(f"{place}: {problem}")


Refused = Callable[[SourceError], None]
"""Is told of what could not be read, and the work goes on with the rest."""


def raise_it(error: SourceError) -> None:
    """The Refused of those who want none: what cannot be read ends the work."""
    raise error
