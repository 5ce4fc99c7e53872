"""The parts that a bundle consists of, in a directory or one after another in a file: each has the files of one
directory."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable
from functools import partial

from kdump.format.errors import DecodeError
from kdump.io.bundle.names import MANIFEST, ZSTD, other_format
from kdump.io.errors import SourceError
from kdump.io.frames import FramesReader, Part, last_end, part_before

ReadPart = Callable[[str], FramesReader]
"""Returns the reader of a part, by its name. Raises OSError, and DecodeError if it is damaged."""


def part_of_directory(root: str, name: str) -> FramesReader:
    """Open a part of a bundle that is a directory. Raises OSError and DecodeError."""
    path = os.path.join(root, name)
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    read_at = partial(_read, path)
    part = part_before(read_at, status.st_size)
    if part.start or part.name != name:
        raise DecodeError("Part", "name", 0, f"it is that of {part.name[:40]!r}")
    return FramesReader(read_at, part)


def _read(path: str, position: int, count: int) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(fd, count, position)
    finally:
        os.close(fd)


def parts_of_file(path: str) -> ReadPart:
    """Return a function that finds the parts of a file, which may have been cut off: what is missing then is missing in
    the bundle. Raises SourceError for a file that is no bundle of this format."""
    read_at = partial(_read, path)
    ends: dict[str, int] = {}
    try:
        size = os.stat(path).st_size
        if read_at(0, len(ZSTD)) != ZSTD:
            raise SourceError(_refusal(path, read_at(0, 1 << 16)))
        end = size
        try:
            part_before(read_at, end)
        except DecodeError:
            end = last_end(read_at, size)
        while end:
            part: Part = part_before(read_at, end)
            ends.setdefault(part.name, end)  # a later one takes the place of an earlier one
            end = part.start
    except DecodeError as error:
        raise SourceError.at(path, f"the bundle is damaged: {error}") from error
    except OSError as error:
        raise SourceError.at(path, str(error.strerror)) from error
    if MANIFEST not in ends:
        raise SourceError.at(path, f"not a packed bundle: it has no {MANIFEST}")

    def read(name: str) -> FramesReader:
        if name not in ends:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        return FramesReader(read_at, part_before(read_at, ends[name]))

    return read


def _refusal(path: str, data: bytes) -> str:
    """Return the message for a tar file that is not compressed, which begins with this data."""
    if re.search(rb'"format": *1\b', data):
        return other_format(path, 1)
    return f"{path}: a bundle that was decompressed: give the path of the compressed file"
