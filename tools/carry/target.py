"""Architectures that the single file is built for."""

from __future__ import annotations

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
    glibc: tuple[int, int]
    """Oldest supported glibc. Objects that need symbols of a newer one are rejected."""
    page: int
    """Largest page size of its kernels in bytes. Objects whose segments have a smaller alignment do not load there."""
    loader: str
    """Dynamic loader, a library that other libraries may require."""
    wheel_tags: tuple[str, ...]
    """Platform tags of wheels older than the tags that include a glibc version."""

    @property
    def system(self) -> set[str]:
        """Libraries that every Linux with glibc has. Any others that are needed go into the file. (libstdc++ is needed
        only by protobuf, which uses its pure Python implementation without it.)"""
        names = ("c.so.6", "dl.so.2", "gcc_s.so.1", "m.so.6", "pthread.so.0", "rt.so.1", "stdc++.so.6", "util.so.1")
        return {self.loader, *(f"lib{name}" for name in names)}

    @property
    def platforms(self) -> list[str]:
        """Platform tags of the wheels that it accepts."""
        glibcs = [f"manylinux_2_{minor}_{self.name}" for minor in range(self.glibc[1], 4, -1)]
        return [*glibcs, *self.wheel_tags]


TARGETS = (
    # glibc of RHEL 7, on which the interpreter was built.
    Target(
        name="x86_64",
        elf_machine=62,
        cpu="x86_64",
        glibc=(2, 17),
        page=4096,
        loader="ld-linux-x86-64.so.2",
        wheel_tags=("manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64"),
    ),
    # glibc of Ubuntu 18.04, on which the interpreter was built. RHEL 8 has 2.28, and kernels with pages of 64 KiB.
    Target(
        name="aarch64",
        elf_machine=183,
        cpu="generic",
        glibc=(2, 27),
        page=65536,
        loader="ld-linux-aarch64.so.1",
        wheel_tags=("manylinux2014_aarch64",),
    ),
)


def target_of(path: Path) -> Target:
    """Return the architecture of an ELF object. Exits if no single file is built for it."""
    machine = elf.machine(path)
    for target in TARGETS:
        if target.elf_machine == machine:
            return target
    sys.exit(f"{path}: single files are built for {' and '.join(each.name for each in TARGETS)} only")
