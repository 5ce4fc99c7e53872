"""The index of a bundle's container: a directory, its files, and where their contents are (docs/bundle.md). Checked
when it is read: it comes from another host."""

from __future__ import annotations

import os
import stat
from struct import Struct
from typing import Any, NamedTuple

from kdump.format.bundle_container import Frame
from kdump.format.errors import DecodeError
from kdump.log.untrusted_json import integer, optional_path_text, path_text, text

STRUCT = "BundleIndex"
BATCHES, REDACTED, REGIONS = "batches", "redacted", "regions"
"""Kinds of blocks: headers of valid v2 batches as columns; the same, with payloads of other sizes than on the disk;
other regions as JSON."""
SIZE = Struct("<i")
"""What precedes each payload of a block of the kind REDACTED: its size in bytes."""
RECORDS, CHECKSUMS = "records", "checksums"
PIECE = 1 << 20
"""Bytes of a small file in one frame."""
MAX_FILE = 1 << 30
"""Maximum bytes of a small file: of an index."""
MAX_KEPT = 32 << 20
"""Maximum bytes of a batch that is complete in a bundle, and of the payloads of a block."""


class FileStatus(NamedTuple):
    """What stat shows of a file or directory: times in ns, sizes in bytes; `allocated` is what it occupies."""

    mode: int
    size: int
    allocated: int
    mtimeNs: int
    uid: int
    gid: int
    device: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileStatus:
        allocated = getattr(status, "st_blocks", 0) * 512
        return cls(
            status.st_mode,
            status.st_size,
            allocated,
            status.st_mtime_ns,
            status.st_uid,
            status.st_gid,
            status.st_dev,
            status.st_ino,
        )


class Block(NamedTuple):
    """Consecutive regions of a segment. `kind`: BATCHES, REDACTED or REGIONS; `position` and `size`: their bytes in the
    segment. `frame` has the headers or rows; `payload` the payloads of the batches that are complete in the bundle;
    `complete`, unless the kind is REGIONS, the frame with a byte for each batch that is 1 if it is one of these; None
    if all or none are, as `payload` shows."""

    kind: str
    position: int
    size: int
    frame: Frame
    complete: Frame | None
    payload: tuple[Frame, ...]

    @property
    def end(self) -> int:
        """Position of the first byte after it in the segment."""
        return self.position + self.size


class KnownRecords(NamedTuple):
    """What is known about the records of a segment that are not in the bundle. `keyed`: null keys were looked for;
    `verdicts`: frames with verdicts on batches, each with the position of its first batch; `sums`: the frame with the
    sums for statistics."""

    keyed: bool
    verdicts: tuple[tuple[int, Frame], ...]
    sums: Frame


class KnownHashes(NamedTuple):
    """Hashes of the records of a segment. `key`: name of the key; `frames`: each with the position of its first
    batch."""

    key: str
    frames: tuple[tuple[int, Frame], ...]


class Log(NamedTuple):
    """The contents of a segment: its regions. `size`: where they end; `error`: why the rest could not be read;
    `unreadable`: position and size of ranges that the device could not read; `checksums`: whether those of the batches
    were verified; `records`: what is known about the records, None if they were not decoded; `hashes`: those of its
    records; `totals`: HeaderTotals.row, which is checked when it is needed."""

    size: int
    blocks: tuple[Block, ...]
    error: str | None
    unreadable: tuple[tuple[int, int], ...]
    checksums: bool
    records: KnownRecords | None = None
    hashes: KnownHashes | None = None
    totals: Any = None

    @property
    def is_redacted(self) -> bool:
        """Whether records were changed."""
        return any(block.kind == REDACTED for block in self.blocks)

    @property
    def lacks(self) -> tuple[str, ...]:
        """What of the segment is not in the bundle: RECORDS, CHECKSUMS."""
        batches = [block for block in self.blocks if block.kind != REGIONS]
        incomplete = any(block.complete is not None or not block.payload for block in batches)
        has_rows = any(block.kind == REGIONS and not block.payload for block in self.blocks)
        return (*((RECORDS,) if incomplete or has_rows else ()), *(() if self.checksums else (CHECKSUMS,)))


class Bytes(NamedTuple):
    """The contents of another file: a frame for each PIECE of it, in which the zeros at its end are missing. Frames are
    missing for zeros at the end of the file. `size`: bytes of the contents, None if as many as the file's status has:
    those of a redacted file are others."""

    frames: tuple[Frame, ...]
    size: int | None = None


