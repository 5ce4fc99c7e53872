"""What a shared library or program asks of the machine that it is loaded on."""

from __future__ import annotations

import re
import struct
import subprocess
from pathlib import Path

GLIBC = re.compile(rb"\0GLIBC_(\d+)\.(\d+)(?:\.\d+)?(?=\0)")
NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]")
LOAD = re.compile(r"^ *LOAD .* (0x[0-9a-f]+)$", re.MULTILINE)
MACHINE = 18
"""Byte of the ELF header at which e_machine begins, two bytes."""


def is_elf(path: Path) -> bool:
    """Whether the file is an ELF object."""
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def machine(path: Path) -> int:
    """The machine that a little-endian ELF object is for (e_machine); 0 for a file that is none."""
    with path.open("rb") as file:
        head = file.read(MACHINE + 2)
    return int(struct.unpack_from("<H", head, MACHINE)[0]) if head[:4] == b"\x7fELF" and len(head) == MACHINE + 2 else 0


def newest_glibc(data: bytes) -> tuple[int, int]:
    """The newest version of glibc whose symbols the ELF object names, (0, 0) without any."""
    return max(((int(major), int(minor)) for major, minor in GLIBC.findall(data)), default=(0, 0))


def needed(path: Path) -> list[str]:
    """The libraries that it asks the loader for (DT_NEEDED)."""
    return NEEDED.findall(_readelf("-dW", path))


def alignment(path: Path) -> int:
    """Bytes to which its segments are aligned: the largest page with which it loads."""
    return min((int(text, 16) for text in LOAD.findall(_readelf("-lW", path))), default=0)


def _readelf(option: str, path: Path) -> str:
    return subprocess.run(["readelf", option, str(path)], check=True, capture_output=True, text=True).stdout
