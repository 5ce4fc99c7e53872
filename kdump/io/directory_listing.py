"""Lists directories: of a file system, or of a URL that fsspec supports."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from kdump.extras import how_to_install
from kdump.io import file_system
from kdump.io.errors import SourceError, is_only_noted, listing_error
from kdump.io.low_impact_reads import before_request
from kdump.io.unreadable_paths import note


class DirectoryEntry(NamedTuple):
    """A file or directory in the directory `above`. Its path is not kept: a directory may have 200,000 files."""

    name: str
    above: str
    is_directory: bool

    @property
    def path(self) -> str:
        return f"{self.above.rstrip('/')}/{self.name}" if is_url(self.above) else os.path.join(self.above, self.name)


def is_url(path: str) -> bool:
    return "://" in path


def is_directory(path: str) -> bool:
    """Return True if the path is a directory (links are followed); in an object store, a prefix with objects below."""
    if not is_url(path):
        return file_system.isdir(path)
    try:
        store, inside = _store(path)
        store.invalidate_cache()
        return bool(store.isdir(inside))
    except (OSError, SourceError):
        return False
    except Exception:  # every store has its own errors
        return False


def is_no_file(path: str) -> bool:
    """Return True if there is something other than a regular file (links are followed). A single look, because a
    running broker deletes and renames files at any moment."""
    try:
        return not stat.S_ISREG(file_system.stat(path).st_mode)
    except OSError:
        return False


def items(directory: str) -> list[DirectoryEntry]:
    """Return the contents of a directory, sorted by name. Raises OSError."""
    if is_url(directory):
        return [entry for entry, _ in _of_store(directory)]
    found = []
    try:
        with file_system.scandir(directory) as entries:
            for entry in entries:
                try:
                    found.append(DirectoryEntry(entry.name, directory, entry.is_dir()))
                except OSError:  # a circular link
                    found.append(DirectoryEntry(entry.name, directory, False))
    except OSError as error:
        if not is_only_noted(error, directory):
            note(listing_error(error, directory))
        raise
    return sorted(found)


def sized(directory: str) -> Iterator[tuple[DirectoryEntry, int]]:
    """Yield the contents of a directory, sorted by name, each with its size in bytes (0 for a directory). A store is
    asked once, and keeps nothing of it. Raises OSError."""
    if not is_url(directory):
        for entry in items(directory):
            yield entry, 0 if entry.is_directory else length(entry.path) or 0
        return
    try:
        yield from _of_store(directory)
    finally:
        with suppress(Exception):  # every store has its own errors
            _store(directory)[0].invalidate_cache()


def pages(url: str) -> Iterator[list[tuple[str, int]]] | None:
    """Return the objects below a URL, page by page as the store lists them, each with its size in bytes; None if its
    package has no such listing (only s3fs has), or the URL is a directory's. Iterating raises OSError."""
    try:
        store, inside = _store(url)
    except SourceError:
        return None
    return _pages(store, url, inside) if is_url(url) and hasattr(store, "_iterdir") else None


PAGE = 1000


def _pages(store: Any, url: str, inside: str) -> Iterator[list[tuple[str, int]]]:
    from fsspec.asyn import sync

    async def page(rows: Any) -> list[tuple[str, int]]:
        found: list[tuple[str, int]] = []
        async for row in rows:
            found.append((scheme + row["name"], int(row["size"] or 0)))
            if len(found) == PAGE:
                break
        return found

    scheme = url[: url.index("://") + 3]
    bucket, _, prefix = inside.partition("/")
    rows = store._iterdir(bucket, delimiter="", prefix=f"{prefix}/" if prefix else "")
    try:
        found: list[tuple[str, int]] = [("", 0)] * PAGE
        while len(found) == PAGE:
            before_request(url)
            found = sync(store.loop, page, rows)
            yield found
    except SourceError as error:
        raise OSError(errno.EIO, str(error).partition(": ")[2], url) from error
    except Exception as error:  # every store has its own errors
        raise OSError(errno.EIO, str(error) or type(error).__name__, url) from error


def names(directory: str) -> list[str]:
    """Return the names in a directory, sorted. Raises OSError."""
    return [item.name for item in items(directory)]


def length(path: str) -> int | None:
    """Return the size of a file in bytes; None if it cannot be determined."""
    try:
        if not is_url(path):
            return file_system.stat(path).st_size
        store, inside = _store(path)
        size = store.info(inside).get("size")
    except Exception:  # every store has its own errors
        return None
    return int(size) if size is not None else None


MARKS = ("ETag", "etag", "md5Hash", "content_md5", "mtime", "LastModified", "last_modified", "updated", "created")
"""Metadata keys by which object stores identify an object's version, most reliable first."""


def version(url: str) -> tuple[int, str]:
    """Return the size of a store's object in bytes and its version, empty if the store has none; (-1, "") if it cannot
    be reached."""
    try:
        store, inside = _store(url)
        details = store.info(inside)
        mark = next((str(details[name]) for name in MARKS if details.get(name) is not None), "")
        return int(details.get("size") or 0), mark
    except Exception:  # every store has its own errors
        return -1, ""


def parent(path: str) -> str:
    """Return the directory that contains a directory or file, in the form of `path`: relative if that is."""
    bare = path.rstrip("/")
    if is_url(path):
        return bare.rpartition("/")[0]
    if os.path.basename(bare) in ("", ".", ".."):
        return os.path.normpath(os.path.join(path, ".."))
    return os.path.dirname(bare) or "."


def is_inside(path: str, directory: str) -> bool:
    """Return True if a path is that directory or below it; both must be absolute."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def real_path(path: str) -> str:
    """Return the canonical path of a file or directory, the same for every path that leads to it."""
    return path.rstrip("/") if is_url(path) else os.path.realpath(path)


def _of_store(url: str) -> list[tuple[DirectoryEntry, int]]:
    try:
        store, inside = _store(url)
        before_request(url)
        rows = store.ls(inside, detail=True)
    except OSError:
        raise
    except SourceError as error:
        raise OSError(errno.EIO, str(error).partition(": ")[2], url) from error
    except Exception as error:
        raise OSError(errno.EIO, str(error) or type(error).__name__, url) from error
    entries: list[tuple[DirectoryEntry, int]] = []
    own = inside.rstrip("/").rpartition("/")[2]
    for row in rows:
        path = row["name"].rstrip("/")
        name = path.rpartition("/")[2]
        if name and not (name == own and path == inside.rstrip("/")):  # some stores list the directory itself
            entries.append((DirectoryEntry(name, url, row["type"] == "directory"), int(row.get("size") or 0)))
    return sorted(entries)


def _store(url: str) -> tuple[Any, str]:
    """Return the file system of a URL and the path in it. Raises SourceError if there is none for such URLs, or if it
    cannot be reached."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise SourceError.at(url, f"reading URLs needs fsspec: {how_to_install('remote')}") from None
    try:
        store: tuple[Any, str] = url_to_fs(url)
    except Exception as error:  # every store has its own errors, also when it connects
        raise SourceError.at(url, f"{str(error) or type(error).__name__}") from error
    return store


def globbed(url: str) -> list[str]:
    """Return the URLs that match one with wildcards; none if the store cannot be reached."""
    try:
        store, inside = _store(url)
        store.invalidate_cache()
        start = url[: url.index("://") + 3]
        return [start + name.lstrip("/") if start != "memory://" else start + name for name in store.glob(inside)]
    except Exception:  # every store has its own errors
        return []
