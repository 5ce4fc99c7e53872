"""The source of a segment of which bytes are withheld: what is there, and what is known of the rest."""

from __future__ import annotations

import os
import stat
from typing import Any, NamedTuple

from kdump.format.errors import DecodeError
from kdump.io.errors import SourceError, damaged_mount
from kdump.io.frames import FramesReader
from kdump.io.sorted_lines import Extent, SortedLines
from kdump.io.source import BYTES, CHECKSUMS, RECORDS

MAX_KEPT = 32 << 20
"""Maximum bytes of a batch that is complete in a bundle."""
REGIONS, KNOWN, HASHES, REPLACED = "regions", "records", "hashes", "replaced"
"""What may be known of a segment: where its regions are, and which bytes are withheld; what decoding the records
showed; hashes of the records; and batches in place of those with other names."""


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


class Log(NamedTuple):
    """The contents of a segment. `data`: its bytes, with zeros in place of those that are withheld; `error`: why the
    rest could not be read; `unreadable`: position and size of ranges that the device could not read; `incomplete` and
    `redacted`: whether records are withheld, or replaced; `checksums`: whether those of the batches were verified;
    `keyed`: whether null keys were looked for in the records, None if they were not decoded; `hashKey`: name of the key
    of their hashes; `totals`: HeaderTotals.row, which is checked when it is needed; `known`: where each of REGIONS,
    KNOWN, HASHES and REPLACED is."""

    data: Extent
    error: str | None
    unreadable: tuple[tuple[int, int], ...]
    incomplete: bool
    redacted: bool
    checksums: bool
    keyed: bool | None
    hashKey: str | None
    totals: Any
    known: dict[str, Extent]

    @property
    def lacks(self) -> tuple[str, ...]:
        """What of the segment is not in the bundle: RECORDS, CHECKSUMS."""
        return (*((RECORDS,) if self.incomplete else ()), *(() if self.checksums else (CHECKSUMS,)))


class StoredBytes:
    """Bytes of a part."""

    def __init__(self, name: str, frames: FramesReader, extent: Extent) -> None:
        self._name, self._frames, self._start, self.size = name, frames, *extent
        if extent.start + extent.size > frames.size:
            raise SourceError.at(name, f"the bundle is damaged: {extent.size} bytes are not in it")

    def read(self, position: int, count: int) -> bytes:
        """Return bytes, fewer at the end. Raises SourceError for a damaged bundle."""
        try:
            return self._frames.read(self._start + position, max(0, min(count, self.size - position)))
        except DecodeError as error:
            raise damaged_mount(self._name, error) from error


class StoredSegment:
    """A Source of a segment of which bytes are withheld: it has its regions (kdump.log.withheld_segment)."""

    def __init__(self, name: str, frames: FramesReader, log: Log, status: FileStatus, key: str | None) -> None:
        self.name = name
        self.key = key or ""
        """Name of the key under which names were replaced; empty if none were."""
        self.size: int | None = log.data.size
        self.error = log.error
        self.unreadable = list(log.unreadable)
        self.keep = True
        self.status = status
        self.lacks = frozenset({BYTES, *log.lacks})
        self.log = log
        self.reader: Any = None
        """What reads it, once it has begun to."""
        self._frames = frames
        self.bytes = StoredBytes(name, frames, log.data)
        """The bytes at their positions, with zeros in place of those that are withheld."""

    def replaced(self, position: int, count: int) -> bytes:
        """Return bytes that are in place of those with other names. Raises SourceError for a damaged bundle."""
        return StoredBytes(self.name, self._frames, self.log.known.get(REPLACED, Extent(0, 0))).read(position, count)

    def known(self, what: str) -> SortedLines | None:
        """Return what is known of the segment: REGIONS, KNOWN, HASHES; None if it is not. Raises DecodeError."""
        extent = self.log.known.get(what)
        return None if extent is None else SortedLines(self._frames, extent)

    def read_at(self, position: int, count: int) -> bytes:
        """Raises SourceError, unless there are no such bytes."""
        if count <= 0 or position >= self.log.data.size:
            return b""
        raise SourceError.at(self.name, "the bytes of a segment are not in the bundle")

    def next_data(self, position: int) -> int:
        return position

    def release(self, position: int) -> None:
        pass

    def state(self) -> tuple[int, int]:
        """Return the size in bytes and modification time in ns that the file had when it was read."""
        return self.status.size, self.status.mtimeNs

    def close(self) -> None:
        pass
