"""What the index of a bundle's container has: a directory's files, and where their contents are (docs/bundle.md)."""

from __future__ import annotations

import os
import stat
from struct import Struct
from typing import Any, NamedTuple

from kdump.format.container import Frame
from kdump.io.bundle.rows import StoredRows
from kdump.io.source import CHECKSUMS, RECORDS

BATCHES, REDACTED, REGIONS = "batches", "redacted", "regions"
"""Kinds of blocks: headers of valid v2 batches as columns; the same, with payloads of other sizes than on the disk;
other regions as JSON."""
SIZE = Struct("<i")
"""What precedes each payload of a block of the kind REDACTED: its size in bytes."""
PIECE = 1 << 20
"""Bytes of a small file in one frame."""
MAX_FILE = 1 << 30
"""Maximum bytes of a small file: of an index."""
MAX_FILES = 500_000
"""Maximum number of files of a directory: commands list their names. A broker's partitions have 200,000 at most."""
MAX_NAME = 255
"""Maximum bytes of a file's name: NAME_MAX."""
MAX_KEPT = 32 << 20
"""Maximum bytes of a batch that is complete in a bundle, and of the payloads of a block."""


class FileStatus(NamedTuple):
    """What stat shows of a file or directory: times in ns, sizes in bytes; `allocated` is what it occupies, `links` the
    number of names of a file."""

    mode: int
    size: int
    allocated: int
    mtimeNs: int
    uid: int
    gid: int
    device: int
    inode: int
    links: int = 1

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
            status.st_nlink if stat.S_ISREG(status.st_mode) else 1,
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

    @property
    def is_incomplete(self) -> bool:
        """Whether there may be records of it that are not in the bundle."""
        return self.complete is not None or not self.payload


class KnownRecords(NamedTuple):
    """What is known about the records of a segment that are not in the bundle. `keyed`: null keys were looked for;
    `verdicts`: frames with verdicts on batches, each Located with the position of its first batch; `sums`: the frame
    with the sums for statistics."""

    keyed: bool
    verdicts: StoredRows
    sums: Frame


class KnownHashes(NamedTuple):
    """Hashes of the records of a segment. `key`: name of the key; `frames`: each Located with the position of its
    first batch."""

    key: str
    frames: StoredRows


class Log(NamedTuple):
    """The contents of a segment: its regions. `size`: where they end; `blocks`: each a Block; `error`: why the rest
    could not be read; `unreadable`: position and size of ranges that the device could not read; `incomplete` and
    `redacted`: whether any block is; `checksums`: whether those of the batches were verified; `records`: what is known
    about the records, None if they were not decoded; `hashes`: those of its records; `totals`: HeaderTotals.row, which
    is checked when it is needed."""

    size: int
    blocks: StoredRows
    error: str | None
    unreadable: tuple[tuple[int, int], ...]
    incomplete: bool
    redacted: bool
    checksums: bool
    records: KnownRecords | None = None
    hashes: KnownHashes | None = None
    totals: Any = None

    @property
    def lacks(self) -> tuple[str, ...]:
        """What of the segment is not in the bundle: RECORDS, CHECKSUMS."""
        return (*((RECORDS,) if self.incomplete else ()), *(() if self.checksums else (CHECKSUMS,)))


class Bytes(NamedTuple):
    """The contents of another file: a frame for each PIECE of it, in which the zeros at its end are missing. Frames are
    missing for zeros at the end of the file. `size`: bytes of the contents, None if as many as the file's status has:
    those of a redacted file are others."""

    frames: tuple[Frame, ...]
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
