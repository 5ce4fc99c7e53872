"""Names of the files in a bundle (docs/bundle.md)."""

from __future__ import annotations

import os
import re

MANIFEST = "kdump-bundle.json"
CONTAINER = ".kdb"
PACKED = ".tar"
COMPRESSED = (f"{PACKED}.gz", ".tgz", f"{PACKED}.zst", PACKED)
"""Ends of the names of files that may be compressed bundles."""
MAX_NAME = 200
"""Maximum bytes of a container's name: file systems allow 255."""


def container_name(directory: str) -> str:
    """Return the name of the container of a directory, by its path relative to the one that was bundled."""
    from urllib.parse import quote_from_bytes  # not at the top: every run imports this module

    encoded = os.fsencode(directory)
    name = quote_from_bytes(encoded, safe="") or "%"
    if len(name) > MAX_NAME:
        from hashlib import blake2b

        name = "%-" + blake2b(encoded, digest_size=16).hexdigest()
    return name + CONTAINER


def part_name(container: str, number: int) -> str:
    """Return the name of a part of a container in a packed bundle; the first has that of the container."""
    return f"{container}.{number}" if number else container


def container_of_part(name: str) -> str | None:
    """Return the name of the container that a file is, or is a part of; None for another file."""
    container, ending, number = name.rpartition(CONTAINER)
    return container + ending if ending and re.fullmatch(r"(\.[1-9][0-9]*)?", number) else None


def bundle_of(path: str) -> str | None:
    """Return the bundle that a path is, or is in; None if there is none."""
    if path.startswith("-") or "://" in path or "\0" in path:
        return None
    while path and not is_bundle(path):
        above = path.rstrip("/").rpartition("/")[0]
        if os.path.exists(path) or above == path:
            return None
        path = above
    return path or None


def is_bundle(path: str) -> bool:
    """Return True if a path is that of a bundle: a directory with a manifest, or a tar file that begins with one."""
    if path.endswith(PACKED) and os.path.isfile(path):
        try:
            with open(path, "rb") as file:
                head = file.read(512)
        except OSError:
            return False
        return head[:100].rstrip(b"\0") == MANIFEST.encode() and head[257:262] == b"ustar"
    return bool(path) and "\0" not in path and os.path.isfile(os.path.join(path, MANIFEST))
