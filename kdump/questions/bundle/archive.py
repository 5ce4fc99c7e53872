"""A packed bundle: a tar file that is written from its beginning to its end, so that it can go into a pipe."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kdump.log.bundle_names import part_name

PART = 4 << 20
"""Bytes of a container that are held until they become a member: a tar file has the size of a member before it."""


class Archive:
    """The members of a tar file. `write`: takes its bytes; `created`: epoch in seconds, the time of all members."""

    def __init__(self, write: Callable[[bytes], object], created: int) -> None:
        self._write = write
        self._created = created
        self._last = "", 0
        """The last container, and of how many parts it was."""

    def add(self, name: str, data: bytes) -> None:
        """Add a member. One of the same name takes the place of an earlier one."""
        member = tarfile.TarInfo(name)
        member.size, member.mtime = len(data), self._created
        self._write(member.tobuf(tarfile.GNU_FORMAT) + data + bytes(-len(data) % tarfile.BLOCKSIZE))

    @contextmanager
    def container(self, name: str) -> Iterator[ContainerParts]:
        """Add a container, in parts if it is large. Parts of an earlier one of that name, if it was the last container,
        become empty."""
        parts = ContainerParts(self, name)
        yield parts
        parts.end()
        last, count = self._last
        for number in range(parts.count, count if last == name else 0):
            self.add(part_name(name, number), b"")
        self._last = name, parts.count

    def end(self) -> None:
        self._write(bytes(2 * tarfile.BLOCKSIZE))


class ContainerParts:
    """What ContainerWriter writes to."""

    def __init__(self, archive: Archive, name: str) -> None:
        self.archive = archive
        self.name = name
        self.count = 0
        self.size = 0
        self._held = bytearray()

    def write(self, data: bytes) -> int:
        self._held += data
        while len(self._held) > PART:
            self._add(PART)
        return len(data)

    def end(self) -> None:
        self._add(len(self._held))

    def _add(self, size: int) -> None:
        self.archive.add(part_name(self.name, self.count), bytes(self._held[:size]))
        del self._held[:size]
        self.count += 1
        self.size += size
