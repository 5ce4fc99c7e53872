"""restart-plan for log directories without free space or inodes; docs/full-disk-trials.json has what brokers do."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

import kdump
from kdump.incident.doctor import disk_space
from kdump.questions.restart_plan.answer import CLEAN, STOPPED
from kdump.questions.restart_plan.node import access_rights
from kdump.questions.space import disks
from kdump.questions.space.disks import FileSystem
from tests import command
from tests.conftest import FIXTURES


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """Return the log directory with the metadata log, and another one of the broker with its partition."""
    first = Path(shutil.copytree(FIXTURES / "clean-2", tmp_path / "first"))
    second = Path(shutil.copytree(first, tmp_path / "second"))
    shutil.rmtree(first / "ledger-0")
    shutil.rmtree(second / "__cluster_metadata-0")
    meta = (second / "meta.properties").read_text()
    (second / "meta.properties").write_text(meta.replace("oE8qcd_iUG6Hx2IlmSa0HQ", "yOs7EGq-SHmE9VUF0LhreQ"))
    return first, second


def fill(monkeypatch: pytest.MonkeyPatch, directory: Path, *, free: int = 0, inodes: int = 9, kept: int = 0) -> None:
    """Let the file system of a directory have so many free bytes and inodes. `kept`: blocks that ext4 counts as free,
    and gives to nobody."""
    real = os.statvfs

    def statvfs(path: str) -> object:
        if not os.path.abspath(path).startswith(str(directory)):
            return real(path)
        values = {"f_bfree": free // 512 + kept, "f_bavail": free // 512, "f_frsize": 512, "f_flag": 0}
        return SimpleNamespace(**values, f_blocks=1 << 30, f_files=99, f_ffree=inodes, f_favail=inodes)

    monkeypatch.setattr(access_rights.os, "statvfs", statvfs)
    monkeypatch.setattr(access_rights, "_kept_by_ext4", lambda device: kept)


def plan(*directories: Path) -> tuple[str, list[str], list[str]]:
    """Return the verdict, the directories of failures because of free space, and the warnings."""
    found = kdump.restart_plan(map(str, directories))
    stops = [stop.message for stop in found.allStops if "has no free" in stop.message]
    warnings = [text for each in found.directories for text in each.warnings if "has no free" in text]
    return found.verdict, stops, warnings


def test_without_space_for_the_metadata_it_does_not_start(
    two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(monkeypatch, two[0])
    assert plan(*two)[:2] == (STOPPED, [f"the file system of {two[0]} has no free space"])


def test_a_full_log_directory_after_a_clean_shutdown(two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    fill(monkeypatch, two[1])
    verdict, stops, warnings = plan(*two)
    assert (verdict, stops) == (CLEAN, [])
    assert "as soon as it appends" in warnings[0]
    assert kdump.restart_plan(map(str, two)).status == 1


def test_and_after_an_unclean_one(two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    (two[1] / ".kafka_cleanshutdown").unlink()
    fill(monkeypatch, two[1])
    verdict, stops, _ = plan(*two)
    assert (verdict, len(stops)) == (STOPPED, 1)


def test_no_inodes(two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    fill(monkeypatch, two[0], free=1 << 30, inodes=0)
    assert plan(*two)[1] == [f"the file system of {two[0]} has no free inodes"]


def test_some_space(two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    fill(monkeypatch, two[0].parent, free=1 << 20)
    assert plan(*two) == (CLEAN, [], [])


@pytest.mark.parametrize("is_clean", [True, False])
def test_space_and_the_plan_have_one_answer(is_clean: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker of 4.3.1 started with 107 KiB: with little space, it may."""
    disk = Path(shutil.copytree(FIXTURES / "clean-2", tmp_path / "disk"))
    if not is_clean:
        (disk / ".kafka_cleanshutdown").unlink()
    for free in (0, 4095, 4096, 107 << 10, 1 << 20, 2 << 20):
        of_space = FileSystem(1, "/disk", "ext4", "/dev/sdb1", 10 << 20, (10 << 20) - free, free, 0)
        monkeypatch.setattr(disks, "file_system_of", lambda directory, of_space=of_space: of_space)
        fill(monkeypatch, disk, free=free)
        space = command.run("space", disk).stdout
        found = kdump.restart_plan([str(disk)])
        warned = [problem.code for problem in found.directories[0].problems if "disk" in problem.code]
        assert ("NOT ENOUGH TO START" in space) == (found.verdict == STOPPED) == (free < 4096), free
        assert ("MAY NOT BE ENOUGH TO START" in space) == (warned == ["startup-disk-nearly-full"]), free
        assert bool(warned) == (4096 <= free <= 1 << 20)


def test_root_has_not_what_ext4_keeps(two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a full ext4 of 65 MiB, statvfs counts 1,362,944 bytes as free for root: a write as root fails."""
    monkeypatch.setattr(access_rights, "_rights", lambda directories: access_rights.Rights(0))
    fill(monkeypatch, two[0], kept=1_362_944 // 512)
    assert plan(*two)[:2] == (STOPPED, [f"the file system of {two[0]} has no free space"])


def test_a_quota_holds_for_root(two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing reserves more than a tenth of a file system for root."""
    monkeypatch.setattr(access_rights, "_rights", lambda directories: access_rights.Rights(0))
    fill(monkeypatch, two[0], kept=1 << 29)
    monkeypatch.setattr(access_rights, "_kept_by_ext4", lambda device: 0)
    assert plan(*two)[0] == STOPPED


def test_a_nearly_full_disk_is_one_item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the startup and of the space, also in a log directory whose name is like a partition's."""
    for name in ("disk", "disk-1"):
        disk = Path(shutil.copytree(FIXTURES / "clean-2", tmp_path / name))
        fill(monkeypatch, disk, free=107 << 10)
        system = FileSystem(1, "/disk", "ext4", "/dev/sdb1", 100 << 20, 99 << 20, 107 << 10, 0)
        monkeypatch.setattr(disk_space, "file_system_of", lambda directory, system=system: system)
        rows = map(json.loads, command.run("doctor", disk, "--json").stdout.splitlines())
        codes = [row["code"] for row in rows if "disk" in row.get("code", "")]
        assert codes == ["startup-disk-nearly-full"]


def test_since_4_0_a_recovery_without_space_loses_records(
    two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """LogLoader.recoverLog treats every IOException as an invalid offset."""
    (two[1] / ".kafka_cleanshutdown").unlink()
    fill(monkeypatch, two[1])
    for version, is_warned in (("3.9", False), ("4.0", True), ("4.3", True)):
        found = kdump.restart_plan(map(str, two), kafka_version=version)
        (stop,) = (stop for stop in found.allStops if "has no free" in stop.message)
        assert ("Do not start it before" in stop.remedy) == is_warned, version
