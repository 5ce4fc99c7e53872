"""What a shared library or program asks of the machine that it is loaded on."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

GLIBC = re.compile(rb"\0GLIBC_(\d+)\.(\d+)(?:\.\d+)?(?=\0)")
NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]")


def is_elf(path: Path) -> bool:
    """Whether the file is an ELF object."""
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def newest_glibc(data: bytes) -> tuple[int, int]:
    """The newest version of glibc whose symbols the ELF object names, (0, 0) without any."""
    return max(((int(major), int(minor)) for major, minor in GLIBC.findall(data)), default=(0, 0))


def needed(path: Path) -> list[str]:
    """The libraries that it asks the loader for (DT_NEEDED)."""
    said = subprocess.run(["readelf", "-dW", str(path)], check=True, capture_output=True, text=True).stdout
    return NEEDED.findall(said)
