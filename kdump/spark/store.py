"""The directory with a scan's result: local, or at a URL that fsspec can write to. Contains a directory for each table,
which is a Delta table (kdump.spark.delta_tables), and in _kdump/ what scans need to know about them
(kdump.spark.units)."""

from __future__ import annotations

import hashlib
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from kdump.io.directory_listing import is_directory, is_inside, is_url, names
from kdump.io.file_access import access_of, make_directories, of_directory
from kdump.log.output_directory import OutputError, explained, lock_directory, refuse_output
from kdump.tables.declarations import OWN as OWN

SUMMARY = "summary.json"
ABOUT = b"Records what kdump scan has read. Delete it only together with the whole result.\n"


class StoreError(Exception):
    """Raised if the result cannot be written or read there; the message states why."""


@contextmanager
def _stated() -> Iterator[None]:
    """Raise StoreError instead of OutputError."""
    try:
        yield
    except OutputError as error:
        raise StoreError(str(error)) from error


class Store:
    """The directory with a scan's result; picklable, because tasks write to it."""

    _lock: weakref.finalize[Any, Store] | None = None
    """Closes the descriptor by which the directory is locked, in the process that writes to it."""

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/") if is_url(root) else os.path.abspath(root)

    def __getstate__(self) -> dict[str, str]:
        return {"root": self.root}

    @property
    def is_remote(self) -> bool:
        """Whether it is in an object store, where a file cannot be renamed without copying it."""
        return is_url(self.root)

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def begin(self, sources: list[str]) -> None:
        """Create the directory if it does not exist. Unless it is at a URL, no other scan can write to it until it is
        closed. Raises StoreError if one is writing, if something else is there, or if it is on a Kafka disk or inside
        one of the sources, which are never written to."""
        own = self.root
        if self.is_remote and any(is_inside(own, source) for source in sources):
            raise StoreError(f"refusing to write to {own}: it is in a path that is read; choose another directory")
        with _stated():
            if not self.is_remote:
                refuse_output(own, sources)
        if is_directory(own):
            try:
                here = names(own)
            except OSError as error:
                raise StoreError(f"{own}: {error.strerror}") from error
            if here and OWN not in here:
                raise StoreError(f"{own} exists and is not the result of a scan; choose a new directory")
            if not self.is_remote:
                self._close_to(sources)
        elif not self.is_remote and os.path.lexists(own):
            raise StoreError(f"{own} exists and is not a directory")
        elif not self.is_remote:
            with _stated(), explained(own):
                make_directories(own, access_of(sources))
        self.write(f"{OWN}/README", ABOUT)
        if not self.is_remote and self._lock is None:
            with _stated():
                lock = lock_directory(own, "another scan is writing to this directory")
            self._lock = weakref.finalize(self, os.close, lock)

    def _close_to(self, sources: list[str]) -> None:
        """Close a directory that exists to those who may not read the sources. Raises StoreError."""
        mode = os.stat(self.root).st_mode & 0o777
        if mode & 0o077 and (closed := mode & of_directory(access_of(sources))) != mode:
            with _stated(), explained(self.root):
                os.chmod(self.root, closed)

    def require_result(self) -> None:
        """Raise StoreError if there is no result of a scan."""
        if not is_directory(self.path(OWN)):
            raise StoreError(f"{self.root}: not a result of kdump scan")

    def close(self) -> None:
        """Let other scans write to the directory."""
        if self._lock is not None:
            self._lock()
            self._lock = None

    def write(self, name: str, data: bytes) -> None:
        """Write a small file, completely or not at all. Raises StoreError."""
        with self.writing(name) as file:
            file.write(data)

    @contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        """Open a file that appears under its name only when it is complete. Raises StoreError."""
        path = self.path(name)
        directory, _, base = path.rpartition("/")
        passing = f"{directory}/.{base}.{os.getpid()}"  # Spark ignores names that start with a dot
        file: BinaryIO
        try:
            if self.is_remote:
                import fsspec

                file = fsspec.open(path, "wb").open()
            else:
                os.makedirs(directory, exist_ok=True)
                file = open(passing, "wb")  # noqa: SIM115
        except Exception as error:  # each file system raises its own errors
            raise StoreError(f"{path}: cannot be written: {error}") from error
        try:
            yield file
        except BaseException:
            if self.is_remote:
                getattr(file, "discard", lambda: None)()
            else:
                file.close()
                os.unlink(passing)
            raise
        file.close()
        if not self.is_remote:
            os.replace(passing, path)

    def open(self, name: str) -> Any:
        """Open a file for reading. Raises StoreError."""
        try:
            if self.is_remote:
                import fsspec

                return fsspec.open(self.path(name), "rb").open()
            return open(self.path(name), "rb")
        except Exception as error:  # each file system raises its own errors
            raise StoreError(f"{self.path(name)}: cannot be read: {error}") from error

    def read(self, name: str) -> bytes | None:
        """Return the contents of a small file; None if there is none."""
        try:
            with self.open(name) as file:
                data: bytes = file.read()
                return data
        except Exception:
            return None

    def list(self, directory: str) -> list[str]:
        """Return the names in a directory of the result; none if there is no such directory."""
        try:
            return names(self.path(directory))
        except OSError:
            return []

    def remove(self, name: str) -> None:
        """Delete a file or directory if it exists."""
        try:
            if self.is_remote:
                from fsspec.core import url_to_fs

                store, inside = url_to_fs(self.path(name))
                store.rm(inside, recursive=True)
            elif os.path.isdir(self.path(name)):
                import shutil

                shutil.rmtree(self.path(name))
            else:
                os.unlink(self.path(name))
        except Exception:
            return


def key_of(*parts: str) -> str:
    """Return a short name for this combination of texts (a hash)."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:20]
