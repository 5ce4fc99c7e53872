"""What a bundle knows of a directory's files, and where their contents are (docs/bundle.md)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Any, NamedTuple

from kdump.format.errors import DecodeError
from kdump.io.frames import FramesReader
from kdump.io.sorted_lines import Extent, SortedLines, extent_of
from kdump.io.untrusted_json import integer, optional_path_text, path_text, text
from kdump.io.withheld import FileStatus, Log

STRUCT = "BundleIndex"
MAX_FILE = 1 << 30
"""Maximum bytes of a small file: of an index."""
MAX_FILES = 500_000
"""Maximum number of files of a directory: commands list their names. A broker's partitions have 200,000 at most."""
MAX_NAME = 255
"""Maximum bytes of a file's name: NAME_MAX."""


class Bytes(NamedTuple):
    """The contents of another file, without the zeros at its end. `size`: bytes of the contents, None if as many as the
    file's status has: those of a redacted file are others."""

    data: Extent
    size: int | None = None


class StoredFile(NamedTuple):
    """A file or directory. `status` is that of the link itself if `target`, what it points to, is not None; `followed`
    is that of the file at its end, None if it has none. `error`: why its contents are not in the bundle; `refused`:
    they would not be the next time either, unless the file changes."""

    name: str
    status: FileStatus
    target: str | None = None
    followed: FileStatus | None = None
    contents: Log | Bytes | None = None
    error: str | None = None
    refused: bool = False

    @property
    def seen(self) -> FileStatus | None:
        """The status with links followed; None for a broken link."""
        return self.status if self.target is None else self.followed

    @property
    def is_directory(self) -> bool:
        return self.seen is not None and stat.S_ISDIR(self.seen.mode)


class StoredDirectory:
    """A directory, whose files are read when they are asked for. `path`: relative to the one that was bundled, empty
    for that itself; `error`: why it could not be listed. Raises DecodeError."""

    def __init__(self, frames: FramesReader) -> None:
        self.frames = frames
        try:
            self._rows = SortedLines(frames, extent_of(frames.part.about["index"]))
            first: tuple[Any, Any] = next(iter(self._rows), (None, None))
            key, head = first
            if key != "":
                raise ValueError("the index has no head")
            self.path = path_text(head["path"])
            if self.path and not all(map(_is_name, self.path.split("/"))):
                raise ValueError(f"{self.path[:40]!r} is not a relative path")
            self.status = _status(head["status"])
            if not stat.S_ISDIR(self.status.mode):
                raise ValueError(f"the mode {self.status.mode:o} is not that of a directory")
            self.error = optional_path_text(head["error"])
            self._count = integer(head["files"], 0, MAX_FILES)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DecodeError(STRUCT, "", 0, f"{type(error).__name__}: {error}") from error

    def __len__(self) -> int:
        """Number of its files."""
        return self._count

    def find(self, name: str) -> StoredFile | None:
        """Return a file; None if there is none of that name."""
        row = self._rows.find(name) if name else None
        return None if row is None else _file_of(name, row)

    def files(self) -> Iterator[StoredFile]:
        """Yield the files, sorted by name."""
        count = -1  # the head
        for name, row in self._rows:
            count += 1
            if count > self._count:
                break
            if count:
                yield _file_of(name, row)
        if count != self._count:
            raise DecodeError(STRUCT, "files", 0, f"{self._count} files expected, but not found")


def head_of(path: str, status: FileStatus, error: str | None, files: int) -> dict[str, Any]:
    """Return what an index has of the directory itself, as an object of JSON's types."""
    return {"path": path, "status": status, "error": error, "files": files}


def row_of(file: StoredFile) -> dict[str, Any]:
    """Return what the index has of a file under its name, as an object of JSON's types."""
    row: dict[str, Any] = {"status": file.status}
    if file.target is not None:
        row |= {"target": file.target, "followed": file.followed}
    if isinstance(file.contents, Log):
        row["log"] = file.contents._asdict()
    elif file.contents is not None:
        row["bytes"] = file.contents.data
        if file.contents.size is not None:
            row["size"] = file.contents.size
    if file.error is not None:
        row |= {"error": file.error, "refused": file.refused}
    return row


def _file_of(name: str, row: Any) -> StoredFile:
    try:
        return _file(name, row)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DecodeError(STRUCT, "", 0, f"{type(error).__name__}: {error}") from error


def _file(name: str, row: Any) -> StoredFile:
    if not _is_name(path_text(name)):
        raise ValueError(f"{name[:40]!r} is not a file name")
    contents: Log | Bytes | None = None
    if "log" in row:
        contents = _log(row["log"])
    elif "bytes" in row:
        changed = row.get("size")
        contents = Bytes(extent_of(row["bytes"]), None if changed is None else integer(changed, 0, MAX_FILE))
    followed = row.get("followed")
    return StoredFile(
        name,
        _status(row["status"]),
        optional_path_text(row.get("target")),
        None if followed is None else _status(followed),
        contents,
        optional_path_text(row.get("error")),
        row.get("refused") is True,
    )


def _log(row: Any) -> Log:
    hash_key = row["hashKey"]
    return Log(
        extent_of(row["data"]),
        optional_path_text(row["error"]),
        tuple((integer(position), integer(count)) for position, count in row["unreadable"]),
        row["incomplete"] is True,
        row["redacted"] is True,
        row["checksums"] is True,
        None if row["keyed"] is None else row["keyed"] is True,
        None if hash_key is None else text(hash_key),
        row["totals"],
        {text(name): extent_of(extent) for name, extent in row["known"].items()},
    )


def _is_name(name: str) -> bool:
    is_possible = bool(name) and name not in (".", "..") and "/" not in name and "\0" not in name
    return is_possible and len(os.fsencode(name)) <= MAX_NAME


def _status(row: Any) -> FileStatus:
    status = FileStatus(*map(integer, row))
    if not 0 <= status.mode < 1 << 16 or not 0 <= status.size < 1 << 63 or status.allocated < 0:
        raise ValueError(f"{status} is impossible")
    return status
