"""Architectures that the single file is built for."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from tools.carry import elf


@dataclass(frozen=True)
class Target:
    """Architecture. `name`: as in uname, zig and wheels; `cpu`: the oldest CPU, by its name in zig."""

    name: str
    elf_machine: int
    cpu: str
    page: int
    """Largest page size of its kernels in bytes. Objects whose segments have a smaller alignment do not load there."""

    @property
    def platforms(self) -> list[str]:
        """Platform tags of the wheels that it accepts."""
        return [f"musllinux_1_{minor}_{self.name}" for minor in (2, 1)]


# Kernels of RHEL 8 for aarch64 have pages of 64 KiB.
TARGETS = (Target("x86_64", 62, "x86_64", 4096), Target("aarch64", 183, "generic", 65536))
HOST = next((each for each in TARGETS if each.name == platform.machine()), TARGETS[0])
"""The architecture of this machine."""


def target_of(path: Path) -> Target:
    """Return the architecture of an ELF object. Exits if no single file is built for it."""
    machine = elf.machine(path)
    for target in TARGETS:
        if target.elf_machine == machine:
            return target
    sys.exit(f"{path}: single files are built for {' and '.join(each.name for each in TARGETS)} only")
