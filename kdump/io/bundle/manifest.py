"""The manifest of a bundle: what is known about it as a whole (docs/bundle.md)."""

from __future__ import annotations

import json
import os
from typing import NamedTuple

from kdump.io.bundle.members import ReadMember
from kdump.io.bundle.names import MANIFEST
from kdump.io.errors import SourceError

FORMAT = 1
"""Version of the format of bundles. A reader refuses others."""
MAX_MANIFEST = 16 << 20
"""Maximum bytes of a manifest."""


class Manifest(NamedTuple):
    """What is known about a bundle as a whole. `directories`: paths of what was bundled, on its host; `depth`: headers,
    crc or records; `internal`: whether Kafka's own topics are complete; `topics`: those whose records are complete;
    `hashKey`: name of the key of hashes; `redacted`: that of the key under which names were replaced, None if none
    were."""

    format: int
    kdump: str
    host: str
    created: int
    directories: list[str]
    names: list[str]
    depth: str
    internal: bool
    topics: list[str]
    hashKey: str | None
    redacted: str | None
    complete: bool


def read_manifest(path: str, read: ReadMember) -> Manifest:
    """Read the manifest. Raises SourceError."""
    try:
        read_at, size = read(MANIFEST)
        if size > MAX_MANIFEST:
            raise ValueError(f"{size} bytes")
        values = json.loads(read_at(0, size))
        if values["format"] != FORMAT:
            other = f"{path}: a bundle of format {values['format']!r}, of another version of kdump"
            raise SourceError(f"{other}; this one reads {FORMAT}: make it again with this version")
        manifest = Manifest(**{name: values[name] for name in Manifest._fields})
        lists = (manifest.directories, manifest.names, manifest.topics)
        texts = [manifest.kdump, manifest.host, manifest.depth, manifest.hashKey or "", manifest.redacted or ""]
        texts += (each for one in lists for each in one)
        numbers = (manifest.created, manifest.internal, manifest.complete)
        if not all(type(each) is list for each in lists) or [type(each) for each in numbers] != [int, bool, bool]:
            raise ValueError("a value of another type")
        for text in texts:
            os.fsencode(text)  # raises for what is no text, or cannot be printed
        if len(manifest.directories) != len(manifest.names) or not manifest.names:
            raise ValueError("its directories have no names")
        if any(not name or "/" in name or "\0" in name or name in (".", "..") for name in manifest.names):
            raise ValueError("an impossible name of a directory")
    except OSError as error:
        raise SourceError(f"{path}: {MANIFEST}: {error.strerror}") from error
    except (KeyError, TypeError, ValueError, RecursionError, AttributeError) as error:
        raise SourceError(f"{path}: {MANIFEST} is not that of a bundle: {error}") from error
    return manifest
