"""Exceptions of the log layer, for a path or device that cannot be read. Bad bytes never raise an exception here."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["SourceError"]


class Located(str):
    """The text of an error. `path`: the file or directory that it is about, as it is written in the text; empty if it
    is about no single one."""

    path: str

    def __new__(cls, text: str, path: str = "") -> Self:
        """`path`: by default, that of the text, if it is Located."""
        made = super().__new__(cls, text)
        made.path = path or getattr(text, "path", "")
        return made


def is_about(text: str, path: str) -> bool:
    """Return True if a text is Located and about this path, with which it begins."""
    return getattr(text, "path", None) == path


def whole_path(text: str) -> str:
    """Return the absolute path of what a text is about, or its URL; empty if it is not Located."""
    path = getattr(text, "path", "")
    return os.path.abspath(path) if path and "://" not in path else path


def same_failure(text: str) -> tuple[str, str]:
    """Return what is equal for two texts about one failure: its path may be written in several ways."""
    return whole_path(text), text.replace(getattr(text, "path", ""), "", 1)


class SourceError(Exception):
    """A path or device cannot be read. The message is one line: path, position and reason. The command line prints it
    and exits with 2, except for a Gone."""

    def __init__(self, message: str = "", path: str = "") -> None:
        super().__init__(message if isinstance(message, Located) else Located(message, path))

    @classmethod
    def at(cls, path: str, reason: str) -> Self:
        """Return the error for a path that cannot be read for this reason."""
        return cls(f"{path}: {reason}", path)

    @property
    def path(self) -> str:
        """What cannot be read, as it is written in the message; empty if that is no single path."""
        return getattr(str(self), "path", "")

    def __str__(self) -> str:
        """Return the text, which is Located; a Gone or Unread keeps its type."""
        text: str = self.args[0]
        return text


class SourceNotFound(SourceError):
    """The file or directory does not exist, or no longer exists."""


class DamagedObject(SourceError):
    """The bytes of an object in remote storage are not what its plugin writes."""


class Unlisted(SourceError):
    """A directory cannot be listed: it may contain anything."""


class RequestLimit(SourceError):
    """An object store may be asked for nothing more."""


class ReadingStopped(SourceError):
    """Raised to stop reading a file because the time for it is over."""


class Unread(Located):
    """The text of a SourceError in a list of problems that are text: something was not read at all."""


class NotKnown(Unread):
    """That something was read that only a release newer than the newest known one writes: what it means is not known.
    It begins with where it is."""


NOT_KNOWN = "NOT ALL IS KNOWN"
"""How an answer begins that depends on it."""


def not_known(problems: Iterable[str]) -> str:
    """Return how an answer begins if one of the problems is a NotKnown; else an empty string."""
    first = next((problem for problem in problems if isinstance(problem, NotKnown)), "")
    return first and f"{NOT_KNOWN}: {first}; "


class Gone(Located):
    """The text of a SourceError about a file or directory that was listed and no longer exists, because retention,
    compaction or topic deletion removed it, or that no broker reads. It is noted, the rest is read, and the exit status
    is 0."""


class Foreign(Gone):
    """The text of a SourceError about a directory that no broker reads, so that the answer is complete without it."""


def went_away(path: str) -> Gone:
    """Return the message for a file or directory that went away."""
    return Gone(f"{path}: deleted during this run, for example by retention or compaction", path)


def is_gone(problem: SourceError | str) -> bool:
    """Return True if the problem is only a note, not an error."""
    return isinstance(str(problem) if isinstance(problem, SourceError) else problem, Gone)  # str() of a Gone is a str


def unread(error: SourceError) -> Unread | Gone:
    """Return the error's text for a list of problems that are text."""
    message = str(error)
    return message if isinstance(message, Gone) else Unread(message)


def is_missing(error: OSError) -> bool:
    """Return True if the file or directory does not exist, or no longer exists."""
    return error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)


def is_only_noted(error: OSError, path: str) -> bool:
    """Return True if what cannot be listed went away, or is lost+found: every ext4 file system has it, for root alone,
    and a broker knows it by its name only (LogManager.loadLogs)."""
    return is_missing(error) or (error.errno == errno.EACCES and os.path.basename(path) == "lost+found")


def listing_error(error: OSError, path: str) -> Located:
    """Return why a directory, or a file that was listed in one, cannot be read."""
    if is_missing(error):
        return went_away(path)
    if is_only_noted(error, path):
        return Foreign(f"{path}: fsck's directory, which no broker reads, may not be read by this user", path)
    return Located(f"{path}: {reason(error, path)}", path)


def reading_error(error: OSError, path: str, position: int) -> Located:
    """Return why an open file cannot be read: on NFS, one that another machine has deleted is gone (ESTALE)."""
    text = f"{path}: cannot read at byte {position}: {error.strerror}"
    return went_away(path) if is_missing(error) else Located(text, path)


def reason(error: OSError, path: str) -> str:
    """Return why something cannot be read: what the system says and, if this user may not read it or look into a
    directory above it, whose that is, its mode, and who may."""
    if error.errno != errno.EACCES:
        return str(error.strerror)
    import stat

    whole = os.path.abspath(path)
    above = (whole[:end] for end, letter in enumerate(whole) if letter == "/" and end)
    closed = next((directory for directory in above if not os.access(directory, os.X_OK, effective_ids=True)), whole)
    try:
        status = os.lstat(closed)
    except OSError:
        return str(error.strerror)
    owner, user = _user(status.st_uid), os.geteuid()
    readers = [owner] * (status.st_uid not in (0, user)) + ["root"] * (user != 0)
    what = "it" if closed == whole else closed
    because = f"because {what} is owned by {owner} with mode {stat.filemode(status.st_mode)}"
    return f"{error.strerror}, {because}" + (f"; run kdump as {' or '.join(readers)}" if readers else "")


def _user(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"UID {number}"


def damaged_mount(path: str, error: Exception) -> SourceError:
    """Return the error for a file in a bundle that is damaged."""
    return SourceError.at(path, f"the bundle is damaged: {error}; make it again")


def within(place: str, problem: str) -> str:
    """Prefix the problem with its location. An Unread or Gone begins with its path, and stays as it is."""
    return problem if isinstance(problem, (Unread, Gone)) else f"{place}: {problem}"


OnUnreadable = Callable[[SourceError], object]
"""Called with the error for something that could not be read; processing continues with the rest."""


def raise_error(error: SourceError) -> None:
    """An OnUnreadable that makes any unreadable file fatal: raises the error, unless no broker reads it."""
    if not isinstance(str(error), Foreign):
        raise error
