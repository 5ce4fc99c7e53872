"""restart-plan on the disk of a broker with tiered storage."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import kdump
from kdump.forensics.restart.plan_values import PartitionPlan, RestartPlan
from tests.conftest import DISKS


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DISKS / "kafka-4.3-tiered" / "disk", tmp_path / "disk"))


def of(disk: Path) -> tuple[RestartPlan, PartitionPlan]:
    plan = kdump.restart_plan([str(disk)])
    return plan, next(each for each in plan.partitions if each.topic == "tiered")


def test_the_log_starts_in_remote_storage(disk: Path) -> None:
    plan, tiered = of(disk)
    assert (tiered.logStartOffset, tiered.logEndOffset, tiered.loses) == (110377, 260000, False)
    assert any("remote.log.storage.system.enable" in text for text in plan.assumptions)
    assert not tiered.notes


def test_local_segments_that_are_gone_are_in_remote_storage(disk: Path) -> None:
    for path in (disk / "tiered-0").glob("0*"):
        path.unlink()
    _, tiered = of(disk)
    assert (tiered.logEndOffset, tiered.acknowledged) == (110377, 260000 - 110377)
    assert tiered.notes[0].startswith("tiered: remote storage has it up to offset 215208; while another replica leads")
    assert "goes on at offset 110377" in tiered.notes[0]


def test_a_missing_directory_makes_remote_storage_lose_its_segments(disk: Path) -> None:
    shutil.rmtree(disk / "tiered-0")
    _, tiered = of(disk)
    assert tiered.missing
    assert "it deletes the segments in remote storage" in tiered.notes[0]


def test_without_its_metadata_nothing_is_known_of_remote_storage(disk: Path) -> None:
    shutil.rmtree(disk / "tiered-0")
    shutil.rmtree(disk / "__remote_log_metadata-0")
    _, tiered = of(disk)
    assert "unknown" in tiered.notes[0]
