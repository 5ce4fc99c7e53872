"""What commands say about a segment that is larger than a broker opens. The files are sparse."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from kdump.log.segment_limits import MAX_SEGMENT_SIZE
from kdump.questions.salvage import write_segments
from tests.command import objects, run
from tests.conftest import FIXTURES

NAME = f"{0:020}.log"


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Return a disk with a segment of one byte more than a broker opens."""
    root = Path(shutil.copytree(FIXTURES / "clean-2", tmp_path / "disk"))
    os.truncate(root / "ledger-0" / NAME, MAX_SEGMENT_SIZE + 1)
    return root


def codes(*paths: Path) -> dict[str, str]:
    """Return the codes that verify reports for segments, with the consequence of each."""
    found = objects("verify", *paths, status=1)
    return {each["code"]: each["consequence"] for each in found if each["type"] == "finding" and NAME in each["file"]}


@pytest.mark.every_disk
def test_verify_and_restart_plan_agree(disk: Path) -> None:
    assert "exits" in codes(disk)["segment-too-large"]
    plans = objects("restart-plan", disk, status=3)
    (stop,) = [stop for plan in plans if plan["type"] == "restartPartition" for stop in plan["stops"]]
    (found,) = [each for each in objects("verify", disk, status=1) if each.get("code") == "segment-too-large"]
    assert (stop["file"], stop["message"]) == (found["file"], found["message"])
    os.truncate(disk / "ledger-0" / NAME, MAX_SEGMENT_SIZE)
    assert "segment-too-large" not in codes(disk)


def test_a_segment_alone(disk: Path) -> None:
    assert "segment-too-large" in codes(disk / "ledger-0" / NAME)


def test_an_index_that_is_missing_is_not_rebuilt(disk: Path) -> None:
    (disk / "ledger-0" / NAME).with_suffix(".index").unlink()
    assert "does not rebuild it" in codes(disk)["index-missing"]


def test_reindex(disk: Path) -> None:
    assert f"a broker does not open segments larger than {MAX_SEGMENT_SIZE}" in run("reindex", disk).stdout


def test_salvage_writes_segments_that_a_broker_opens(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("salvage", disk / "ledger-0", "--out", tmp_path / "out").exit_code == 0
    written = (tmp_path / "out" / "ledger-0" / NAME).read_bytes()
    assert written == (FIXTURES / "clean-2" / "ledger-0" / NAME).read_bytes()
    limit = len(written) - 1
    monkeypatch.setattr(write_segments, "MAX_SEGMENT_SIZE", limit)
    run("salvage", disk / "ledger-0", "--out", tmp_path / "split")
    parts = sorted((tmp_path / "split" / "ledger-0").glob("*.log"))
    assert len(parts) > 1
    assert all(part.stat().st_size <= limit for part in parts)
    assert b"".join(part.read_bytes() for part in parts) == written
