"""Requirements that a shared library or program places on the machine that loads it."""

from __future__ import annotations

import re
import struct
import subprocess
from pathlib import Path

NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]")
LOAD = re.compile(r"^ *LOAD .* (0x[0-9a-f]+)$", re.MULTILINE)
MACHINE = 18
"""Position of e_machine (two bytes) in the ELF header."""


def is_elf(path: Path) -> bool:
    """Return True if the file is an ELF object."""
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def machine(path: Path) -> int:
    """Return the architecture of a little-endian ELF object (e_machine); 0 if the file is not an ELF object."""
    with path.open("rb") as file:
        head = file.read(MACHINE + 2)
    return int(struct.unpack_from("<H", head, MACHINE)[0]) if head[:4] == b"\x7fELF" and len(head) == MACHINE + 2 else 0


def needed(path: Path) -> list[str]:
    """Return the libraries that the object requires from the loader (DT_NEEDED), without the C library: musl loads
    itself under each of its names."""
    return [name for name in NEEDED.findall(_readelf("-dW", path)) if not name.startswith("libc.")]


def alignment(path: Path) -> int:
    """Return the alignment of the object's segments in bytes, which is the largest page size with which it loads."""
    return min((int(text, 16) for text in LOAD.findall(_readelf("-lW", path))), default=0)


def _readelf(option: str, path: Path) -> str:
    return subprocess.run(["readelf", option, str(path)], check=True, capture_output=True, text=True).stdout
