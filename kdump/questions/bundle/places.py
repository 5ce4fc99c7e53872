"""Where a bundle goes: into a directory, where a next run brings it up to date, or into a stream."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Protocol

from kdump.format.container import ContainerReader, Writable
from kdump.format.errors import DecodeError
from kdump.io.bundle.directory import StoredDirectory
from kdump.io.bundle.members import read_member
from kdump.io.bundle.names import MANIFEST, container_of_part, part_name
from kdump.io.file_access import access_of, make_directories
from kdump.log.output_directory import (
    PASSING,
    OutputError,
    OutputExists,
    OutputFile,
    explained,
    lock_directory,
    replacing,
)
from kdump.questions.bundle.directory_writer import Before


class Place(Protocol):
    """The files of a bundle as they are written. All methods raise OutputError."""

    name: str
    """What messages call it."""

    def manifest(self, values: dict[str, Any]) -> None:
        """Write the manifest, which may be replaced later."""

    def before(self, member: str, inside: str) -> Before | None:
        """Return the directory `inside` as it is in the container `member` of an earlier run."""

    def container(self, member: str) -> AbstractContextManager[Writable]:
        """Write a container, in place of the one of that name."""

    def size(self, member: str) -> int:
        """Return the size in bytes of the container that was written last or not at all."""

    def keep_only(self, number: int, names: set[str | None]) -> int:
        """Remove containers of a directory that was bundled but these, and return how many."""


class DirectoryPlace:
    """A Place. To be locked while it is written to. `sources`: what it is made of."""

    def __init__(self, out: str, sources: Iterable[str]) -> None:
        self.name = os.path.abspath(out)
        self.access = access_of(sources)
        with explained(self.name):
            if os.path.lexists(self.name) and not os.path.isdir(self.name):
                raise OutputExists(f"{self.name} exists and is not a bundle; choose a new directory")
            make_directories(self.name, self.access)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs from writing here."""
        lock = lock_directory(self.name, "another run is writing this bundle")
        try:
            yield
        finally:
            os.close(lock)

    def earlier(self) -> dict[str, Any] | None:
        """Return the manifest that is there; None if the directory is empty."""
        path = os.path.join(self.name, MANIFEST)
        with explained(self.name):
            if not os.listdir(self.name):
                return None
        if not os.path.isfile(path):
            raise OutputExists(f"{self.name} exists and is not a bundle; choose a new directory")
        try:
            with open(path, encoding="utf-8") as file:
                return dict(json.load(file))
        except (OSError, TypeError, ValueError, RecursionError) as error:
            raise OutputError(f"{path} is not that of a bundle: {error}") from error

    def manifest(self, values: dict[str, Any]) -> None:
        with replacing(os.path.join(self.name, MANIFEST), self.access) as file:
            file.write(manifest_bytes(values))

    def before(self, member: str, inside: str) -> Before | None:
        try:
            written = os.stat(os.path.join(self.name, member)).st_mtime_ns
            directory = StoredDirectory(ContainerReader(*read_member(self.name, member)))
        except (OSError, DecodeError):
            return None
        return Before(directory, written) if directory.path == inside else None

    @contextmanager
    def container(self, member: str) -> Iterator[Writable]:
        path = os.path.join(self.name, member)
        with explained(path):
            make_directories(os.path.dirname(path), self.access)
        with replacing(path, self.access) as file:
            yield file
        number = 1  # of a bundle that was packed in parts and unpacked here
        with explained(path), suppress(FileNotFoundError):
            while True:
                os.unlink(part_name(path, number))
                number += 1

    def size(self, member: str) -> int:
        return read_member(self.name, member)[1]

    def keep_only(self, number: int, names: set[str | None]) -> int:
        removed = 0
        place = os.path.join(self.name, str(number))
        with explained(place):
            make_directories(place, self.access)
            for name in os.listdir(place):
                container = container_of_part(name)
                if name.endswith(PASSING) or (container is not None and container not in names):
                    os.unlink(os.path.join(place, name))
                    removed += name == container
        return removed

    def pack(self, path: str, sources: Iterable[str], values: dict[str, Any]) -> None:
        """Write a new tar file with the bundle. `values`: of its manifest."""
        with OutputFile(path, sources).writing() as file:
            packed = StreamPlace(path, file.write, values["created"])
            packed.manifest({**values, "complete": False})
            for number in range(len(values["directories"])):
                place = os.path.join(self.name, str(number))
                for name in sorted(name for name in os.listdir(place) if container_of_part(name) == name):
                    read_at, size = read_member(self.name, f"{number}/{name}")
                    with packed.container(f"{number}/{name}") as member:
                        for position in range(0, size, COPIED):
                            member.write(read_at(position, COPIED))
            packed.manifest(values)
            packed.end()


PART = 4 << 20
"""Bytes of a container that are held until they become a member: a tar file has the size of a member before it."""


class Archive:
    """The members of a tar file that is written from its beginning to its end, so that it can go into a pipe. `write`:
    takes its bytes; `created`: epoch in seconds, the time of all members."""

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


COPIED = 1 << 20
"""Bytes that are copied at once."""


class StreamPlace:
    """A Place that is written from its beginning to its end. `write`: takes the bytes, and raises OSError; `created`:
    epoch in milliseconds."""

    def __init__(self, name: str, write: Callable[[bytes], object], created: int) -> None:
        self.name = name
        self._archive = Archive(write, created // 1000)
        self._size = 0

    def manifest(self, values: dict[str, Any]) -> None:
        with explained(self.name):
            self._archive.add(MANIFEST, manifest_bytes(values))

    def before(self, member: str, inside: str) -> None:
        return None

    @contextmanager
    def container(self, member: str) -> Iterator[Writable]:
        with explained(self.name), self._archive.container(member) as parts:
            yield parts
        self._size = parts.size

    def size(self, member: str) -> int:
        return self._size

    def keep_only(self, number: int, names: set[str | None]) -> int:
        return 0

    def end(self) -> None:
        with explained(self.name):
            self._archive.end()


def manifest_bytes(values: dict[str, Any]) -> bytes:
    return json.dumps(values, indent=1).encode() + b"\n"
