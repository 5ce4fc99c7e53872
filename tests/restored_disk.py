"""Disks that are damaged by one recipe after another: copied once, and restored in between."""

from __future__ import annotations

import os
import re
import shutil
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tests.conftest import DISKS
from tests.damages import DISK_PATHS, copy_disk, second_directory
from tests.questions.restart_plan.restart_recipe import beside
from tools.corpus import MADE

SPARED = ("clicks-0", "large-0", "aiokafka-*", "franz-*", "kafkajs-*", "kafkapython-*")
"""Partitions that are large, or one of many of their kind, and that most recipes leave alone."""
RARE = (*SPARED, "acks0-0", "future-0", "librdkafka-*", "logappend-0", "orders-[gls]*", "prealloc-0", "sessions-0")
"""These, and partitions that few recipes change."""


class Disk:
    """A copy of a disk in `work`, restored by each `restore`; without the partitions that match a pattern in
    `spared`."""

    def __init__(self, name: str, work: Path, spared: tuple[str, ...] = SPARED) -> None:
        self.name = name
        place = work / f"without-{len(spared)}"
        place.mkdir(exist_ok=True)
        self.root = place / name
        shutil.copytree(
            DISKS / DISK_PATHS[name],
            self.root,
            symlinks=True,
            ignore=shutil.ignore_patterns(*spared),
            copy_function=lambda source, target: copy_disk(Path(source), Path(target)),
        )
        self.directories = {path for path in self.root.rglob("*") if path.is_dir()}
        self.states: dict[Path, tuple[int, int, int, int]] = {}
        for path in self._files():
            self._note(path)

    def _files(self) -> list[Path]:
        return [path for path in self.root.rglob("*") if not path.is_dir() or path.is_symlink()]

    def _note(self, path: Path) -> None:
        """Set a modification time that any later change replaces, however soon it follows."""
        os.utime(path, (MADE, MADE))
        self.states[path] = self._state(path)

    @staticmethod
    def _state(path: Path) -> tuple[int, int, int, int]:
        status = path.lstat()
        return status.st_size, status.st_mtime_ns, status.st_ino, status.st_mode

    def restore(self) -> None:
        self._restore_rights()
        for path in beside(self.root):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        for path in [path for path in self.root.rglob("*") if path.is_dir() and path not in self.directories]:
            shutil.rmtree(path, ignore_errors=True)
        for path in set(self._files()) - set(self.states):
            path.unlink()
        for path in sorted(self.directories):
            path.mkdir(exist_ok=True)
        for path, state in self.states.items():
            if not path.exists() or self._state(path) != state:
                path.unlink(missing_ok=True)
                copy_disk(DISKS / DISK_PATHS[self.name] / path.relative_to(self.root), path)
                self._note(path)

    def _restore_rights(self) -> None:
        """Restore the owner of everything, and the modes of directories, if a recipe has changed them."""
        for path in (self.root, *sorted(self.directories), *self.states):
            if not path.exists():
                continue
            status = path.stat()
            if status.st_uid != os.geteuid() == 0:
                os.chown(path, 0, 0)
            if path in self.directories or path == self.root:
                path.chmod(0o755)

    def graft(self, source: Path, host: str) -> None:
        """Replace the segments of the host partition with those of another partition."""
        for path in (self.root / host).glob("0*"):
            path.unlink()
        for path in source.glob("0*"):
            shutil.copy(path, self.root / host)

    @property
    def directories_of_broker(self) -> list[str]:
        other = second_directory(self.root)
        return [str(self.root), *([str(other)] if other.exists() else [])]


def served(damage: Any, expected: Any) -> str | None:
    """Return the partition that a recipe of tests/damages.py is about, with the same rule as tools/trials/trial.py."""
    name = str(expected.file.split("/")[0].split(".")[0])
    if re.search(r"-\d+$", name) and not name.startswith("__"):
        return name
    by_topic = {"start": "trimmed-0", "cleaner": "users-0", "replication": "orders-lz4-0"}
    return None if damage.disk == "clean-0" else by_topic.get(damage.name.split("-")[0], "orders-none-0")


class RestoredDisks:
    """Copies in `work`, one per disk. `get` returns a disk in its original state."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.disks: dict[tuple[str, tuple[str, ...]], Disk] = {}

    def get(self, name: str, *, whole: bool = False) -> Disk:
        return self._without(name, () if whole else SPARED)

    def _without(self, name: str, spared: tuple[str, ...]) -> Disk:
        key = (name, spared)
        if key not in self.disks:
            self.disks[key] = Disk(name, self.work, spared)
        self.disks[key].restore()
        return self.disks[key]

    def damaged(self, recipe: Any, sizes: tuple[tuple[str, ...], ...] = (SPARED, ())) -> tuple[Disk, Any]:
        """Return the disk of a recipe after applying it, and the expected finding. The disk has as few of its
        partitions as the recipe needs: it is without those of the first tuple of patterns that leaves enough."""
        for spared in sizes:
            here = self._without(recipe.disk, spared)
            try:
                expected = recipe.apply(here.root)
            except FileNotFoundError:
                if not spared:
                    raise
                continue
            needed = {expected.file.split("/")[0], served(recipe, expected) or ""}
            if not any(fnmatchcase(name, pattern) for name in needed for pattern in spared):
                return here, expected
        raise AssertionError
