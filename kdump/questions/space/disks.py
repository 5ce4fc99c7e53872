"""A file system with log directories of the broker: what is free there, what it takes to start, and the table of steps.

What is freed on one file system is no help to another, so that each has a table of its own. Only the broker's own host
has file systems: there are none for a bundle, or for a copy of partitions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kdump.cluster.disks import Node
from kdump.io import file_system
from kdump.io.directory_listing import is_inside, is_url
from kdump.log.lock_holder import lock_holder
from kdump.log.log_directory import COPY_OF_PARTITIONS, LogDirectory
from kdump.questions.restart_plan.node.access_rights import broker_rights, free_space
from kdump.questions.space.answer import RUNNING, STOPPED, UNKNOWN, SpaceKept, SpaceStep
from kdump.questions.space.usage import DirectoryUsage, total

MOUNTS = "/proc/self/mounts"
ESCAPED = re.compile(r"\\([0-7]{3})")


class FileSystem(NamedTuple):
    """A file system, with the fields of SpaceDirectory. `free` is what the broker's user can write, `reserved` what
    only root can (tune2fs -m). `inodesFree` is None if inodes are not limited."""

    number: int
    mount: str | None
    fileSystem: str | None
    device: str | None
    total: int
    used: int
    free: int
    reserved: int
    inodesFree: int | None = None


def not_the_disk(directory: LogDirectory) -> str | None:
    """Return what a log directory is if it is not the broker's own disk, so that its file system and locks say nothing
    about the broker; None otherwise."""
    if is_url(directory.path):
        return "a URL"
    if file_system.tree_at(directory.path) is not None:
        return "a bundle"
    return COPY_OF_PARTITIONS if directory.is_copy_of_partitions else None


def file_system_of(directory: LogDirectory) -> FileSystem | None:
    """Return the file system of a log directory; None if it is not the broker's own disk, or if it cannot be
    determined."""
    if not_the_disk(directory) is not None:
        return None
    path = directory.path
    try:
        status = os.statvfs(path)
        number = os.stat(path).st_dev
    except OSError:
        return None
    of_broker = free_space(path, as_root=broker_rights([path]).is_root)
    if of_broker is None:
        return None
    blocks = status.f_blocks, status.f_blocks - status.f_bfree, status.f_bfree, status.f_bavail
    total, used, left, of_any = (count * status.f_frsize for count in blocks)
    free, inodes = of_broker
    reserved = left - of_any if free == of_any else 0
    mount = _mount_of(os.path.realpath(path))
    return FileSystem(number, *mount, total, used, free, reserved, inodes)


def _mount_of(path: str) -> tuple[str | None, str | None, str | None]:
    """Return mount point, type and device of the file system that contains `path`; None where they are unknown."""
    best: tuple[str | None, str | None, str | None] = None, None, None
    try:
        with open(MOUNTS, errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return best
    for line in lines:
        fields = [ESCAPED.sub(lambda match: chr(int(match[1], 8)), part) for part in line.split(" ")]
        if len(fields) > 2 and is_inside(path, fields[1]) and len(fields[1]) >= len(best[0] or ""):
            best = fields[1], fields[2], fields[0]
    return best


def state_of(broker: Node) -> str:
    """Return whether the broker is running, by the locks on its log directories."""
    if any(not_the_disk(directory) is not None for directory in broker.directories):
        return UNKNOWN
    return RUNNING if any(lock_holder(directory.path) is not None for directory in broker.directories) else STOPPED


GOAL = 0.15
"""Share of the file system that is free once the goal is reached, unless --need states another."""
LEAST = 1 << 20
"""Free bytes below which a running broker is about to fail."""
SHARE = 0.05
"""Share of a file system from which what is not in the log directories is mentioned."""


def needed_inodes(logs: int) -> int:
    """Return the number of inodes that must be free, for new checkpoints and a producer snapshot for each log."""
    return 64 + logs


@dataclass
class Disk:
    """The log directories on a file system, and its table. `system`: None if they are not on the broker's own disk.
    `state`: of the broker. `goal`: bytes to free, None if it is unknown. `needs`: what must be free for the broker to
    start because of each log directory, by path."""

    system: FileSystem | None
    state: str
    usages: list[DirectoryUsage] = field(default_factory=list)
    goal: int | None = None
    needs: dict[str, int] = field(default_factory=dict)
    steps: list[SpaceStep] = field(default_factory=list)

    @property
    def sources(self) -> frozenset[str]:
        """Paths of the log directories."""
        return frozenset(usage.directory.path for usage in self.usages)

    @property
    def elsewhere(self) -> int:
        """Used on the file system, but not by what is in the log directories."""
        own = total(usage.total() for usage in self.usages)
        return 0 if self.system is None else max(0, self.system.used - own.allocated - own.linked)

    @property
    def freed(self) -> int:
        """Freed by the steps so far."""
        return sum(step.frees for step in self.steps)

    @property
    def needed(self) -> int:
        return sum(self.needs.values())

    @property
    def lacks(self) -> int:
        """Bytes that a stopped broker still lacks to start after the steps so far."""
        if self.state != STOPPED or self.system is None:
            return 0
        return max(0, self.needed - self.system.free - sum(step.freesAtOnce for step in self.steps))

    @property
    def missing_inodes(self) -> int:
        """Inodes that a broker lacks to start before any step."""
        if self.system is None or self.system.inodesFree is None:
            return 0
        return max(0, needed_inodes(sum(len(usage.live()) for usage in self.usages)) - self.system.inodesFree)

    @property
    def lacks_inodes(self) -> bool:
        """Whether a stopped one still lacks some."""
        return self.state == STOPPED and self.missing_inodes > sum(step.files for step in self.steps if step.paths)

    @property
    def is_full(self) -> bool:
        """Whether the broker cannot start with what is free, or cannot go on."""
        return self.system is not None and (self.missing_inodes > 0 or self.system.free < (self.needed or LEAST))

    @property
    def is_enough(self) -> bool:
        """Whether the steps reach the goal, and let a stopped broker start."""
        return self.goal is not None and self.freed >= self.goal and not self.lacks and not self.lacks_inodes

    def take(self, step: SpaceStep) -> None:
        """Add a row to the table."""
        is_needed = None
        if self.goal is not None:
            makes_room = (step.freesAtOnce and self.lacks) or (step.paths and self.lacks_inodes)
            is_needed = bool(self.freed < self.goal or makes_room or not step.frees)
        then = None if self.system is None else self.system.free + self.freed + step.frees
        mount = None if self.system is None else self.system.mount
        self.steps.append(step._replace(mount=mount, freeThen=then, isNeeded=is_needed))

    def kept_elsewhere(self) -> Iterator[SpaceKept]:
        """Yield what takes space on the file system without being in the log directories."""
        if self.system is not None and self.elsewhere >= self.system.total * SHARE:
            why = "other files on this file system, or deleted files that a process still holds open (du -x, lsof +L1)"
            yield SpaceKept(self.system.mount or "", self.elsewhere, False, why)


def disks_of(usages: Sequence[DirectoryUsage], state: str, need: int | None) -> list[Disk]:
    """Return the file systems of the log directories; one without a FileSystem for those whose file system is unknown.
    `need`: bytes to free on each."""
    disks: dict[int | None, Disk] = {}
    for usage in usages:
        system = file_system_of(usage.directory)
        goal = need if system is None or need is not None else max(0, int(system.total * GOAL) - system.free)
        disk = disks.setdefault(None if system is None else system.number, Disk(system, state, goal=goal))
        disk.usages.append(usage)
    return list(disks.values())
