"""Reads the index of a bundle's container: a directory and its files (docs/bundle.md). Checked: it comes from another
host."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Any

from kdump.format.container import ContainerReader
from kdump.format.errors import DecodeError
from kdump.format.row_tree import RowTreeReader, Tree
from kdump.io.bundle.index import (
    BATCHES,
    MAX_FILE,
    MAX_FILES,
    MAX_KEPT,
    MAX_NAME,
    REDACTED,
    REGIONS,
    Block,
    Bytes,
    FileStatus,
    KnownHashes,
    KnownRecords,
    Log,
    StoredFile,
)
from kdump.io.bundle.rows import frame_of, located_of, rows_of
from kdump.io.untrusted_json import integer, natural, optional_path_text, path_text, text

STRUCT = "BundleIndex"


class StoredDirectory:
    """A directory, whose files are read when they are asked for. `path`: relative to the one that was bundled, empty
    for that itself; `error`: why it could not be listed. Raises DecodeError."""

    def __init__(self, container: ContainerReader) -> None:
        head, container.head = container.head, None
        try:
            self.path = path_text(head["path"])
            if self.path and not all(map(_is_name, self.path.split("/"))):
                raise ValueError(f"{self.path[:40]!r} is no relative path")
            self.status = _status(head["status"])
            if not stat.S_ISDIR(self.status.mode):
                raise ValueError(f"the mode {self.status.mode:o} is not that of a directory")
            self.error = optional_path_text(head["error"])
            height, rows, root = head["files"]
            tree = Tree(integer(height), integer(rows, 0, MAX_FILES), None if root is None else frame_of(root))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DecodeError(STRUCT, "", 0, f"{type(error).__name__}: {error}") from error
        self.container = container
        self._files = RowTreeReader(container, tree)

    def __len__(self) -> int:
        """Number of its files."""
        return len(self._files)

    def find(self, name: str) -> StoredFile | None:
        """Return a file; None if there is none of that name."""
        row = self._files.find(name)
        return None if row is None else _file_of(name, row)

    def files(self) -> Iterator[StoredFile]:
        """Yield the files, sorted by name."""
        for name, row in self._files:
            yield _file_of(name, row)


def head_of(path: str, status: FileStatus, error: str | None, files: Tree) -> dict[str, Any]:
    """Return the head of a container as an object of JSON's types."""
    return {"path": path, "status": status, "error": error, "files": files}


def row_of(file: StoredFile) -> dict[str, Any]:
    """Return what the index has of a file under its name, as an object of JSON's types."""
    row: dict[str, Any] = {"status": file.status}
    if file.target is not None:
        row |= {"target": file.target, "followed": file.followed}
    if isinstance(file.contents, Log):
        row["log"] = file.contents
    elif file.contents is not None:
        row["frames"] = file.contents.frames
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
        raise ValueError(f"{name[:40]!r} is no file name")
    contents: Log | Bytes | None = None
    if "log" in row:
        contents = _log(row["log"])
    elif "frames" in row:
        changed = row.get("size")
        contents = Bytes(
            tuple(map(frame_of, row["frames"])), None if changed is None else integer(changed, 0, MAX_FILE)
        )
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
    size, blocks, error, unreadable, incomplete, redacted, checksums, records, hashes, totals = row
    return Log(
        integer(size),
        rows_of(blocks, block_of),
        optional_path_text(error),
        tuple((integer(position), integer(count)) for position, count in unreadable),
        incomplete is True,
        redacted is True,
        checksums is True,
        None if records is None else _known_records(records),
        None if hashes is None else KnownHashes(text(hashes[0]), rows_of(hashes[1], located_of)),
        totals,
    )


def _is_name(name: str) -> bool:
    is_possible = bool(name) and name not in (".", "..") and "/" not in name and "\0" not in name
    return is_possible and len(os.fsencode(name)) <= MAX_NAME


def block_of(row: Any) -> Block:
    """Raises TypeError or ValueError."""
    kind, position, size, frame, complete, payload = row
    if kind not in (BATCHES, REDACTED, REGIONS):
        raise ValueError(f"a block of the kind {str(kind)[:40]!r}")
    frames = tuple(map(frame_of, payload))
    if natural(size) == 0 or sum(each.size for each in frames) > 2 * MAX_KEPT:
        raise ValueError(f"a block of {size} bytes with {len(frames)} payloads")
    marks = None if complete is None else frame_of(complete)
    return Block(kind, natural(position), size, frame_of(frame), marks, frames)


def _known_records(row: Any) -> KnownRecords:
    keyed, verdicts, sums = row
    return KnownRecords(keyed is True, rows_of(verdicts, located_of), frame_of(sums))


def _status(row: Any) -> FileStatus:
    status = FileStatus(*map(integer, row))
    if not 0 <= status.mode < 1 << 16 or not 0 <= status.size < 1 << 63 or status.allocated < 0:
        raise ValueError(f"{status} is impossible")
    return status
