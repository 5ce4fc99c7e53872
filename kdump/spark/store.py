"""The directory with a scan's result: local, or at a URL that fsspec can write to. Contains Parquet files by table,
broker and topic, and in _kdump/ an entry for each unit, with its fingerprint when it was read and the files with its
rows."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from typing import Any, BinaryIO
from urllib.parse import quote

from kdump.log.directory_listing import is_directory, is_url, items, names, real_path

OWN = "_kdump"
LAYOUT = "2"
"""Version of the layout of a result's files: rows written with another version are written again."""
UNITS = f"{OWN}/units"
SUMMARY = "summary.json"
NULL = "__HIVE_DEFAULT_PARTITION__"
"""Represents null in directory names, in Hive and Spark."""
SAFE = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._- "


class StoreError(Exception):
    """Raised if the result cannot be written or read there; the message states why."""


class Store:
    """The directory with a scan's result; picklable, because tasks write to it."""

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/") if is_url(root) else os.path.abspath(root)

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def begin(self, sources: list[str]) -> None:
        """Create the directory if it does not exist. Raises StoreError if something else is there, or if it is inside
        one of the sources, which are never written to."""
        own = real_path(self.root)
        for source in sources:
            if own == real_path(source) or own.startswith(real_path(source) + "/"):
                message = f"refusing to write to {self.root}: it is in {source}, which is read"
                raise StoreError(f"{message}; choose another directory")
        if is_directory(self.root):
            try:
                here = names(self.root)
            except OSError as error:
                raise StoreError(f"{self.root}: {error.strerror}") from error
            if here and OWN not in here:
                raise StoreError(f"{self.root} exists and is not the result of a scan; choose a new directory")
        elif not is_url(self.root) and os.path.lexists(self.root):
            raise StoreError(f"{self.root} exists and is not a directory")
        self.write(
            f"{OWN}/README", b"Records what kdump scan has read. Delete it only together with the whole result.\n"
        )

    def write(self, name: str, data: bytes) -> None:
        """Write a small file, completely or not at all. Raises StoreError."""
        with self.writing(name) as file:
            file.write(data)

    def writing(self, name: str) -> Writing:
        """Return a context manager for a file that appears only when it is complete. Raises StoreError."""
        return Writing(self.path(name))

    def read(self, name: str) -> bytes | None:
        """Return the contents of a small file; None if there is none."""
        try:
            if is_url(self.root):
                import fsspec

                with fsspec.open(self.path(name), "rb") as remote:
                    found: bytes = remote.read()
                    return found
            with open(self.path(name), "rb") as file:
                return file.read()
        except Exception:  # each file system raises its own errors
            return None

    def remove(self, name: str) -> None:
        """Delete a file if it exists."""
        try:
            if is_url(self.root):
                from fsspec.core import url_to_fs

                store, inside = url_to_fs(self.path(name))
                store.rm(inside)
            else:
                os.unlink(self.path(name))
        except Exception:
            return

    def units(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the key and the entry of each unit that has been read."""
        try:
            found = items(self.path(UNITS))
        except OSError:
            return
        for item in found:
            key = item.name.removesuffix(".json")
            entry = self.unit(key) if key != item.name else None
            if entry is not None:
                yield key, entry

    def sweep(self, directory: str, named: set[str]) -> None:
        """Delete the files in a directory of the result that are not `named`: leftovers of an interrupted scan."""
        try:
            found = names(self.path(directory))
        except OSError:
            return
        for name in found:
            if f"{directory}/{name}" not in named:
                self.remove(f"{directory}/{name}")

    def unit(self, key: str) -> dict[str, Any] | None:
        """Return the entry of a unit; None if it is missing or invalid."""
        data = self.read(f"{UNITS}/{key}.json")
        try:
            entry = json.loads(data) if data else None
        except ValueError:
            return None
        return entry if isinstance(entry, dict) else None

    def put_unit(self, key: str, entry: dict[str, Any]) -> None:
        """Write the entry of a unit. Raises StoreError."""
        self.write(f"{UNITS}/{key}.json", json.dumps(entry).encode())

    def forget(self, key: str, entry: dict[str, Any]) -> None:
        """Delete a unit's entry and its files."""
        kept = entry.get("kept")
        for name in (*entry.get("files", []), *([kept["state"]] if kept else [])):
            self.remove(name)
        self.remove(f"{UNITS}/{key}.json")


class Writing:
    """Writes a file that appears under its name only when it is complete."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.file: BinaryIO | None = None

    def __enter__(self) -> BinaryIO:
        try:
            if is_url(self.path):
                import fsspec

                self.file = fsspec.open(self.path, "wb").open()
            else:
                os.makedirs(os.path.dirname(self.path), exist_ok=True)
                self.file = open(self._passing, "wb")
        except Exception as error:  # each file system raises its own errors
            raise StoreError(f"{self.path}: cannot be written: {error}") from error
        assert self.file is not None
        return self.file

    @property
    def _passing(self) -> str:
        directory, _, name = self.path.rpartition("/")
        return f"{directory}/.{name}.{os.getpid()}"  # Spark ignores names that start with a dot

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        assert self.file is not None
        if not is_url(self.path):
            self.file.close()
            if kind is None:
                os.replace(self._passing, self.path)
            else:
                os.unlink(self._passing)
        elif kind is None:
            self.file.close()
        else:
            discard = getattr(self.file, "discard", None)
            if discard is not None:
                discard()


def key_of(*parts: str) -> str:
    """Return a short name for this combination of texts (a hash)."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:20]


def folder(table: str, values: dict[str, str | None]) -> str:
    """Return the directory for rows of a table with these values: batches/broker=1/topic=payments."""
    parts = [f"{name}={NULL if value is None else quote(value, safe=SAFE)}" for name, value in values.items()]
    return "/".join([table, *parts])