class StoredFile(NamedTuple):
    """A file or directory. `status` is that of the link itself if `target`, what it points to, is not None; `followed`
    is that of the file at its end, None if it has none. `error`: why its contents could not be read."""

    name: str
    status: FileStatus
    target: str | None = None
    followed: FileStatus | None = None
    contents: Log | Bytes | None = None
    error: str | None = None

    @property
    def seen(self) -> FileStatus | None:
        """The status with links followed; None for a broken link."""
        return self.status if self.target is None else self.followed

    @property
    def is_directory(self) -> bool:
        return self.seen is not None and stat.S_ISDIR(self.seen.mode)


class StoredDirectory(NamedTuple):
    """A directory. `path`: relative to the one that was bundled, empty for that itself; `error`: why it could not be
    listed."""

    path: str
    status: FileStatus
    files: dict[str, StoredFile]
    error: str | None = None


def index_of(directory: StoredDirectory) -> dict[str, Any]:
    """Return the index of a container as an object of JSON's types."""
    files = []
    for file in directory.files.values():
        row: dict[str, Any] = {"name": file.name, "status": file.status}
        if file.target is not None:
            row |= {"target": file.target, "followed": file.followed}
        if isinstance(file.contents, Log):
            row["log"] = file.contents
        elif file.contents is not None:
            row["frames"] = file.contents.frames
            if file.contents.size is not None:
                row["size"] = file.contents.size
        if file.error is not None:
            row["error"] = file.error
        files.append(row)
    return {"path": directory.path, "status": directory.status, "error": directory.error, "files": files}


def read_index(index: Any) -> StoredDirectory:
    """Return the directory that an index describes. Raises DecodeError."""
    try:
        path = path_text(index["path"])
        if path and not all(map(_is_name, path.split("/"))):
            raise ValueError(f"{path[:40]!r} is no relative path")
        files = [_file(row) for row in index["files"]]
        return StoredDirectory(
            path, _status(index["status"]), {file.name: file for file in files}, optional_path_text(index["error"])
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DecodeError(STRUCT, "", 0, f"{type(error).__name__}: {error}") from error


def _file(row: Any) -> StoredFile:
    name = path_text(row["name"])
    if not _is_name(name):
        raise ValueError(f"{name[:40]!r} is no file name")
    contents: Log | Bytes | None = None
    if "log" in row:
        size, blocks, error, unreadable, checksums, records, hashes, totals = row["log"]
        ranges = tuple((integer(position), integer(count)) for position, count in unreadable)
        contents = Log(
            integer(size),
            tuple(map(_block, blocks)),
            optional_path_text(error),
            ranges,
            checksums is True,
            None if records is None else _known_records(records),
            None if hashes is None else KnownHashes(text(hashes[0]), _located(hashes[1])),
            totals,
        )
    elif "frames" in row:
        changed = row.get("size")
        contents = Bytes(tuple(map(_frame, row["frames"])), None if changed is None else integer(changed, 0, MAX_FILE))
    target = optional_path_text(row.get("target"))
    followed = row.get("followed")
    return StoredFile(
        name,
        _status(row["status"]),
        target,
        None if followed is None else _status(followed),
        contents,
        optional_path_text(row.get("error")),
    )


def _is_name(name: str) -> bool:
    return bool(name) and name not in (".", "..") and "/" not in name and "\0" not in name


def _block(row: Any) -> Block:
    kind, position, size, frame, complete, payload = row
    if kind not in (BATCHES, REDACTED, REGIONS):
        raise ValueError(f"a block of the kind {str(kind)[:40]!r}")
    frames = tuple(map(_frame, payload))
    if integer(size) <= 0 or sum(each.size for each in frames) > 2 * MAX_KEPT:
        raise ValueError(f"a block of {size} bytes with {len(frames)} payloads")
    return Block(kind, integer(position), size, _frame(frame), None if complete is None else _frame(complete), frames)


def _known_records(row: Any) -> KnownRecords:
    keyed, verdicts, sums = row
    return KnownRecords(keyed is True, _located(verdicts), _frame(sums))


def _located(row: Any) -> tuple[tuple[int, Frame], ...]:
    """Return frames with the positions of their first batches."""
    found = tuple((integer(position), _frame(frame)) for position, frame in row)
    if [position for position, _ in found] != sorted(position for position, _ in found):
        raise ValueError("frames that are not in order")
    return found


def _frame(row: Any) -> Frame:
    return Frame(*map(integer, row))


def _status(row: Any) -> FileStatus:
    status = FileStatus(*map(integer, row))
    if not 0 <= status.mode < 1 << 16 or not 0 <= status.size < 1 << 63 or status.allocated < 0:
        raise ValueError(f"{status} is impossible")
    return status
