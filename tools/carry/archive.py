"""Writes the single file: the launcher, followed by a zip archive that Python's zipimport reads in place."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

MAGIC = b"kdump\0\0\2"
"""Same as in own_path.h."""
PYTHON, LIBC = "python", "libc.so"
"""Members that the launcher maps into memory from the file itself."""
STORED = ("encodings/", "kdump_carried", "carried_table", PYTHON, LIBC)
"""Prefixes of the members that are stored uncompressed: those, and what Python reads before it can decompress."""
FIXED = (1980, 1, 1, 0, 0, 0)
"""Timestamp of every member."""
HEADER = 30
"""Bytes of a member's header in the archive, without its name and extra field."""
PADDING = 0xD935
"""ID of the extra field that only aligns a member."""


def write(launcher: bytes, tree: Path, page: int, out: Path) -> None:
    """Write `out`. The same contents give the same bytes, at any time and on any machine. `page`: bytes to which what
    is mapped is aligned."""
    places: dict[str, int] = {}
    with out.open("wb+") as file:
        file.write(launcher)
        with zipfile.ZipFile(file, "a") as archive:
            for path in sorted(tree.rglob("*")):
                member = str(path.relative_to(tree))
                if path.is_dir():
                    # zipimport recognizes a package without __init__ (google, of protobuf) only by a directory entry.
                    if not (path / "__init__.pyc").exists():
                        archive.writestr(zipfile.ZipInfo(member + "/", FIXED), b"")
                    continue
                data = path.read_bytes()
                info = zipfile.ZipInfo(member, FIXED)
                info.external_attr = 0o100644 << 16
                info.compress_type = zipfile.ZIP_STORED if member.startswith(STORED) else zipfile.ZIP_DEFLATED
                if member in (PYTHON, LIBC):
                    head = file.tell() + HEADER + len(member) + 4
                    info.extra = struct.pack("<HH", PADDING, -head % page) + bytes(-head % page)
                archive.writestr(info, data, compresslevel=9)
                if member in (PYTHON, LIBC):
                    places[member] = file.tell() - len(data)
            archive.comment = MAGIC + struct.pack("<QQ", places[PYTHON], places[LIBC])
    assert not any(place % page for place in places.values())
    out.chmod(0o755)
