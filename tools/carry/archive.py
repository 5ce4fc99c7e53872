"""Writes the single file: the launcher, followed by a zip archive that is read in place.

Its last two members tell the interpreter what it needs before it can read an archive (FROZEN), and where each member
is (MEMBERS), so that nothing searches the archive's directory at a start."""

from __future__ import annotations

import marshal
import struct
import zipfile
from collections.abc import Collection
from pathlib import Path

MAGIC = b"kdump\0\0\3"
"""Same as in own_path.h."""
PYTHON, LIBC, FROZEN, MEMBERS = "python", "libc.so", "frozen", "members"
"""Members that the launcher maps into memory from the file itself, and those for the interpreter."""
FIRST = (
    *("encodings", "encodings.aliases", "encodings.ascii", "encodings.utf_8"),
    *("linecache", "kdump_carried", "carried_table"),
)
"""Modules that Python needs before kdump_carried can find others: musl knows no other character set."""
FIXED = (1980, 1, 1, 0, 0, 0)
"""Timestamp of every member."""
HEADER = 30
"""Bytes of a member's header in the archive, without its name and extra field."""
BYTECODE_HEADER = 16
PLAIN = 2
"""Version of marshal that any Python reads, and whose bytes depend on nothing but the data."""
PADDING = 0xD935
"""ID of the extra field that only aligns a member."""


def write(launcher: bytes, tree: Path, stored: Collection[str], page: int, out: Path) -> None:
    """Write `out`. The same contents give the same bytes, at any time and on any machine. `stored`: members that are
    not compressed; `page`: bytes to which what is mapped is aligned."""
    members: dict[str, tuple[int, int, int]] = {}  # position, size there, size when inflated: 0 if it is stored
    with out.open("wb+") as file:
        file.write(launcher)
        with zipfile.ZipFile(file, "a") as archive:

            def add(member: str, data: bytes, kind: int = zipfile.ZIP_STORED) -> None:
                info = zipfile.ZipInfo(member, FIXED)
                info.external_attr = 0o100644 << 16
                info.compress_type = kind
                if member in (PYTHON, LIBC):
                    head = file.tell() + HEADER + len(member) + 4
                    info.extra = struct.pack("<HH", PADDING, -head % page) + bytes(-head % page)
                archive.writestr(info, data, compresslevel=9)
                members[member] = (file.tell() - info.compress_size, info.compress_size, len(data) if kind else 0)

            for path in sorted(tree.rglob("*")):
                member = str(path.relative_to(tree))
                if path.is_dir():
                    # A package without __init__ (google, of protobuf) is recognized only by a directory entry.
                    if not (path / "__init__.pyc").exists():
                        archive.writestr(zipfile.ZipInfo(member + "/", FIXED), b"")
                        members[member + "/"] = (0, 0, 0)
                    continue
                as_it_is = member in stored or member in (PYTHON, LIBC)
                add(member, path.read_bytes(), zipfile.ZIP_STORED if as_it_is else zipfile.ZIP_DEFLATED)
            add(FROZEN, frozen(tree))
            add(MEMBERS, marshal.dumps(members, PLAIN))
            found = [members[name] for name in (PYTHON, LIBC, FROZEN, MEMBERS)]
            archive.comment = MAGIC + struct.pack(
                "<8Q", *(number for place, size, _ in found for number in (place, size))
            )
    assert not any(members[member][0] % page for member in (PYTHON, LIBC))
    out.chmod(0o755)


def frozen(tree: Path) -> bytes:
    """Return the modules of FIRST as interpreter.c reads them: for each, the sizes of its name and code, whether it is
    a package, name, code."""
    parts = []
    for name in FIRST:
        path = tree / name.replace(".", "/")
        is_package = path.is_dir()
        code = (path / "__init__.pyc" if is_package else path.with_suffix(".pyc")).read_bytes()[BYTECODE_HEADER:]
        parts.append(struct.pack("<III", len(name) + 1, len(code), is_package) + name.encode() + b"\0" + code)
    return b"".join(parts)
