"""Packed bundles that cannot be read where they are: compressed, or under another name."""

from __future__ import annotations

from contextlib import closing

from kdump.io import file_system
from kdump.io.bundle.names import MANIFEST, PACKED
from kdump.io.errors import SourceError
from kdump.io.source import FileSource, Source, open_source
from kdump.io.window import Window


def is_packed(window: Window) -> bool:
    """Return True if a file, or what is compressed in it, begins as a packed bundle does."""
    return bytes(window.peek(0, len(MANIFEST))) == MANIFEST.encode()


def not_mounted(source: Source) -> SourceError:
    """Return the error for a packed bundle that is read as a file."""
    what = "a packed bundle:" if isinstance(source, FileSource) else "a compressed bundle: decompress it, then"
    return SourceError(f"{source.name}: {what} give the path of a file whose name ends in {PACKED}")


def refuse_compressed(path: str) -> None:
    """Raise SourceError for a packed bundle that is compressed."""
    if file_system.isfile(path):
        with closing(open_source(path)) as source:
            if is_packed(Window(source)):
                raise not_mounted(source)
