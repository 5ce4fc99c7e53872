"""The error of the operating system in a line: the reason, the files, and what Java threw.

Java writes them in five ways: `FileSystemException: FILE -> OTHER: REASON`; a class that is the reason, with the files
(`AccessDeniedException: FILE -> OTHER`); `FileNotFoundException: FILE (REASON)`; `IOException: REASON`; and a class
without anything (`ClosedChannelException`). Programs of a shell write `mkdir: cannot create directory 'FILE': REASON`.

Source: sun.nio.fs.UnixException.translateToIOException, WindowsException, java.io.FileInputStream.open."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

CLASS_REASONS = {
    "AccessDeniedException": "Permission denied",
    "NoSuchFileException": "No such file or directory",
    "FileNotFoundException": "No such file or directory",
    "FileAlreadyExistsException": "File exists",
    "DirectoryNotEmptyException": "Directory not empty",
    "NotDirectoryException": "Not a directory",
    "FileSystemLoopException": "Too many levels of symbolic links",
    "AtomicMoveNotSupportedException": "Invalid cross-device link",
    "SyncFailedException": "sync failed",
    "ClosedChannelException": "channel closed",
    "AsynchronousCloseException": "channel closed",
    "ClosedByInterruptException": "channel closed",
}
"""The reasons that are classes of their own."""
WITH_FILES = ("FileSystemException", *list(CLASS_REASONS)[:8])
_THROWN = re.compile(
    rf"(?<![\w$.])(?:[a-z]\w{{0,30}}\.){{0,6}}(?P<name>{'|'.join((*WITH_FILES, *list(CLASS_REASONS)[8:]))}"
    r"|IOException|UncheckedIOException|OutOfMemoryError)(?:: |(?=\s*$))"
)
_SHELL = re.compile(r"(?:[a-z][\w.+-]{0,40}: |[^\s:]{1,200}: line \d{1,6}: )")
"""A program, or a script and its line, before its message."""
_PATH = re.compile(r"'[^'\n]{1,1000}'|\"[^\"\n]{1,1000}\"|‘[^’\n]{1,1000}’|(?:/|[A-Za-z]:\\)[^\s:]{1,1000}")
LONGEST = 4000
"""Maximum number of characters of a line that are taken apart."""
LONGEST_REASON = 100


class IoError(NamedTuple):
    """An error of the operating system. `is_of_shell`: whether a program of a shell reports it, and not Java."""

    reason: str
    file: str = ""
    otherFile: str = ""
    is_of_shell: bool = False

    @property
    def parts(self) -> dict[str, str]:
        """The parts of a message that it has."""
        return {name: value for name, value in (("file", self.file), ("otherFile", self.otherFile)) if value}


def key_of(reason: str) -> str:
    """Return a reason as it is compared: systems differ in upper case and in a period at the end."""
    return reason.strip().rstrip(".").casefold()


def io_error(text: str, reasons: Collection[str]) -> IoError | None:
    """Return the innermost error of the operating system in a line; None if there is none with one of these `reasons`,
    as key_of returns them."""
    text = text[:LONGEST].rstrip()
    *_, thrown = None, *_THROWN.finditer(text)
    if thrown is not None:
        return _of_exception(thrown["name"], text[thrown.end() :], reasons)
    reason, files = _reason(text, reasons)
    if not reason:
        return None
    shell = _SHELL.match(files)
    if shell is not None:
        return IoError(reason, _path_in(files[shell.end() :]), is_of_shell=True)
    file, arrow, other = files.partition(" -> ")
    return IoError(reason, file, other) if arrow else IoError(reason, _path_in(files))


def _of_exception(name: str, rest: str, reasons: Collection[str]) -> IoError | None:
    reason, files = _reason(rest, reasons)
    if not reason:
        if name not in CLASS_REASONS or (name == "FileNotFoundException" and not _PATH.fullmatch(rest)):
            return None  # a reason that is not known, a class path, or another library's sentence
        reason, files = CLASS_REASONS[name], rest
    if name not in WITH_FILES:
        return IoError(reason, _path_in(files))
    file, _, other = files.partition(" -> ")
    return IoError(reason, file, other)


def _reason(text: str, reasons: Collection[str]) -> tuple[str, str]:
    """Return the reason at the end of a text, empty if none is known, and what is before it: FILE: REASON, or
    FILE (REASON)."""
    if key_of(text) in reasons:
        return text, ""
    before, _, reason = text.rpartition(": ")
    if key_of(reason) in reasons:
        return reason, before
    opening = text.rfind(" (") if text.endswith(")") else -1
    while opening > 0:  # some reasons contain brackets
        if key_of(text[opening + 2 : -1]) in reasons:
            return text[opening + 2 : -1], text[:opening]
        opening = text.rfind(" (", max(0, opening - LONGEST_REASON), opening)
    return "", ""


def _path_in(text: str) -> str:
    """Return the last path in a text, without quotes; empty if there is none."""
    paths = _PATH.findall(text)
    return paths[-1].strip("'\"‘’") if paths else ""
