"""Names of the files in a bundle, and how a bundle is recognized (docs/bundle.md)."""

from __future__ import annotations

import io
import os

FORMAT = 2
"""Version of the format of bundles. A reader refuses others."""
MANIFEST = "kdump-bundle.json"
FACTS = "kdump-bundle"
"""The directory in a tar file in which is what kdump knows about the other files."""
CONTAINER = ".tar.zst"
"""End of the name of a part: the files of one directory."""
PACKED = (CONTAINER, ".tar")
"""Ends of the names of bundles in one file."""
COMPRESSED = (".tar.gz", ".tgz", ".tar.zst", ".tar")
"""Ends of the names of files that may be bundles that cannot be read where they are."""
MAX_NAME = 200
"""Maximum bytes of a part's name: file systems allow 255."""
ZSTD = b"\x28\xb5\x2f\xfd"
HEAD = 4096


def container_name(directory: str) -> str:
    """Return the name of the part of a directory, by its path relative to the one that was bundled."""
    from urllib.parse import quote_from_bytes  # not at the top: every run imports this module

    encoded = os.fsencode(directory)
    name = quote_from_bytes(encoded, safe="") or "%"
    if len(name) > MAX_NAME:
        from hashlib import blake2b

        name = "%-" + blake2b(encoded, digest_size=16).hexdigest()
    return name + CONTAINER


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
                return begins_as_packed(file.read(HEAD))
        except OSError:
            return False
    return bool(path) and "\0" not in path and os.path.isfile(os.path.join(path, MANIFEST))


def begins_as_packed(data: bytes) -> bool:
    """Return True if a file that begins with these bytes is a packed bundle, of this format or of an older one."""
    if data.startswith(ZSTD):
        from kdump.format.codec.source import library  # slow to import

        zstd = library("zstandard", "zstandard", "Bundle")
        try:
            data = zstd.ZstdDecompressor(max_window_size=1 << 23).stream_reader(io.BytesIO(data)).read(512)
        except zstd.ZstdError:
            return False
    return data[:100].rstrip(b"\0") == MANIFEST.encode() and data[257:262] == b"ustar"


def other_format(path: str, number: object) -> str:
    """Return the message for a bundle of another format."""
    other = f"{path}: a bundle of format {number!r}, of another version of kdump"
    return f"{other}; this one reads {FORMAT}: make it again with this version"
