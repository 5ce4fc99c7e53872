"""Disks that are damaged by one recipe after the other: copied once, and put right again in between."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from tests.conftest import DISKS
from tests.damages import DISK_PATHS, copy_disk, second_directory

LARGE = "clicks-0"
"""A partition of ten megabytes, which most recipes leave alone."""


class Disk:
    """A copy of a disk in `work`, as it was after each `restore`; without its largest partition unless `whole`."""

    def __init__(self, name: str, work: Path, *, whole: bool = False) -> None:
        self.root = copy_disk(DISKS / DISK_PATHS[name], work / f"{name}{'-whole' * whole}")
        if not whole:
            shutil.rmtree(self.root / LARGE, ignore_errors=True)
        self.files = {path: path.read_bytes() for path in self._files()}
        self.directories = {path for path in self.root.rglob("*") if path.is_dir()}
        self.states = {path: self._state(path) for path in self.files}

    def _files(self) -> list[Path]:
        return [path for path in self.root.rglob("*") if path.is_file()]

    @staticmethod
    def _state(path: Path) -> tuple[int, int, int]:
        status = path.stat()
        return status.st_size, status.st_mtime_ns, status.st_ino

    def restore(self) -> None:
        shutil.rmtree(second_directory(self.root), ignore_errors=True)
        for path in [path for path in self.root.rglob("*") if path.is_dir() and path not in self.directories]:
            shutil.rmtree(path, ignore_errors=True)
        for path in set(self._files()) - set(self.files):
            path.unlink()
        for path in sorted(self.directories):
            path.mkdir(exist_ok=True)
        for path, data in self.files.items():
            if not path.exists() or self._state(path) != self.states[path]:
                path.write_bytes(data)
                self.states[path] = self._state(path)

    def graft(self, source: Path, host: str) -> None:
        """The segments of another partition in place of the host's."""
        for path in (self.root / host).glob("0*"):
            path.unlink()
        for path in source.glob("0*"):
            shutil.copy(path, self.root / host)

    @property
    def directories_of_broker(self) -> list[str]:
        other = second_directory(self.root)
        return [str(self.root), *([str(other)] if other.exists() else [])]


def served(damage: Any, expected: Any) -> str | None:
    """The partition that a recipe of tests/damages.py is about, as tools/trials/trial.py has it."""
    name = str(expected.file.split("/")[0].split(".")[0])
    if re.search(r"-\d+$", name) and not name.startswith("__"):
        return name
    by_topic = {"start": "trimmed-0", "cleaner": "users-0", "replication": "orders-lz4-0"}
    return None if damage.disk == "clean-0" else by_topic.get(damage.name.split("-")[0], "orders-none-0")
