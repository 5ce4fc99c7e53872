"""The two checksums: CRC-32C (Castagnoli) over v2 batches, CRC-32 (as in zip) over v0 and v1 messages."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterable
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, PathFinder
from importlib.util import module_from_spec, spec_from_file_location
from os.path import isfile, join

from kdump.format.batch_formats import format_of
from kdump.format.varint import Bytes


def _castagnoli() -> Callable[..., int]:
    """Return crc32c.crc32c, loaded directly from the extension module inside the package: importing the package takes
    a third of a command's startup time, because it looks up its own version."""
    package = None if "crc32c" in sys.modules else PathFinder.find_spec("crc32c")
    for directory in (package and package.submodule_search_locations) or ():
        for suffix in EXTENSION_SUFFIXES:
            path = join(directory, "_crc32c" + suffix)
            spec = spec_from_file_location("crc32c._crc32c", path) if isfile(path) else None
            if spec is not None and isinstance(spec.loader, ExtensionFileLoader):
                module = module_from_spec(spec)
                spec.loader.exec_module(module)
                if hasattr(module, "crc32c"):
                    return module.crc32c  # type: ignore[no-any-return]
    from crc32c import crc32c

    return crc32c


castagnoli = _castagnoli()
"""Computes the CRC-32C of bytes; the optional second argument is the CRC of the bytes before them."""


def checksum(magic: int, chunks: Iterable[Bytes]) -> int:
    """Return the checksum that format `magic` stores, computed over all chunks together."""
    crc, compute = 0, zlib.crc32 if format_of(magic).is_message else castagnoli
    for chunk in chunks:
        crc = compute(chunk, crc)
    return crc
