"""Writes the single file: the launcher, followed by a zip archive that Python's zipimport reads in place."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

MAGIC = b"kdump\0\0\1"
"""Same as in launcher.c."""
STORED = ("encodings/", "kdump_carried", "carried_table", "zlib.", "libz.", "libpython")
"""Prefixes of the members that are read before zlib is available, and so are stored uncompressed."""
FIXED = (1980, 1, 1, 0, 0, 0)
"""Timestamp of every member."""


def write(launcher: bytes, tree: Path, python: str, out: Path) -> None:
    """Write `out`. The same contents give the same bytes, at any time and on any machine. `python`: name of libpython
    in `tree`."""
    place = b""
    with out.open("wb+") as file:
        file.write(launcher)
        with zipfile.ZipFile(file, "a") as archive:
            for path in sorted(tree.rglob("*")):
                member = str(path.relative_to(tree))
                if path.is_dir():
                    # zipimport recognizes a package without __init__ (google, of protobuf) only by a directory entry.
                    archive.writestr(zipfile.ZipInfo(member + "/", FIXED), b"")
                    continue
                data = path.read_bytes()
                info = zipfile.ZipInfo(member, FIXED)
                info.external_attr = 0o100644 << 16
                info.compress_type = zipfile.ZIP_STORED if member.startswith(STORED) else zipfile.ZIP_DEFLATED
                archive.writestr(info, data, compresslevel=9)
                if member == python:
                    place = struct.pack("<QQ", file.tell() - len(data), len(data))
            archive.comment = MAGIC + place
    out.chmod(0o755)
