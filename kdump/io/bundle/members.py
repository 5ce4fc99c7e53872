"""The files that a bundle consists of, in a directory or packed into a tar file."""

from __future__ import annotations

import errno
import os
import stat
import tarfile
from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from itertools import accumulate
from typing import NamedTuple

from kdump.format.container import ReadAt
from kdump.io.bundle.names import MANIFEST, container_of_part, part_name
from kdump.io.errors import SourceError

ReadMember = Callable[[str], tuple[ReadAt, int]]
"""Returns a function that reads a member (position, count), and its size in bytes. Raises OSError."""


def read_member(root: str, name: str) -> tuple[ReadAt, int]:
    """Find a member of a bundle that is a directory, with its parts if it was unpacked there. Raises OSError."""
    pieces: list[_Piece] = []
    while True:
        path = os.path.join(root, part_name(name, len(pieces)))
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            if not pieces:
                raise
            return _joined(pieces)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        if pieces and not status.st_size:
            return _joined(pieces)
        pieces.append(_Piece(path, 0, status.st_size))


class _Piece(NamedTuple):
    """Consecutive bytes of a member: `size` of the file `path`, from `start` on."""

    path: str
    start: int
    size: int


def _joined(pieces: list[_Piece]) -> tuple[ReadAt, int]:
    if len(pieces) == 1:
        return partial(_read, pieces[0]), pieces[0].size
    ends = list(accumulate(piece.size for piece in pieces))

    def read_at(position: int, count: int) -> bytes:
        joined = []
        for number in range(bisect_right(ends, position), len(pieces)):
            if count <= 0:
                break
            data = _read(pieces[number], position - ends[number] + pieces[number].size, count)
            joined.append(data)
            position, count = position + len(data), count - len(data)
        return b"".join(joined)

    return read_at, ends[-1]


def _read(piece: _Piece, position: int, count: int) -> bytes:
    fd = os.open(piece.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(fd, max(0, min(count, piece.size - position)), piece.start + position)
    finally:
        os.close(fd)


def packed_members(path: str) -> ReadMember:
    """Return a function that finds the members of a tar file, which may end early: what is missing then is missing in
    the bundle. Raises SourceError for members that no bundle has."""
    members: dict[str, list[_Piece]] = {}
    try:
        with tarfile.open(path, "r:") as archive:
            size = os.stat(path).st_size
            for member in archive:
                if not member.isdir():
                    _add(members, member, path, size)
                archive.members = []  # type: ignore[attr-defined]  # all that it has read
    except (tarfile.TarError, OSError) as error:
        if MANIFEST not in members:
            raise SourceError(f"{path}: not a packed bundle: {error}") from error

    def read(name: str) -> tuple[ReadAt, int]:
        if name not in members:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        return _joined(members[name])

    return read


def _add(members: dict[str, list[_Piece]], member: tarfile.TarInfo, path: str, size: int) -> None:
    """Add a member of a tar file of `size` bytes. A later one takes the place of an earlier one of its name."""
    name = member.name
    container = container_of_part(name) if name.count("/") == 1 else None
    if not member.isreg() or not (container or name == MANIFEST) or ".." in name.split("/") or name.startswith("/"):
        raise SourceError(f"{path}: {name!r} is not a file of a bundle; nothing of it was read")
    piece = _Piece(path, member.offset_data, member.size)
    if piece.start + piece.size > size:
        if container:
            members.pop(container, None)
    elif container in (None, name):
        members[name] = [piece]
    elif piece.size and name != part_name(container or "", len(members.get(container or "", ()))):
        raise SourceError(f"{path}: {name!r} is not the next part of a file of a bundle; nothing of it was read")
    elif piece.size:
        members[container or ""].append(piece)
