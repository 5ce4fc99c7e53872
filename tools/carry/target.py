"""The machines that a single file is built for, and what each has of its own."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from tools.carry import elf


@dataclass(frozen=True)
class Target:
    """One kind of machine. `name`: for uname, zig and wheels; `cpu`: the oldest, in zig's terms."""

    name: str
    elf_machine: int
    cpu: str
    glibc: tuple[int, int]
    """The oldest glibc that is enough. Objects that ask for symbols of a newer one are refused."""
    page: int
    """Bytes in the largest page that its kernels use. Objects whose segments are aligned to less do not load there."""
    loader: str
    """The dynamic loader, a library that other libraries may name."""
    wheel_tags: tuple[str, ...]
    """Platform tags of wheels from before those that name a glibc."""

    @property
    def system(self) -> set[str]:
        """The libraries of every Linux with glibc. Any other that something needs is carried along. (libstdc++ is
        asked for by protobuf alone, which uses its plain Python without it.)"""
        names = ("c.so.6", "dl.so.2", "gcc_s.so.1", "m.so.6", "pthread.so.0", "rt.so.1", "stdc++.so.6", "util.so.1")
        return {self.loader, *(f"lib{name}" for name in names)}

    @property
    def platforms(self) -> list[str]:
        """The platform tags of wheels that it takes."""
        glibcs = [f"manylinux_2_{minor}_{self.name}" for minor in range(self.glibc[1], 4, -1)]
        return [*glibcs, *self.wheel_tags]


TARGETS = (
    # glibc of RHEL 7, where the interpreter was built.
    Target(
        name="x86_64",
        elf_machine=62,
        cpu="x86_64",
        glibc=(2, 17),
        page=4096,
        loader="ld-linux-x86-64.so.2",
        wheel_tags=("manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64"),
    ),
    # glibc of Ubuntu 18.04, where the interpreter was built; RHEL 8 has 2.28, and kernels with pages of 64 KiB.
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
    """Return the kind of machine that an ELF object is for. Exits for one that no single file is built for."""
    machine = elf.machine(path)
    for target in TARGETS:
        if target.elf_machine == machine:
            return target
    sys.exit(f"{path}: single files are built for {' and '.join(each.name for each in TARGETS)} only")
