"""The manifest of a bundle: what is known about it as a whole (docs/bundle.md)."""

from __future__ import annotations

import json
import os
from typing import NamedTuple

from kdump.format.errors import DecodeError
from kdump.io.bundle.members import ReadPart
from kdump.io.bundle.names import FORMAT, MANIFEST, other_format
from kdump.io.errors import SourceError
from kdump.io.sorted_lines import extent_of

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


def read_manifest(path: str, read: ReadPart) -> Manifest:
    """Read the manifest. Raises SourceError."""
    try:
        values = json.loads(_bytes(path, read))
        if values["format"] != FORMAT:
            raise SourceError(other_format(path, values["format"]))
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
        raise SourceError.at(path, f"{MANIFEST}: {error.strerror}") from error
    except (KeyError, TypeError, ValueError, RecursionError, AttributeError, DecodeError) as error:
        raise SourceError.at(path, f"{MANIFEST} is not that of a bundle: {error}") from error
    return manifest


def _bytes(path: str, read: ReadPart) -> bytes:
    if os.path.isdir(path):
        with open(os.path.join(path, MANIFEST), "rb") as file:
            data = file.read(MAX_MANIFEST + 1)
    else:
        frames = read(MANIFEST)
        start, size = extent_of(frames.part.about["index"])
        data = frames.read(start, min(size, MAX_MANIFEST + 1))
    if len(data) > MAX_MANIFEST:
        raise ValueError(f"more than {MAX_MANIFEST} bytes")
    return data
