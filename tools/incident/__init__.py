"""Disks of the pages in docs/incidents: real bytes of brokers, from fixtures/, damaged as each page describes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tools.corpus import unpack
from tools.incident import controllers, damaged_bytes, groups, mirror, producers, schemas, startups, topics
from tools.incident.disk import FIXTURES, Disk, leave_out
from tools.incident.registry import BASES, INCIDENTS

__all__ = [
    "INCIDENTS",
    "controllers",
    "damaged_bytes",
    "groups",
    "lay_out",
    "mirror",
    "producers",
    "schemas",
    "startups",
    "topics",
]

MADE = 1_795_248_012.345
"""Modification time of the disk's files in epoch seconds: 2026-11-21T08:00:12.345Z."""


def lay_out(name: str, directory: Path) -> None:
    """Create the disk of an incident in `directory`/disk-1. Raises FileExistsError."""
    directory.mkdir(parents=True)
    root = directory / "disk-1"
    base = FIXTURES / BASES.get(name, "disk-1")
    shutil.copytree(base if base.exists() else unpack() / BASES[name], root)
    if name not in (*BASES, "future-timestamp"):
        leave_out(root, "future", 0)
    INCIDENTS[name](Disk(root))
    for path in directory.rglob("*"):
        os.utime(path, (MADE, MADE))
