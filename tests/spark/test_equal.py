"""The data source says of every disk, sound or damaged, what the command line says; also where everything splits."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.conftest import SHARED
from tests.spark import same
from tests.test_damaged_disks import DAMAGES

SPLITS = [None, 4096]
DISKS = sorted(path for path in (SHARED / "disks").glob("kafka-4.3*/*") if path.is_dir())
DISKS += sorted((SHARED / "disks").glob("kafka-2.8*"))


def options(split: int | None) -> dict[str, int]:
    return {"splitBytes": split} if split else {}


def check(disk: Path, split: int | None) -> None:
    assert same.batch_rows(same.rows("batches", [disk], **options(split))) == same.cli_batches(disk)
    assert same.record_rows(same.rows("records", [disk], **options(split))) == same.cli_records(disk)
    assert same.finding_rows(same.rows("findings", [disk], **options(split))) == same.cli_findings(disk)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("disk", DISKS, ids=lambda disk: disk.name)
def test_a_sound_disk(disk: Path, split: int | None) -> None:
    check(disk, split)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_disk(damage, split: int | None, tmp_path: Path) -> None:
    for disk in DISKS:
        copy = damaged(disk, damage, tmp_path / disk.name)
        check(copy, split)
        shutil.rmtree(copy)


def damaged(disk: Path, damage, copy: Path) -> Path:
    dice = random.Random(f"{damage.__name__} {disk.name}")
    for path in sorted(disk.rglob("*")):
        if not path.is_file() or not 0 < path.stat().st_size < 300_000:
            continue
        data = bytearray(path.read_bytes())
        if path.suffix == ".log":
            damage(data, dice)
        target = copy / path.relative_to(disk)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return copy
