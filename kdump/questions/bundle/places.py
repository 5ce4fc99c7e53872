"""Where a bundle goes: into a directory, where a next run brings it up to date, or into a stream."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from kdump.format.errors import DecodeError
from kdump.io.bundle.index import StoredDirectory
from kdump.io.bundle.members import part_of_directory
from kdump.io.bundle.names import CONTAINER, MANIFEST
from kdump.io.file_access import access_of, make_directories
from kdump.io.frames import Writable
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
from kdump.questions.bundle.part_writer import write_manifest


class Place(Protocol):
    """The files of a bundle as they are written. All methods raise OutputError."""

    name: str
    """What messages call it."""

    def manifest(self, values: dict[str, Any]) -> None:
        """Write the manifest, which may be replaced later."""

    def before(self, name: str, inside: str) -> Before | None:
        """Return the directory `inside` as it is in the part of that name of an earlier run."""

    def part(self, name: str) -> AbstractContextManager[Writable]:
        """Write a part, in place of the one of that name."""

    def size(self, name: str) -> int:
        """Return the size in bytes of the part that was written last or not at all."""

    def keep_only(self, number: int, names: set[str | None]) -> int:
        """Remove parts of a directory that was bundled but these, and return how many."""


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

    def before(self, name: str, inside: str) -> Before | None:
        try:
            written = os.stat(os.path.join(self.name, name)).st_mtime_ns
            directory = StoredDirectory(part_of_directory(self.name, name))
        except (OSError, DecodeError):
            return None
        return Before(directory, written) if directory.path == inside else None

    @contextmanager
    def part(self, name: str) -> Iterator[Writable]:
        path = os.path.join(self.name, name)
        with explained(path):
            make_directories(os.path.dirname(path), self.access)
        with replacing(path, self.access) as file:
            yield file

    def size(self, name: str) -> int:
        return os.stat(os.path.join(self.name, name)).st_size

    def keep_only(self, number: int, names: set[str | None]) -> int:
        removed = 0
        place = os.path.join(self.name, str(number))
        with explained(place):
            make_directories(place, self.access)
            for name in os.listdir(place):
                if name.endswith(PASSING) or (name.endswith(CONTAINER) and name not in names):
                    os.unlink(os.path.join(place, name))
                    removed += name.endswith(CONTAINER)
        return removed

    def pack(self, path: str, sources: Iterable[str], values: dict[str, Any]) -> None:
        """Write a new file with the bundle. `values`: of its manifest."""
        with OutputFile(path, sources).writing() as file:
            packed = StreamPlace(path, file.write, values["created"])
            packed.manifest({**values, "complete": False})
            for number in range(len(values["directories"])):
                place = os.path.join(self.name, str(number))
                for name in sorted(name for name in os.listdir(place) if name.endswith(CONTAINER)):
                    with packed.part(name) as copy, open(os.path.join(place, name), "rb") as part:
                        shutil.copyfileobj(part, copy, COPIED)
            packed.manifest(values)


COPIED = 1 << 20
"""Bytes that are copied at once."""


class StreamPlace:
    """A Place that is written from its beginning to its end, so that it can go into a pipe. `write`: takes the bytes,
    and raises OSError; `created`: epoch in milliseconds."""

    def __init__(self, name: str, write: Callable[[bytes], object], created: int) -> None:
        self.name, self._write = name, write
        self._created = created // 1000
        self._size = 0

    def write(self, data: bytes) -> int:
        self._write(data)
        self._size += len(data)
        return len(data)

    def manifest(self, values: dict[str, Any]) -> None:
        with explained(self.name):
            write_manifest(self, MANIFEST, manifest_bytes(values), self._created, is_last=values["complete"])

    def before(self, name: str, inside: str) -> Before | None:
        return None

    @contextmanager
    def part(self, name: str) -> Iterator[Writable]:
        self._size = 0
        with explained(self.name):
            yield self

    def size(self, name: str) -> int:
        return self._size

    def keep_only(self, number: int, names: set[str | None]) -> int:
        return 0


def manifest_bytes(values: dict[str, Any]) -> bytes:
    return json.dumps(values, indent=1).encode() + b"\n"
