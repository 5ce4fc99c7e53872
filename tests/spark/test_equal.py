"""The data source returns the same as the command line for every disk, healthy or damaged, also if all files are
split."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import DISKS, sample, seeded
from tests.craft import write_file
from tests.spark import same
from tests.test_damaged_disks import DAMAGES

SPLITS = [None, 4096]
EVERY = sorted([*DISKS.glob("kafka-4.3*/*"), *DISKS.glob("kafka-2.8*")])
QUICK = ("clean-1", "clean-2", "diverged-1", "kafka-2.8-legacy")
"""Disks that stand for all in `make test`."""
LARGE = 300_000
"""Larger files are left out of the damaged copies."""

Damage = Callable[[bytearray, random.Random], None]


def disks(quick: tuple[str, ...] = QUICK) -> list[Any]:
    return [
        pytest.param(disk, id=disk.name, marks=() if disk.name in quick else pytest.mark.every_disk) for disk in EVERY
    ]


def check(disk: Path, split: int | None, read: Callable[..., list[dict[str, Any]]] = same.rows) -> None:
    options = {"splitBytes": split} if split else {}
    assert same.batch_rows(read("batches", [disk], **options)) == same.cli_batches(disk)
    assert same.record_rows(read("records", [disk], **options)) == same.cli_records(disk)
    assert same.finding_rows(read("findings", [disk], **options)) == same.cli_findings(disk)


@pytest.mark.sampled
@pytest.mark.parametrize("disk", disks(QUICK[1:]))  # copies of the first one, with little damage, are read below
def test_a_sound_disk(disk: Path) -> None:
    for split in sample(SPLITS, 4, disk.name):
        check(disk, split)


@pytest.mark.sampled
@pytest.mark.parametrize("damage", sample(DAMAGES, 12, "spark"), ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("disk", disks())
def test_a_damaged_disk(disk: Path, damage: Damage, tmp_path: Path) -> None:
    copy = damaged(disk, damage, tmp_path / disk.name, 1)
    for split in sample(SPLITS, 4, f"{disk.name} {damage.__name__}"):
        check(copy, split)


@pytest.mark.parametrize("seed", range(8))
def test_segments_with_several_wounds(seed: int, tmp_path: Path) -> None:
    """The damage is on both sides of the start of a split, at the start itself, and in the batches before it."""
    dice = seeded(seed)
    source = DISKS / "kafka-4.3" / "clean-1" / "clicks-0"
    copy = damaged(source, dice.choice(DAMAGES), tmp_path / "clicks-0", 4, seed)
    for split in (1000, 4096, 9999):
        assert same.batch_rows(same.rows("batches", [copy], splitBytes=split)) == same.cli_batches(copy)


def damaged(disk: Path, damage: Damage, copy: Path, wounds: int, seed: int = 0) -> Path:
    """Return a copy in which all segments and indexes have this number of damaged places."""
    dice = seeded(f"{damage.__name__} {disk.name} {seed}")
    for path in sorted(path for path in without_large(disk, copy).rglob("*") if path.is_file()):
        data = bytearray(path.read_bytes())
        for _ in range(wounds if path.suffix in (".log", ".index", ".txnindex") else 0):
            if data:
                damage(data, dice)
        path.write_bytes(data)
    return copy


def without_large(disk: Path, copy: Path) -> Path:
    """Return a copy of the files that are neither large nor empty."""
    for path in sorted(disk.rglob("*")):
        if path.is_file() and 0 < path.stat().st_size < LARGE:
            write_file(copy / path.relative_to(disk), path.read_bytes())
    return copy
